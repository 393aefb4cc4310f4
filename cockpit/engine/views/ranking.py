"""Builds the rows of the queue in its order: the position of each job, and the factors of its priority."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from cockpit.engine.views.rows import HIDDEN
from cockpit.model.cluster import PriorityKind
from cockpit.model.ids import JobId
from cockpit.model.view import PriorityRow
from cockpit.sched.equivalence import partitions_of
from cockpit.sched.priority.priorities import prioritised

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from cockpit.model.job import Job
    from cockpit.model.priority import Breakdown, WeightChanges
    from cockpit.sched.equivalence import PartitionEntry
    from cockpit.sched.priority.priorities import PriorityTable
    from cockpit.sched.snapshot import Snapshot

Place = tuple[JobId, str]
"""A queued job in one of its partitions."""


def present_order(snapshot: Snapshot, last: PriorityTable | None) -> PriorityTable:
    """Return the last pass's priorities if they have every job of the queue, else compute them from the snapshot."""
    # A job that came since the pass has no row in its table, and would be missing from the list.
    if last is not None and {job.id for job in snapshot.queue} <= {job.id for job, _ in last.order}:
        return last
    return prioritised(snapshot)


def tried_order(snapshot: Snapshot, changes: WeightChanges) -> tuple[Snapshot, PriorityTable]:
    """Return the order of the queue with changed weights, and the snapshot that has them.

    Uses multifactor priority even if the cluster does not.
    """
    priority = snapshot.cluster.priority
    tried = replace(priority, kind=PriorityKind.MULTIFACTOR, weights=changes.on(priority.weights))
    changed = replace(snapshot, cluster=replace(snapshot.cluster, priority=tried))
    return changed, prioritised(changed)


def ranked(
    table: PriorityTable,
    queue: Mapping[JobId, Job],
    may_see: Callable[[Job], bool],
    before: PriorityTable | None = None,
) -> Iterator[PriorityRow]:
    """Yield a row for each entry of the table whose job is still queued, held jobs last.

    The row of a job that `may_see` excludes has only its position; a held one has no row then. `before`: another order,
    whose positions and priorities the rows show too.
    """
    places = _places(table.order, queue)
    placed_before = _places(before.order, queue) if before is not None else {}
    held = {(job.id, where): None for job, where in table.order if job.id in queue and (job.id, where) not in places}
    for (job_id, partition), place in (places | held).items():
        job, was = queue[job_id], placed_before.get((job_id, partition))
        if may_see(job):
            total = _total(before, job, partition)
            yield _row(job, place, table.breakdown(job, partition), was, total)
        elif place is not None:
            # The position is shown without the job: a user sees how many are ahead, and not whose jobs they are.
            yield PriorityRow(JobId(0), HIDDEN, HIDDEN, HIDDEN, HIDDEN, partition, place, None, was)


def best_priority(table: PriorityTable, job: Job) -> int | None:
    """Return the job's highest priority in any of its partitions; None: the cluster has no priorities."""
    if table.calculator is None:
        return None
    # The best of its partitions decides when it starts.
    return max(table.breakdown(job, partition).total for partition in partitions_of(job))


def breakdowns(table: PriorityTable, job: Job) -> tuple[Breakdown, ...]:
    """Return the factors of the job's priority in each of its partitions, the highest priority first."""
    all_breakdowns = (table.breakdown(job, partition) for partition in partitions_of(job))
    return tuple(sorted(all_breakdowns, key=lambda each: -each.total))


def _places(order: Sequence[PartitionEntry], queue: Mapping[JobId, Job]) -> dict[Place, int]:
    """Return the position of each entry, from 1: the number of other jobs before it plus 1. Held jobs have none.

    A job in several partitions has several entries, but counts once for those behind it.
    """
    seen: set[JobId] = set()
    places: dict[Place, int] = {}
    for job, partition in order:
        if job.id in queue and not queue[job.id].held_by:
            places[job.id, partition] = len(seen) + (job.id not in seen)
            seen.add(job.id)
    return places


def _total(table: PriorityTable | None, job: Job, partition: str) -> int | None:
    """Return the job's priority in the partition; None: there is no table, or the cluster has no priorities."""
    if table is None or table.calculator is None:
        return None
    return table.breakdown(job, partition).total


def _row(job: Job, place: int | None, breakdown: Breakdown, was: int | None, total: int | None) -> PriorityRow:
    """Return the row of a job that the user may see. `was`, `total`: its position and priority in the other order."""
    return PriorityRow(
        job=job.id,
        name=job.spec.name,
        user=job.submitter.name,
        account=job.account,
        qos=job.qos,
        partition=breakdown.partition,
        position=place,
        breakdown=breakdown,
        position_before=was,
        total_before=total,
        task=job.array,
    )
