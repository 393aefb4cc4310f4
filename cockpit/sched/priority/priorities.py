"""Who is considered first: every queued job in each of its partitions, by priority.

An explicit value: `prioritised` makes the next table from the last one and what changed since, and one made from
nothing is the same. Short queues are counted job by job; long ones in columns, which give the same doubles.
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
from cockpit.sched.fifo_queue import FifoQueue
from cockpit.sched.priority.factors import MOST
from cockpit.sched.priority.priority_calculator import PriorityCalculator, shares_of
from cockpit.sched.priority.priority_context import PriorityContext
from cockpit.sched.queue_order import URGENCY, PartitionEntry, by_seniority, partitions_of
from cockpit.sched.snapshot import Highest, Snapshot

if TYPE_CHECKING:
    from cockpit.sched.priority.columns import Columns

_FELL_NEVER: Highest = MappingProxyType({})
_BASIC: Final = PriorityKind.BASIC
FEW = 500
"""So many entries are counted one by one before numpy is imported."""


class PriorityTable(msgspec.Struct):
    """Priorities as of one snapshot."""

    snapshot: Snapshot
    calculator: PriorityCalculator | None
    """None: in order of submission (`priority/basic`)."""
    _order: Sequence[PartitionEntry] | None = None
    """None: that of submission, and nobody has asked for it."""
    columns: Columns | None = None
    """For the next table alone; they follow the queue."""
    fifo: FifoQueue | None = None
    """The queue itself, where that is the order. For the next table alone too."""

    @property
    def highest(self) -> Highest:
        """Below which no priority falls."""
        only_increments = self.calculator is not None and _only_increments(self.calculator.context)
        return self.snapshot.highest if only_increments else _FELL_NEVER

    @property
    def order(self) -> Sequence[PartitionEntry]:
        """Every entry of the queue, held jobs included, best first."""
        if self._order is None:
            self._order = _by_submission(self.snapshot)
        return self._order

    def breakdown(self, job: Job, partition: str = "") -> Breakdown:
        """The job's priority in a partition as of the table's moment, also for a job that is running.

        In order of submission: one less with each job id, as in Slurm.
        """
        if self.calculator is None:
            return Breakdown(job.id, partition, 0 if job.held_by else max(1, MOST - job.id), ())
        found = self.calculator.breakdown(job, partition)
        kept = _raised(found, self.highest)
        return replace(found, total=kept, kept=True) if kept != found.total else found


def prioritised(snapshot: Snapshot, table: PriorityTable | None = None) -> PriorityTable:
    """The table of this snapshot. `table` is the last one or None: it saves work and changes nothing."""
    if snapshot.cluster.priority.kind is _BASIC:
        fifo = table.fifo if table is not None else None
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
    """Under INCREMENT_ONLY the priorities that the queue has now: whatever comes, they do not fall below them. Held
    jobs have none, and those that an administrator sets are as they are set."""
    if snapshot.cluster.priority.kind is _BASIC:
        return {}
    calculator = _calculator(snapshot, None)
    found: dict[JobId, dict[str, int]] = {}
    if _only_increments(calculator.context):
        for (job, name), total in zip(
            *_ranked(snapshot, calculator, _columns(snapshot, calculator.context, None)), strict=True
        ):
            if total and job.direct_priority is None:
                found.setdefault(job.id, {})[name] = total
    return found


def _only_increments(context: PriorityContext) -> bool:
    return context.has(PriorityFlag.INCREMENT_ONLY)


def _ranked(
    snapshot: Snapshot, calculator: PriorityCalculator, columns: Columns | None
) -> tuple[Sequence[PartitionEntry], Iterable[int]]:
    """The entries, best first, and their priorities."""
    floor = snapshot.highest if _only_increments(calculator.context) else {}
    return columns.ranked(calculator, floor) if columns else _ranked_singly(snapshot, calculator, floor)


def _by_submission(snapshot: Snapshot) -> list[PartitionEntry]:
    """By tier where partitions differ in it, else as the queue stands."""
    if not (snapshot.cluster.partitions or any(job.partitions for job in snapshot.queue)):
        return list(zip(snapshot.queue, repeat("")))
    entries = [(job, name) for job in snapshot.queue for name in partitions_of(job)]
    tiers = {each.name: each.priority_tier for each in snapshot.cluster.partitions}
    if set(tiers.values()) - {1}:  # that of whoever has no partition, or one that is gone
        entries.sort(key=lambda entry: -tiers.get(entry[1], 1))
    return entries


def _calculator(snapshot: Snapshot, table: PriorityTable | None) -> PriorityCalculator:
    last = table.calculator if table is not None else None
    if table is None or last is None or not _still_holds(last.context, table, snapshot):
        context = PriorityContext(snapshot.cluster, snapshot.accounts, snapshot.nodes)
    elif snapshot.usage is table.snapshot.usage:
        return PriorityCalculator(last.context, last.shares, snapshot.usage_at)
    else:
        context = last.context
    return PriorityCalculator(context, shares_of(context, snapshot.usage), snapshot.usage_at)


def _still_holds(context: PriorityContext, table: PriorityTable, snapshot: Snapshot) -> bool:
    """Rules are never changed, but replaced."""
    same = context.cluster is snapshot.cluster and context.accounts is snapshot.accounts
    return same and table.snapshot.nodes_version == snapshot.nodes_version


def _columns(snapshot: Snapshot, context: PriorityContext, table: PriorityTable | None) -> Columns | None:
    """Those of the last table, brought up to date, or new ones; None while the queue is short."""
    columns = table.columns if table is not None else None
    if columns is not None and columns.follow(context, snapshot):
        return columns
    if len(snapshot.queue) <= FEW:
        return None
    from cockpit.sched.priority.columns import Columns

    return Columns(context, snapshot)


def _ranked_singly(
    snapshot: Snapshot, calculator: PriorityCalculator, floor: Highest
) -> tuple[Sequence[PartitionEntry], Iterable[int]]:
    by_word = not calculator.context.priority.weights.qos
    ranked = []
    for job in snapshot.queue:
        urgency = URGENCY[job.spec.priority] if by_word else 0
        for name in partitions_of(job):
            total = _raised(calculator.breakdown(job, name), floor)
            tier = calculator.context.tiers.get(name, 1)
            ranked.append(((-tier, -total, urgency, *by_seniority(job)), total, (job, name)))
    ranked.sort(key=lambda each: each[0])
    return [entry for _, _, entry in ranked], [total for _, total, _ in ranked]


def _raised(found: Breakdown, floor: Highest) -> int:
    """Priorities that are 0 (held) or set directly stay."""
    if found.direct or not found.total:
        return found.total
    return max(found.total, floor.get(found.job, {}).get(found.partition, 0))
