"""Whose end is the job's: of most jobs that of every replica, of some that of those whom the others only serve."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cockpit.launch.modes import decides
from cockpit.model.attempt import EndCause

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from cockpit.model.attempt import ExitStatus
    from cockpit.model.job import Job
    from cockpit.model.spec import JobSpec


_BY_ITSELF: Final = frozenset({None, EndCause.EXIT, EndCause.START_FAILED, EndCause.LOST})
"""Why a job ends that nobody told to."""


def is_decided(job: Job, ended: Collection[int]) -> bool:
    """Whether all that decide are among the ranks that have ended."""
    assert job.attempt is not None
    return all(each.rank in ended for each in job.attempt.there if decides(job.spec, each.rank))


def matters(spec: JobSpec, rank: int) -> bool:
    """Whether a failure of this replica fails the job: of worker pools only the primary's does."""
    return not spec.worker_pools or decides(spec, rank)


def counted(spec: JobSpec, exits: Sequence[tuple[int, ExitStatus]]) -> Sequence[tuple[int, ExitStatus]]:
    """Of exits in their order those that say how the job went: whoever ends after the last that decides was told to."""
    if spec.mode is None and not spec.parameter_servers:  # all do
        return exits
    exits = [each for each in exits if matters(spec, each[0])]
    last = max((at for at, (rank, _) in enumerate(exits) if decides(spec, rank)), default=len(exits))
    return exits[: last + 1]


def first_failure(job: Job) -> tuple[int, int] | None:
    """Rank and exit code of the replica that failed first; None where none has, or where the job has one replica.

    A replica that ended after the last one that decides, or because the job was told to end, has not failed: it was
    stopped. A worker that an elastic job replaced or gave back is not looked at: the job's retries count the former.
    """
    attempt = job.attempt
    if attempt is None or len(attempt.replicas) == 1:
        return None
    if job.end_cause not in _BY_ITSELF or (job.ending is not None and job.ending.cause not in _BY_ITSELF):
        return None
    decide = {each.rank for each in attempt.there if decides(job.spec, each.rank)}
    ended = [(each.ended_at, each.rank, each) for each in attempt.replicas if each.left_at is None or each.blocked]
    for _, rank, replica in sorted(entry for entry in ended if entry[0] is not None):
        if replica.exit is not None and not replica.exit.ok:
            return rank, replica.exit.shell_code
        decide.discard(rank)
        if not decide:
            return None
    return None
