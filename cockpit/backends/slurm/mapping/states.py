"""Converts Slurm's job states to the model's, and reads how a job ended."""

from __future__ import annotations

from cockpit.backends.slurm.mapping import values
from cockpit.model.attempt import EndCause, ExitStatus
from cockpit.model.job import JobState

_STATES = {
    "PENDING": JobState.QUEUED,
    # Flags of job_state_string() that replace the base state: the job is pending again, or about to be.
    "REQUEUED": JobState.QUEUED,
    "REQUEUE_HOLD": JobState.QUEUED,
    "REQUEUE_FED": JobState.QUEUED,
    "SPECIAL_EXIT": JobState.QUEUED,
    "RESV_DEL_HOLD": JobState.QUEUED,
    "CONFIGURING": JobState.STARTING,
    "STAGE_OUT": JobState.RUNNING,
    "RUNNING": JobState.RUNNING,
    # The job's processes are being ended (KillWait, epilog); its nodes are still allocated.
    "COMPLETING": JobState.RUNNING,
    "RESIZING": JobState.RUNNING,
    "SIGNALING": JobState.RUNNING,
    "SUSPENDED": JobState.SUSPENDED,
    # SIGSTOP: unlike SUSPENDED, the job keeps its CPUs.
    "STOPPED": JobState.SUSPENDED,
    "COMPLETED": JobState.SUCCEEDED,
    "CANCELLED": JobState.STOPPED,
    # Another cluster of the federation has started the job.
    "REVOKED": JobState.STOPPED,
    "PREEMPTED": JobState.STOPPED,
    "TIMEOUT": JobState.EXPIRED,
    "DEADLINE": JobState.EXPIRED,
    "FAILED": JobState.ERROR,
    "OUT_OF_MEMORY": JobState.ERROR,
    "NODE_FAIL": JobState.ERROR,
    "BOOT_FAIL": JobState.ERROR,
    "LAUNCH_FAILED": JobState.ERROR,
    "RECONFIG_FAIL": JobState.ERROR,
}

_CAUSES = {
    "COMPLETED": EndCause.EXIT,
    "FAILED": EndCause.EXIT,
    "OUT_OF_MEMORY": EndCause.EXIT,
    "CANCELLED": EndCause.STOP,
    "REVOKED": EndCause.STOP,
    "PREEMPTED": EndCause.PREEMPTED,
    "TIMEOUT": EndCause.TIME_LIMIT,
    "DEADLINE": EndCause.DEADLINE,
    "NODE_FAIL": EndCause.LOST,
    "BOOT_FAIL": EndCause.START_FAILED,
    "LAUNCH_FAILED": EndCause.START_FAILED,
    "RECONFIG_FAIL": EndCause.START_FAILED,
}

FAILED, SUCCESS = "FAILED", "0:0"
"""A failed job without an exit code: accounting through slurmrestd v0.0.38 has that, for every failed job."""
_LOST = {
    "NODE_FAIL": "a node of it failed",
    "BOOT_FAIL": "its nodes did not boot",
    "LAUNCH_FAILED": "it could not be launched",
    "RECONFIG_FAIL": "its nodes could not be set up",
}


def word(printed: str) -> str:
    """Return the state alone of `CANCELLED by 20001`, `COMPLETED*`, `RUNNING+…`."""
    # sacct ends a word that is cut to its column with `+`; states of nodes have flags behind them, such as `*`.
    return printed.split(" ", maxsplit=1)[0].split("+", maxsplit=1)[0].strip("*~#!%$@^-").upper()


def is_known(state: str) -> bool:
    return state in _STATES


def job_state(state: str, *, placed: bool) -> JobState:
    """Return the model's state; an unknown one counts as running if the job has nodes, else as queued."""
    return _STATES.get(state, JobState.RUNNING if placed else JobState.QUEUED)


def end_cause(state: str) -> EndCause | None:
    """Return why a job ended; None if it has not ended."""
    return _CAUSES.get(state)


def exit_of(state: str, printed: str) -> ExitStatus | None:
    """Return how a job or step ended; None if Slurm does not report it.

    `printed`: `code:signal`, or the wait status that squeue's -O gives.
    """
    if state in _LOST:
        return ExitStatus(lost=_LOST[state])
    # No known code is better than code 0, which would read as success.
    if state == FAILED and printed == SUCCESS:
        return None
    status = values.exit_status(printed) if ":" in printed else _of_wait_status(values.number(printed) or 0)
    if state == "OUT_OF_MEMORY":
        return ExitStatus(code=status.code, signal=status.signal, oom=True)
    return status


def _of_wait_status(status: int) -> ExitStatus:
    # The encoding of waitpid(2): the low seven bits are the signal, the second byte is the exit code.
    return ExitStatus(signal=status & 0x7F) if status & 0x7F else ExitStatus(code=status >> 8 & 0xFF)
