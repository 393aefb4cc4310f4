"""The head's guard: the first job that waits for room starts no later because of those that pass it.

EASY backfilling in its simple form (Lifka, "The ANL/IBM SP scheduling system", 1995): running jobs are taken to use
their whole limits; the head's moment is the first at which it has room; a later job may start now if it ends by then or
if the head still has its room beside it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from heapq import heapify, heappop
from itertools import repeat

from cockpit.model.ids import JobId, Millis, NodeName
from cockpit.model.node import Placement
from cockpit.model.spec import NodeSpec
from cockpit.sched.index import Index
from cockpit.sched.placement import allocated, fitting, pinned
from cockpit.sched.plan import Reserved
from cockpit.sched.room import Room, best_fit_rank, shortfall
from cockpit.sched.shape import Shape

Rooms = dict[int, Room]
"""By order of node: those that hold one replica of the head at its moment."""


class Guard:
    """Where the head can be at its moment, kept up to date while later jobs start."""

    def __init__(
        self, head: JobId, shape: Shape, reserved_at: Millis, rooms: Sequence[Rooms], position: Mapping[NodeName, int]
    ) -> None:
        self.head = head
        self.reserved_at = reserved_at
        self._shape = shape
        self._rooms = rooms
        """One for each of the head's alternatives."""
        self._position = position

    def admits(self, job: JobId, end: Millis, placement: Placement) -> bool:
        """Whether the head still has its room if the job holds this placement until `end`."""
        return end <= self.reserved_at or _enough(self._beside(job, placement), self._shape)

    def start(self, job: JobId, end: Millis, placement: Placement) -> None:
        """The job, which was admitted, starts."""
        if end > self.reserved_at:
            self._rooms = self._beside(job, placement)

    def reservation(self) -> Reserved:
        spec_index = self._spec_index()
        placement = allocated(self._shape, self._shape.specs[spec_index], self._chosen())
        return Reserved(self.head, self.reserved_at, spec_index, placement)

    def reserved_nodes(self) -> set[int]:
        """Orders of the nodes that the head gets as things stand."""
        return {room.order for room in self._chosen()}

    def _spec_index(self) -> int:
        return next(number for number, rooms in enumerate(self._rooms) if len(rooms) >= self._shape.nodes)

    def _chosen(self) -> list[Room]:
        number = self._spec_index()
        spec = self._shape.specs[number]
        ranked = sorted(self._rooms[number].values(), key=lambda room: best_fit_rank(room, spec))
        return ranked[: self._shape.nodes]

    def _beside(self, job: JobId, placement: Placement) -> list[Rooms]:
        """The head's rooms if the job is still there at its moment."""
        beside = [rooms.copy() for rooms in self._rooms]
        for rooms, spec in zip(beside, self._shape.specs, strict=True):
            for part in placement:
                order = self._position[part.node]
                if order in rooms:
                    room = rooms.pop(order).having((job, part))
                    if _fits(room, self._shape, spec):
                        rooms[order] = room
        return beside


class Horizon:
    """What one cycle knows of when resources come free. Holds the cycle's working index and its ends, both of which
    grow with the jobs it starts."""

    def __init__(self, index: Index, ends: Mapping[JobId, Millis], now: Millis) -> None:
        self._index = index
        self._ends = ends
        self._now = now

    def guard(self, head: JobId, shape: Shape) -> Guard | None:
        """Let the running jobs end one after the other until the head has room; None when nobody knows that moment."""
        eligible = [_eligible(self._index, shape, spec) for spec in shape.specs]
        if not any(map(self._has_room_some_day, repeat(shape), shape.specs, eligible)):
            return None
        rooms = [{room.order: room for room in fitting(self._index, shape, spec)} for spec in shape.specs]
        for moment, emptier in self._emptying(set().union(*eligible)):
            for alternative, spec, orders in zip(rooms, shape.specs, eligible, strict=True):
                fit = (room for room in emptier if room.order in orders and _fits(room, shape, spec))
                alternative.update((room.order, room) for room in fit)
            if _enough(rooms, shape):
                return Guard(head, shape, moment, rooms, self._index.floor.position)
        raise AssertionError("room some day, but at no moment")

    def _has_room_some_day(self, shape: Shape, spec: NodeSpec, eligible: set[int]) -> bool:
        """Whether an alternative has room once everybody is gone of whom it is known when."""
        if not self._lasting:
            return True  # else the shape would be infeasible
        floor = self._index.floor
        big = (nodes for empty, nodes in floor.sizes if _fits(empty, shape, spec))
        blocked = {order for order, room in self._lasting.items() if not _fits(room, shape, spec)}
        return len({floor.position[node.name] for nodes in big for node in nodes} & eligible - blocked) >= shape.nodes

    @cached_property
    def _lasting(self) -> dict[int, Room]:
        """By order: rooms that somebody stays in, nobody knows how long, with only these left."""
        index = self._index
        staying = [job for job in index.placed if job not in self._ends]
        orders = {order for job in staying for order, _ in index.located(index.placed[job])}
        return {order: index.rooms[order].without(self._ends) for order in orders}

    def _emptying(self, watched: set[int]) -> Iterator[tuple[Millis, list[Room]]]:
        """Moments at which jobs leave, soonest first, with the watched rooms they leave as these are then."""
        gone: dict[int, set[JobId]] = {}
        for moment, jobs in _departures(self._ends, self._now):
            left = set()
            for job in jobs:
                for order, _ in self._index.located(self._index.placed.get(job, ())):
                    gone.setdefault(order, set()).add(job)
                    left.add(order)
            yield moment, [self._index.rooms[order].without(gone[order]) for order in sorted(left & watched)]


def _eligible(index: Index, shape: Shape, spec: NodeSpec) -> set[int]:
    if shape.node_names:
        return {room.order for room in pinned(index, shape)}
    return {order for kind in index.floor.kinds_for(shape, spec) for order in index.floor.members[kind.number]}


def _departures(ends: Mapping[JobId, Millis], now: Millis) -> Iterator[tuple[Millis, list[JobId]]]:
    """Jobs by the moment they are gone, soonest first; those over their limit are gone any moment."""
    heap = [(max(end, now), job) for job, end in ends.items()]
    heapify(heap)
    while heap:
        moment = heap[0][0]
        jobs = []
        while heap and heap[0][0] == moment:
            jobs.append(heappop(heap)[1])
        yield moment, jobs


def _enough(rooms: Sequence[Rooms], shape: Shape) -> bool:
    return any(len(each) >= shape.nodes for each in rooms)


def _fits(room: Room, shape: Shape, spec: NodeSpec) -> bool:
    return shortfall(room, spec, exclusive=shape.exclusive) is None
