"""Whom a job would delay that has room now, under backfill by which nobody is delayed: by going through the plan again,
in the order of the queue."""

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
    """A plan in which nothing is reserved yet."""

    def keep(self, index: Index, slot: Reserved, end: Millis) -> None:
        """It is reserved from now on."""
        ...

    def open_until(self, index: Index, shape: Shape, moment: Millis) -> list[int]:
        """The nodes where the shape may be from now until then; none where they are too few."""
        ...


def first_delayed(
    plan: PlannedSlots,
    index: Index,
    waiting: Mapping[tuple[JobId, str], Shape],
    slots: Mapping[JobId, Reserved],
    until: Mapping[JobId, Millis],
) -> BackfillConflicts:
    """Of those who wait, in the order of the queue, and have room now: the first ahead of them whom they would delay.
    They may stay until that one begins."""
    sight = _Sight(plan, index)
    found: dict[tuple[JobId, str], WouldDelay] = {}
    node_free = {shape: fits_now(index, shape) for shape in waiting.values()}
    reserved: set[JobId] = set()
    for (job, partition), shape in waiting.items():
        if node_free[shape] and (met := sight.first_met(shape)) is not None:
            found[job, partition] = WouldDelay(met.job, met.reserved_at)
        if job in slots and job not in reserved:  # else it is there by another partition
            reserved.add(job)
            sight.ahead.append(slots[job])
            plan.keep(index, slots[job], until[job])
    return found


class _Sight:
    def __init__(self, plan: PlannedSlots, index: Index) -> None:
        self.ahead: list[Reserved] = []
        self._line, self._index = plan, index
        self._known: dict[Shape, tuple[Reserved, int]] = {}
        """What was found for a shape, of how many: who begins no sooner changes nothing."""

    def first_met(self, shape: Shape) -> Reserved | None:
        """Of those ahead: at whose beginning the shape has to be gone again."""
        met, count = self._known.get(shape, (None, 0))
        if met is None or any(each.reserved_at < met.reserved_at for each in self.ahead[count:]):
            met = self._sought(shape, self.ahead)
        if met is not None:
            self._known[shape] = met, len(self.ahead)
        return met

    def _sought(self, shape: Shape, ahead: Sequence[Reserved]) -> Reserved | None:
        moments = sorted({each.reserved_at for each in ahead})
        stays = bisect_left(moments, 1, key=lambda moment: not self._open(shape, moment))
        if not stays:
            return None
        moment = moments[stays - 1]
        nodes = {self._index.nodes_free[order].node.name for order in self._open(shape, moment)}
        then = [each for each in ahead if each.reserved_at == moment]
        return next((each for each in then if any(part.node in nodes for part in each.placement)), then[0])

    def _open(self, shape: Shape, moment: Millis) -> list[int]:
        return self._line.open_until(self._index, shape, moment)
