"""The head's guard where the head asks for CPUs and memory alone on one node of one kind without cards: there numbers
say all, and no room need be made up that nobody is in yet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from cockpit.model.ids import JobId, Millis
from cockpit.model.node import Allocation, Placement
from cockpit.sched.decisions import Reserved
from cockpit.sched.index import Index
from cockpit.sched.shape import Shape

if TYPE_CHECKING:
    from cockpit.sched.nodes.floor import Floor

Free = dict[int, tuple[int, int]]
"""CPUs and memory by order of node."""


class PlainGuard(msgspec.Struct):
    """As `reservation.Guard`."""

    head: JobId
    shape: Shape
    reserved_at: Millis
    _free: Free
    """Of the nodes that hold the head at its moment, what is free on them then."""
    _floor: Floor
    _reserved: frozenset[int] | None = None

    def admits(self, _job: JobId, end: Millis, placement: Placement) -> bool:
        """Whether the head still has its room if a job holds this placement until `end`."""
        if end <= self.reserved_at:
            return True
        position, found, (spec,) = self._floor.position, self._free, self.shape.specs
        lost = 0
        for part in placement:
            free = found.get(position[part.node])
            if free is not None and (free[0] - part.cpus < spec.cpus or free[1] - part.memory_mib < spec.memory_mib):
                lost += 1
        return len(found) > lost

    def beside(self, _job: JobId, end: Millis, placement: Placement) -> PlainGuard:
        """The guard once a job, which was admitted, has started."""
        if end <= self.reserved_at:
            return self
        met = self._met(placement)
        left = self._free | met
        for order in self._lost(met):
            del left[order]
        return PlainGuard(self.head, self.shape, self.reserved_at, left, self._floor)

    def reservation(self) -> Reserved:
        (spec,) = self.shape.specs
        name = self._floor.nodes[self._chosen].name
        return Reserved(self.head, self.reserved_at, 0, (Allocation(0, name, spec.cpus, spec.memory_mib),))

    @property
    def reserved_nodes(self) -> frozenset[int]:
        """The order of the node that the head gets as things stand."""
        if self._reserved is None:
            self._reserved = frozenset((self._chosen,))
        return self._reserved

    @property
    def _chosen(self) -> int:
        """The tightest."""
        return min(self._free, key=lambda order: (self._free[order], order))

    def _met(self, placement: Placement) -> Free:
        """What a job there would leave of those nodes that it is on."""
        position, found = self._floor.position, self._free
        left: Free = {}
        for part in placement:
            order = position[part.node]
            if order in found:
                cpus, memory_mib = found[order]
                left[order] = (cpus - part.cpus, memory_mib - part.memory_mib)
        return left

    def _lost(self, met: Mapping[int, tuple[int, int]]) -> list[int]:
        (spec,) = self.shape.specs
        return [order for order, (cpus, memory) in met.items() if cpus < spec.cpus or memory < spec.memory_mib]


def reserve_plainly(index: Index, now: Millis, head: JobId, shape: Shape, kind: int) -> PlainGuard | None:
    """As `reservation.reserve`, of a head that has no room now, on the nodes of that kind."""
    (spec,) = shape.specs
    floor, rooms = index.floor, index.rooms
    if index.lone:
        return _reserve_there(index, now, head, shape)
    freed: Free = {}
    found: Free = {}
    moment = now
    for end, _, located in index.departures:
        if end > moment:
            if found:
                break
            moment = end
        for order, part in located:
            if floor.kind_of[order] == kind:
                cpus, memory_mib = freed.get(order) or (rooms[order].cpus, rooms[order].memory_mib)
                free = freed[order] = (cpus + part.cpus, memory_mib + part.memory_mib)
                if free[0] >= spec.cpus and free[1] >= spec.memory_mib:
                    found[order] = free
    return PlainGuard(head, shape, moment, found, floor) if found else None


def _reserve_there(index: Index, now: Millis, head: JobId, shape: Shape) -> PlainGuard | None:
    """As `reserve_plainly`, on the only node that there is: where everybody else is, too."""
    room, (spec,) = index.rooms[0], shape.specs
    cpus, memory_mib, wanted, least_memory = room.cpus, room.memory_mib, spec.cpus, spec.memory_mib
    leaving = iter(index.departures)
    for end, _, located in leaving:
        for _, part in located:
            cpus += part.cpus
            memory_mib += part.memory_mib
        if cpus >= wanted and memory_mib >= least_memory:
            moment = max(end, now)
            break
    else:
        return None
    for end, _, located in leaving:
        if end > moment:
            break
        for _, part in located:
            cpus += part.cpus
            memory_mib += part.memory_mib
    return PlainGuard(head, shape, moment, {0: (cpus, memory_mib)}, index.floor)
