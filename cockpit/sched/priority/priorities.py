"""Orders the queue: every queued job in each of its partitions, by priority.

A table is an explicit value: `prioritised` makes the next one from the last one and what changed since; made from
nothing it is the same. Short queues are computed job by job, long ones in numpy columns, with the same floating-point
results.

The order: partition tier, then priority, then (without a QOS weight) the priority word, then submission.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import repeat
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec.structs import replace

from cockpit.model.cluster import PriorityFlag, PriorityKind
from cockpit.model.ids import JobId
from cockpit.model.job import Job
from cockpit.model.priority import Breakdown
from cockpit.sched.equivalence import URGENCY, PartitionEntry, by_seniority, partitions_of
from cockpit.sched.fifo_queue import FifoQueue
from cockpit.sched.priority.factors import MOST
from cockpit.sched.priority.priority_context import PriorityCalculator, PriorityContext, shares_of
from cockpit.sched.snapshot import Highest, Snapshot

if TYPE_CHECKING:
    from cockpit.sched.priority.columns import Columns

_NO_MINIMUMS: Highest = MappingProxyType({})
_BASIC: Final = PriorityKind.BASIC
FEW = 500
"""Queues of at most so many jobs are computed job by job, without importing numpy."""


class PriorityTable(msgspec.Struct):
    """The priorities of one snapshot."""

    snapshot: Snapshot
    calculator: PriorityCalculator | None
    """The calculator of priorities; None under `priority/basic`, where jobs are in order of submission."""
    _order: Sequence[PartitionEntry] | None = None
    """The entries in order of priority; None: the order of submission, not made yet because no caller has read it."""
    columns: Columns | None = None
    """The columns, for the next table only: they are updated in place with the queue."""
    fifo: FifoQueue | None = None
    """The queue in order of submission; for the next table only, like the columns."""

    @property
    def highest(self) -> Highest:
        """The priorities below which none may fall (INCREMENT_ONLY)."""
        only_increments = self.calculator is not None and _only_increments(self.calculator.context)
        return self.snapshot.highest if only_increments else _NO_MINIMUMS

    @property
    def order(self) -> Sequence[PartitionEntry]:
        """Every entry of the queue, held jobs included, best first."""
        if self._order is None:
            self._order = _by_submission(self.snapshot)
        return self._order

    def breakdown(self, job: Job, partition: str = "") -> Breakdown:
        """Return the job's priority in a partition at the table's moment, also for a running job.

        In order of submission it is one less with each job id, as in Slurm.
        """
        if self.calculator is None:
            return Breakdown(job.id, partition, 0 if job.held_by else max(1, MOST - job.id), ())
        breakdown = self.calculator.breakdown(job, partition)
        total = _raised(breakdown, self.highest)
        return replace(breakdown, total=total, kept=True) if total != breakdown.total else breakdown


def prioritised(snapshot: Snapshot, table: PriorityTable | None = None) -> PriorityTable:
    """Return the table of this snapshot. `table`: the last one, or None; it saves work and changes nothing."""
    if snapshot.cluster.priority.kind is _BASIC:
        fifo = table.fifo if table is not None else None
        # tiers come before submission, so the queue in order of submission is no use
        if snapshot.cluster.partitions and any(each.priority_tier != 1 for each in snapshot.cluster.partitions):
            fifo = None
        elif fifo is None:
            fifo = FifoQueue()
        return PriorityTable(snapshot, None, fifo=fifo)
    calculator = _calculator(snapshot, table)
    columns = _columns(snapshot, calculator.context, table)
    order, _ = _ranked(snapshot, calculator, columns)
    return PriorityTable(snapshot, calculator, order, columns)


def highest(snapshot: Snapshot) -> dict[JobId, dict[str, int]]:
    """Return the current priorities of the queue under INCREMENT_ONLY, below which they never fall. Held jobs have
    none; priorities that an administrator has set stay as they are."""
    if snapshot.cluster.priority.kind is _BASIC:
        return {}
    calculator = _calculator(snapshot, None)
    totals: dict[JobId, dict[str, int]] = {}
    if _only_increments(calculator.context):
        for (job, name), total in zip(
            *_ranked(snapshot, calculator, _columns(snapshot, calculator.context, None)), strict=True
        ):
            if total and job.direct_priority is None:
                totals.setdefault(job.id, {})[name] = total
    return totals


def _only_increments(context: PriorityContext) -> bool:
    return context.has(PriorityFlag.INCREMENT_ONLY)


def _ranked(
    snapshot: Snapshot, calculator: PriorityCalculator, columns: Columns | None
) -> tuple[Sequence[PartitionEntry], Iterable[int]]:
    """Return the entries, best first, and their priorities."""
    minimums = snapshot.highest if _only_increments(calculator.context) else {}
    return columns.ranked(calculator, minimums) if columns else _ranked_singly(snapshot, calculator, minimums)


def _by_submission(snapshot: Snapshot) -> list[PartitionEntry]:
    """Order by tier where partitions differ in it, then by submission."""
    if not (snapshot.cluster.partitions or any(job.partitions for job in snapshot.queue)):
        return list(zip(snapshot.queue, repeat("")))
    entries = [(job, name) for job in snapshot.queue for name in partitions_of(job)]
    tiers = {each.name: each.priority_tier for each in snapshot.cluster.partitions}
    if set(tiers.values()) - {1}:  # 1 is also the tier of jobs without a partition, or whose partition is gone
        entries.sort(key=lambda entry: -tiers.get(entry[1], 1))
    return entries


def _calculator(snapshot: Snapshot, table: PriorityTable | None) -> PriorityCalculator:
    last = table.calculator if table is not None else None
    if table is None or last is None or not _still_holds(last.context, table, snapshot):
        context = PriorityContext(snapshot.cluster, snapshot.accounts, snapshot.nodes)
    elif snapshot.usage is table.snapshot.usage:  # fair share is the same: only the moment of the ages may differ
        return PriorityCalculator(last.context, last.shares, snapshot.usage_at)
    else:
        context = last.context
    return PriorityCalculator(context, shares_of(context, snapshot.usage), snapshot.usage_at)


def _still_holds(context: PriorityContext, table: PriorityTable, snapshot: Snapshot) -> bool:
    """Return whether the context still holds: rules are never changed in place, only replaced."""
    same = context.cluster is snapshot.cluster and context.accounts is snapshot.accounts
    return same and table.snapshot.nodes_version == snapshot.nodes_version


def _columns(snapshot: Snapshot, context: PriorityContext, table: PriorityTable | None) -> Columns | None:
    """Return the last table's columns, updated, or new ones; None while the queue is short."""
    columns = table.columns if table is not None else None
    if columns is not None and columns.follow(context, snapshot):
        return columns
    if len(snapshot.queue) <= FEW:
        return None
    from cockpit.sched.priority.columns import Columns

    return Columns(context, snapshot)


def _ranked_singly(
    snapshot: Snapshot, calculator: PriorityCalculator, minimums: Highest
) -> tuple[Sequence[PartitionEntry], Iterable[int]]:
    """Return the entries of a short queue, best first, and their priorities."""
    by_word = not calculator.context.priority.weights.qos
    ranked = []
    for job in snapshot.queue:
        urgency = URGENCY[job.spec.priority] if by_word else 0
        for name in partitions_of(job):
            total = _raised(calculator.breakdown(job, name), minimums)
            tier = calculator.context.tiers.get(name, 1)
            ranked.append(((-tier, -total, urgency, *by_seniority(job)), total, (job, name)))
    ranked.sort(key=lambda each: each[0])
    return [entry for _, _, entry in ranked], [total for _, total, _ in ranked]


def _raised(breakdown: Breakdown, minimums: Highest) -> int:
    """Raise a priority to its minimum; priorities of 0 (held) and those set directly stay."""
    if breakdown.direct or not breakdown.total:
        return breakdown.total
    return max(breakdown.total, minimums.get(breakdown.job, {}).get(breakdown.partition, 0))
