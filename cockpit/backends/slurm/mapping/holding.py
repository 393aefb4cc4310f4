"""Jobs whose command has failed and whose wrapper keeps their allocation: the comment that it left says so."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from cockpit.backends.slurm.mapping.acts import Command, NotPossible
from cockpit.backends.slurm.mapping.containers import held_container_of
from cockpit.backends.slurm.mapping.values import slurm_id
from cockpit.backends.slurm.mapping.wrapper import SLACK_SECONDS, WRAPPED
from cockpit.model.attempt import EndCause, ExitStatus
from cockpit.model.ids import Millis
from cockpit.model.job import ENDED, Job, JobState
from cockpit.model.spec import DebugHold, HoldAllocation, HoldCards
from cockpit.model.view import HoldRow

_COPIED = re.compile(r"cockpit:copied rc=\d{1,3} folder=(/.*)")
_KEPT = DebugHold(cards=HoldCards.KEEP, allocation=HoldAllocation.KEEP)
_FREED = DebugHold(allocation=HoldAllocation.FREE)
_CODE = re.compile(r"cockpit:(?:held|released) rc=(\d{1,3})\b")
_HELD = re.compile(r"cockpit:held rc=(\d{1,3}) until=(\d{1,12})")


def held(job: Job, comment: str) -> Job:
    """Return the job as kept, where its comment says that it is: ended with that code, its nodes still its own; or
    waiting, with a copy of its folder."""
    # `scontrol requeuehold` has put the job back into the queue (`wrapper.copying`).
    if _COPIED.match(comment) and job.state is JobState.QUEUED:
        return replace(job, spec=replace(job.spec, terminal=True, debug_hold=_FREED))
    # A user's own comment, or that of another tool.
    if not comment.startswith(WRAPPED):
        return job
    # Every comment of a wrapper means that the job was submitted with `terminal`.
    job = replace(job, spec=replace(job.spec, terminal=True, debug_hold=_KEPT))
    if held_container_of(comment) is not None:
        return replace(job, spec=replace(job.spec, terminal=True, debug_hold=_FREED))
    code = _CODE.match(comment)
    if code is not None and job.state in ENDED:  # Slurm tells only how the hold ended: with the signal of a cancel
        return replace(job, exit=ExitStatus(code=int(code[1])))
    match = _HELD.fullmatch(comment)
    # While the allocation is held the job runs for Slurm, and only the comment knows that its command has failed.
    if match is None or job.state is not JobState.RUNNING or job.attempt is None:
        return job
    return replace(
        job,
        state=JobState.ERROR,
        exit=ExitStatus(code=int(match[1])),
        end_cause=EndCause.EXIT,
        # The comment has no time of the failure; the start is the latest time that is surely not after it.
        ended_at=job.attempt.placed_at,
        held_until=Millis(1000 * int(match[2])),
    )


def folder_copied(comment: str) -> str:
    """Return the folder to which a failed job's wrapper copied its files; empty: there is none."""
    match = _COPIED.match(comment)
    return match[1] if match else ""


def kept_until(job: Job) -> Millis:
    """Return the end of a job's debug hold; 0 when it has none."""
    return job.held_until or Millis(0)


def extension(job: Job, seconds: int, *, admin: bool) -> list[Command]:
    """Return the commands that extend a hold: they change the end in the comment that the wrapper reads, and signal the
    wrapper. For an administrator they also raise the time limit if it ends earlier. Raises `NotPossible` if an owner's
    time limit leaves no such time."""
    until = kept_until(job) // 1000 + seconds
    # Seconds by which the hold would exceed the time limit; Slurm lets only operators raise that of a running job.
    beyond = until - _last_moment(job)
    if beyond > 0 and not admin:
        raise NotPossible(_no_time_left(job, seconds - beyond))
    name, code = slurm_id(job.id), job.exit.code if job.exit is not None else 1
    # First, so that the time limit does not end the job between the commands.
    longer = [Command(("scontrol", "update", f"JobId={name}", f"TimeLimit=+{-(-beyond // 60)}"))] if beyond > 0 else []
    comment = Command(("scontrol", "update", f"JobId={name}", f"Comment=cockpit:held rc={code} until={until}"))
    # The signal comes last: the wrapper reads the comment when it gets it.
    return [*longer, comment, Command(("scancel", "--batch", "--signal=USR2", name))]


def _last_moment(job: Job) -> int:
    """Return the latest end at which the wrapper still has time to end with the command's exit code."""
    placed = job.attempt.placed_at if job.attempt is not None else 0
    return placed // 1000 + job.spec.time_limit_seconds - SLACK_SECONDS


def _no_time_left(job: Job, seconds: int) -> str:
    name = slurm_id(job.id)
    some = f"`cockpit holds extend {name} --by {seconds // 60}m` is the most" if seconds >= 60 else "no time is left"
    return (
        f"The time limit of job {name} ends its allocation before then, and only administrators of this cluster raise "
        f"one: {some}."
    )


def holds(jobs: Iterable[Job]) -> Iterator[HoldRow]:
    """Return the held jobs, the first to end first."""
    kept = [job for job in jobs if job.kept]
    for job in sorted(kept, key=lambda job: job.held_until or 0):
        attempt, until = job.attempt, job.held_until
        assert attempt is not None
        assert until is not None
        yield HoldRow(
            job=job.id,
            name=job.spec.name,
            user=job.submitter.name,
            state=job.state,
            exit_code=job.exit.shell_code if job.exit is not None else None,
            nodes=tuple(each.node for each in attempt.placement),
            ended_at=job.ended_at or attempt.placed_at,
            held_until=until,
            keeps_card_milli=job.spec.specs[0].card_milli * job.spec.nodes,
            keeps_cpus=job.spec.specs[0].cpus * job.spec.nodes,
        )
