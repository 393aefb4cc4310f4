"""Words and signs for job states, and the sentences beside them."""

from __future__ import annotations

from typing import Final

from cockpit.model.attempt import EndCause, ExitStatus
from cockpit.model.ids import Millis
from cockpit.model.job import JobState
from cockpit.model.jobrow import JobRow
from cockpit.model.staging import Progress
from cockpit.present import units
from cockpit.present.safe import safe

# A sign for each state, since colours do not reach every user and every terminal. States on the way to running share
# one; the word beside it says which it is.
GLYPHS: Final = {
    JobState.QUEUED: "◌",
    JobState.PRECHECKING: "◍",
    JobState.STAGING: "◍",
    JobState.STARTING: "◍",
    JobState.RUNNING: "●",
    JobState.RESUMING: "◍",
    JobState.SUSPENDED: "⏸",
    JobState.SUCCEEDED: "✓",
    JobState.ERROR: "✗",
    JobState.EXPIRED: "⧗",
    JobState.STOPPED: "■",
}

STATE_ALIASES: Final = {
    "failed": JobState.ERROR,
    "done": JobState.SUCCEEDED,
    "completed": JobState.SUCCEEDED,
    "pending": JobState.QUEUED,
    "waiting": JobState.QUEUED,
    "cancelled": JobState.STOPPED,
    "canceled": JobState.STOPPED,
    "timeout": JobState.EXPIRED,
}
"""Words of other schedulers for states, which filters accept."""


def seconds_left(until: Millis, now: Millis) -> int:
    return max(until - now, 0) // 1000


def state_words(state: JobState, held_until: Millis | None, now: Millis, *, ending: bool = False) -> str:
    """Return the state with its addition: `running`, `error · held 3:59`, `running · ending`."""
    if held_until is not None:
        return f"{state} · held {units.countdown(seconds_left(held_until, now))}"
    return f"{state} · ending" if ending else str(state)


_ENDING = {
    EndCause.EXIT: "a replica ended; the others are being ended",
    EndCause.STOP: "is being stopped",
    EndCause.TIME_LIMIT: "reached its time limit and is being ended",
    EndCause.START_FAILED: "its container could not be made",
    EndCause.LOST: "a container was lost; the others are being ended",
    EndCause.DEADLINE: "can no longer end by its deadline",
    EndCause.PREEMPTED: "is being preempted by another job",
    EndCause.REQUEUE: "is being requeued",
    EndCause.RECLAIMED: "its resources are being reclaimed",
    EndCause.BELOW_MIN: "has too few workers, and is being suspended",
    EndCause.FAULT: "its node has a fault; it is being moved to another",
    EndCause.SLOW: "its iterations are slow; it is being moved to another node",
}
_ENDED = {
    EndCause.STOP: "was stopped",
    EndCause.START_FAILED: "its container could not be made",
    EndCause.LOST: "its container was lost",
    EndCause.DEADLINE: "could no longer end by its deadline",
    EndCause.PREEMPTED: "was preempted by another job",
    EndCause.TIME_LIMIT: "reached its time limit",
    EndCause.REQUEUE: "was requeued",
    EndCause.RECLAIMED: "its resources were reclaimed",
    EndCause.BELOW_MIN: "had too few workers for longer than it waits",
    EndCause.FAULT: "a fault was found on its node",
    EndCause.SLOW: "its iterations were slow",
}


def retry_words(retries: tuple[int, int]) -> str:
    """Return the number of automatic retries so far and the most that are allowed: `retry 1 of 3`."""
    used, most = retries
    return f"retry {used} of {most}"


def ending_sentence(row: JobRow, cause: EndCause) -> str:
    """Return the sentence that says why a job that still runs is being ended."""
    return _ENDING[cause] + _stopped_by_words(row, cause)


def _stopped_by_words(row: JobRow, cause: EndCause) -> str:
    return f" by {safe(row.ended_by)}" if cause is EndCause.STOP and row.ended_by else ""


def ended_words(cause: EndCause) -> str:
    """Return the sentence about a cause of the end other than the command's exit; empty for that."""
    return _ENDED.get(cause, "")


def end_sentence(row: JobRow, cause: EndCause) -> str:
    """Return the sentence about how a job ended; empty for a job that simply succeeded."""
    match cause:
        case EndCause.EXIT:
            # Code 0 says nothing: the job succeeded, or another replica failed, which is named behind it.
            exit_code = of_hook(row.hook) + exit_words(row.exit_code, oom=row.oom) if row.exit_code else ""
            return "; ".join(filter(None, (exit_code, failed_replica(row))))
        case EndCause.TIME_LIMIT:
            return f"reached its time limit of {units.spoken(row.time_limit_seconds)}"
        case EndCause.START_FAILED | EndCause.LOST:
            # The runtime knows more precisely what went wrong; its words may quote output of programs.
            return safe(row.lost) or _ENDED[cause]
        case _:
            return _ENDED[cause] + _stopped_by_words(row, cause)


def brief_end(row: JobRow, cause: EndCause) -> str:
    """Return `end_sentence` as one short clause: `exit 137: out of memory`."""
    if cause is EndCause.EXIT:
        return of_hook(row.hook) + _exit_briefly(row) if row.exit_code else failed_replica(row)
    if cause is EndCause.TIME_LIMIT:
        return f"reached its limit of {units.spoken(row.time_limit_seconds)}"
    # What the runtime says of a start or a loss may quote pages of a program's output.
    return _ENDED[cause] if cause in {EndCause.START_FAILED, EndCause.LOST} else end_sentence(row, cause)


def _exit_briefly(row: JobRow) -> str:
    return f"exit {row.exit_code}: out of memory" if row.oom else exit_words(row.exit_code)


def failed_replica(row: JobRow) -> str:
    """Return the replica that failed, for a job with several: `replica 2 failed: exit 1`; empty where none has
    failed."""
    if row.failed is None:
        return ""
    rank, code = row.failed
    # The job's exit code is that of this replica, and is said before.
    return f"replica {rank} failed" if code == row.exit_code else f"replica {rank} failed: {exit_words(code)}"


def exit_words(code: int | None, *, oom: bool = False) -> str:
    """Return the words for an exit code: `exit 3`; `exit 139, killed by SIGSEGV`; `exit 137: it used more memory than
    it asked for`."""
    # A shell reports a signal as 128 and its number.
    signal = _SIGNALS.get((code or 0) - 128)
    number = f"exit {'unknown' if code is None else code}"
    # The kernel's word on memory explains the SIGKILL that it sent.
    if oom:
        return f"{number}: it used more memory than it asked for"
    return number + (f", killed by {signal}" if signal else "")


def exit_sentence(status: ExitStatus) -> str:
    """Return the words for an exit status: `exit 3`, `exit 137: it used more memory than it asked for`, or why it is
    unknown."""
    return safe(status.lost) or of_hook(status.hook) + exit_words(status.shell_code, oom=status.oom)


def of_hook(name: str) -> str:
    """Return the words before the exit code of a hook; empty for the job's command itself."""
    return f"{safe(name)} failed: " if name else ""


_SIGNALS: Final = {
    1: "SIGHUP",
    2: "SIGINT",
    3: "SIGQUIT",
    4: "SIGILL",
    6: "SIGABRT",
    7: "SIGBUS",
    8: "SIGFPE",
    9: "SIGKILL",
    11: "SIGSEGV",
    13: "SIGPIPE",
    14: "SIGALRM",
    15: "SIGTERM",
}
"""Names of Linux's signals by number: a shell reports 128 plus the signal's number."""


_MIB: Final = 1 << 20


def copied_percent(progress: Progress | None) -> str:
    """Return `43%`; `–` where nothing is copied or the total is unknown."""
    return f"{100 * progress.done // progress.total}%" if progress is not None and progress.total else "–"


def copying_sentence(progress: Progress | None) -> str:
    """Return the sentence about a copy in progress: `copies its files: 1.2G of 2G, 310M a second, 3 s left`."""
    if progress is None:
        return "its files are copied; it starts with the others of its replicas"
    # The size of a folder is known only after a walk through it.
    if not progress.total:
        return "looks through what it has to copy"
    done, total = units.memory(progress.done // _MIB), units.memory(progress.total // _MIB)
    # Below a MiB a second it would read `0M a second`.
    rate = f", {units.memory(progress.rate // _MIB)} a second" if progress.rate >= _MIB else ""
    left = f", {units.spoken(progress.seconds_left)} left" if progress.seconds_left else ""
    return f"copies its files: {done} of {total}{rate}{left}"
