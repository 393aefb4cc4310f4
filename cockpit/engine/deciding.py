"""Whose end is the job's: of most jobs that of every replica, of some that of those whom the others only serve."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.launch.modes import decides

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from cockpit.model.attempt import ExitStatus
    from cockpit.model.job import Job
    from cockpit.model.spec import JobSpec


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
