"""Decides which replicas' ends and exit statuses decide the end of their job.

Most jobs end when every replica has ended. A job with parameter servers or with a mode that names a primary ends when
its deciding replicas have ended (`launch.modes.decides`); the others only serve these, and are stopped then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cockpit.launch.modes import decides
from cockpit.model.attempt import EndCause

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from cockpit.model.attempt import ExitStatus
    from cockpit.model.job import Job
    from cockpit.model.spec import JobSpec


_UNREQUESTED_CAUSES: Final = frozenset({None, EndCause.EXIT, EndCause.START_FAILED, EndCause.LOST})
"""Causes of an end that neither a user nor the engine asked for."""


def is_decided(job: Job, ended: Collection[int]) -> bool:
    """Tell whether every deciding replica is among the ranks that have ended."""
    assert job.attempt is not None
    return all(each.rank in ended for each in job.attempt.present_replicas if decides(job.spec, each.rank))


def matters(spec: JobSpec, rank: int) -> bool:
    """Tell whether a failure of this replica fails the job. In a job with worker pools only the primary's does."""
    return not spec.worker_pools or decides(spec, rank)


def counted(spec: JobSpec, exits: Sequence[tuple[int, ExitStatus]]) -> Sequence[tuple[int, ExitStatus]]:
    """Return the exits (rank, status), given in the order in which they happened, that decide the job's result.

    An exit after that of the last deciding replica is left out: that replica was stopped by the engine.
    """
    if spec.mode is None and not spec.parameter_servers:  # every replica decides
        return exits
    exits = [each for each in exits if matters(spec, each[0])]
    # Without any deciding exit all exits count.
    last = max((at for at, (rank, _) in enumerate(exits) if decides(spec, rank)), default=len(exits))
    return exits[: last + 1]


def first_failure(job: Job) -> tuple[int, int] | None:
    """Return rank and exit code of the replica that failed first; None if none has, or if the job has one replica.

    A replica that ended after the last deciding one, or because the job was asked to end, was stopped and has not
    failed. A worker that an elastic job replaced or released is skipped: a replacement is counted as a retry instead.
    """
    attempt = job.attempt
    if attempt is None or len(attempt.replicas) == 1:
        return None
    asked_to_end = job.ending is not None and job.ending.cause not in _UNREQUESTED_CAUSES
    if asked_to_end or job.end_cause not in _UNREQUESTED_CAUSES:
        return None
    # In the order of their ends, up to the last deciding one: whatever ended behind that was stopped by the engine.
    undecided = {each.rank for each in attempt.present_replicas if decides(job.spec, each.rank)}
    ended = [(each.ended_at, each.rank, each) for each in attempt.replicas if each.left_at is None or each.blocked]
    for _, rank, replica in sorted(entry for entry in ended if entry[0] is not None):
        if replica.exit is not None and not replica.exit.ok:
            return rank, replica.exit.shell_code
        undecided.discard(rank)
        if not undecided:
            return None
    return None
