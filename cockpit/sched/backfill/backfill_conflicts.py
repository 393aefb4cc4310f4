"""Explains conservative backfill: for each waiting job that fits now, finds the job ahead that it would delay.

The plan is made once more in the order of the queue. Before a job's own slot is reserved, the plan shows how long it
could run on free nodes; the slot that begins then belongs to the job that it would delay.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Protocol

from cockpit.model.ids import JobId, Millis
from cockpit.model.reasons import WouldDelay
from cockpit.sched.backfill.easy import BackfillConflicts
from cockpit.sched.decisions import Reserved
from cockpit.sched.index import Index
from cockpit.sched.placement import fits_now
from cockpit.sched.shape import Shape


class PlannedSlots(Protocol):
    """A conservative plan in which nothing is reserved yet."""

    def reserve_slot(self, index: Index, slot: Reserved, end: Millis) -> None:
        """Reserve the slot."""
        ...

    def open_until(self, index: Index, shape: Shape, moment: Millis) -> list[int]:
        """Return the nodes where the shape may run from now until `moment`; none if they are too few."""
        ...


def first_delayed(
    plan: PlannedSlots,
    index: Index,
    waiting: Mapping[tuple[JobId, str], Shape],
    slots: Mapping[JobId, Reserved],
    until: Mapping[JobId, Millis],
) -> BackfillConflicts:
    """Return, for waiting jobs that fit now, the first job ahead in the queue that each of them would delay, and when
    that job begins. The waiting job could run until then."""
    search = _ConflictSearch(plan, index)
    conflicts: dict[tuple[JobId, str], WouldDelay] = {}
    fits = {shape: fits_now(index, shape) for shape in waiting.values()}
    reserved: set[JobId] = set()
    for (job, partition), shape in waiting.items():
        if fits[shape] and (conflict := search.first_conflict(shape)) is not None:
            conflicts[job, partition] = WouldDelay(conflict.job, conflict.reserved_at)
        # its own slot is reserved only now: above, the plan must have the slots of the jobs ahead alone. A job of
        # several partitions has one slot
        if job in slots and job not in reserved:
            reserved.add(job)
            search.ahead.append(slots[job])
            plan.reserve_slot(index, slots[job], until[job])
    return conflicts


class _ConflictSearch:
    """Finds conflicts with the slots that are ahead so far; jobs of one shape share the search."""

    def __init__(self, plan: PlannedSlots, index: Index) -> None:
        self.ahead: list[Reserved] = []
        self._plan, self._index = plan, index
        self._delayed_by_shape: dict[Shape, tuple[Reserved, int]] = {}
        """The delayed job and the number of jobs ahead that were considered, by shape. Jobs added later change the
        answer only if they begin sooner."""

    def first_conflict(self, shape: Shape) -> Reserved | None:
        """Return the slot ahead whose start a job of the shape would delay by running beyond it; None: no slot limits
        it."""
        conflict, count = self._delayed_by_shape.get(shape, (None, 0))
        if conflict is None or any(each.reserved_at < conflict.reserved_at for each in self.ahead[count:]):
            conflict = self._find_conflict(shape, self.ahead)
        if conflict is not None:
            self._delayed_by_shape[shape] = conflict, len(self.ahead)
        return conflict

    def _find_conflict(self, shape: Shape, ahead: Sequence[Reserved]) -> Reserved | None:
        """Find the slot among those ahead that begins when too few nodes stay free for the shape."""
        moments = sorted({each.reserved_at for each in ahead})
        # bisection: nodes that are free until a later moment are also free until each earlier one
        count = bisect_left(moments, 1, key=lambda moment: not self._open(shape, moment))
        if not count:
            return None
        # the last moment until which enough nodes stay free: whatever begins then ends that
        moment = moments[count - 1]
        nodes = {self._index.nodes_free[order].node.name for order in self._open(shape, moment)}
        then = [each for each in ahead if each.reserved_at == moment]
        # of several that begin then, one on these nodes
        return next((each for each in then if any(part.node in nodes for part in each.placement)), then[0])

    def _open(self, shape: Shape, moment: Millis) -> list[int]:
        return self._plan.open_until(self._index, shape, moment)
