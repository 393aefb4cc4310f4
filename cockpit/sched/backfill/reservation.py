"""The head's guard: the first job that waits for room starts no later because of those that pass it.

EASY backfilling in its simple form (Lifka, "The ANL/IBM SP scheduling system", 1995): running jobs are taken to use
their whole limits; the head's moment is the first at which it has room; a later job may start now if it ends by then or
if the head still has its room beside it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from heapq import merge
from operator import itemgetter

from msgspec.structs import replace

from cockpit.model.cluster import Backfill
from cockpit.model.ids import JobId, Millis, NodeName
from cockpit.model.job import Job
from cockpit.model.node import Allocation, Placement
from cockpit.model.spec import NodeSpec
from cockpit.sched.backfill.mixed_guard import MixedGuard, reserve_mixed
from cockpit.sched.backfill.plain_guard import PlainGuard, reserve_plainly
from cockpit.sched.decisions import Reserved
from cockpit.sched.index import Index
from cockpit.sched.nodes.reserved import closed
from cockpit.sched.nodes.room import Room, best_fit_rank, shortfall
from cockpit.sched.placement import allocated, eligible, fitting, has_room
from cockpit.sched.shape import Shape

Rooms = dict[int, Room]
"""By order of node: those that hold one replica of the head at its moment."""


class Guard:
    """Where the head can be at its moment."""

    def __init__(
        self, head: JobId, shape: Shape, reserved_at: Millis, rooms: Sequence[Rooms], position: Mapping[NodeName, int]
    ) -> None:
        self.head = head
        self.reserved_at = reserved_at
        self.shape = shape
        self._rooms = rooms
        """One for each of the head's alternatives."""
        self._position = position

    def admits(self, job: JobId, end: Millis, placement: Placement) -> bool:
        """Whether the head still has its room if the job holds this placement until `end`."""
        return end <= self.reserved_at or any(
            len(rooms) - sum(room is None for _, room in self._met(rooms, spec, job, placement)) >= self.shape.nodes
            for rooms, spec in zip(self._rooms, self.shape.specs, strict=True)
        )

    def beside(self, job: JobId, end: Millis, placement: Placement) -> Guard:
        """The guard once the job, which was admitted, has started."""
        if end <= self.reserved_at:
            return self
        beside = []
        for rooms, spec in zip(self._rooms, self.shape.specs, strict=True):
            met = dict(self._met(rooms, spec, job, placement))
            left = ((order, met.get(order, room)) for order, room in rooms.items())
            beside.append({order: room for order, room in left if room is not None})
        return Guard(self.head, self.shape, self.reserved_at, beside, self._position)

    @property
    def places(self) -> list[Collection[int]]:
        """Nodes of these rooms, by alternative."""
        return [rooms.keys() for rooms in self._rooms]

    def reservation(self) -> Reserved:
        spec_index = self._spec_index()
        placement = allocated(self.shape, self.shape.specs[spec_index], self._chosen())
        return Reserved(self.head, self.reserved_at, spec_index, placement)

    @cached_property
    def reserved_nodes(self) -> frozenset[int]:
        """Orders of the nodes that the head gets as things stand."""
        return frozenset([room.order for room in self._chosen()])

    def _spec_index(self) -> int:
        return next(number for number, rooms in enumerate(self._rooms) if len(rooms) >= self.shape.nodes)

    def _chosen(self) -> list[Room]:
        number = self._spec_index()
        spec = self.shape.specs[number]
        ranked = sorted(self._rooms[number].values(), key=lambda room: best_fit_rank(room, spec))
        return ranked[: self.shape.nodes]

    def _met(self, rooms: Rooms, spec: NodeSpec, job: JobId, placement: Placement) -> Iterator[tuple[int, Room | None]]:
        """What becomes of those of the rooms in which the job still is at the head's moment; None: too little."""
        for part in placement:
            order = self._position[part.node]
            if (room := rooms.get(order)) is not None:
                enough = room.cpus - part.cpus >= spec.cpus  # which spares making most rooms
                left = room.having(job, part) if enough else None
                yield order, left if left is not None and _fits(left, self.shape, spec) else None


AnyGuard = Guard | PlainGuard | MixedGuard


def within(guard: AnyGuard, index: Index) -> Guard | MixedGuard | None:
    """The guard of the same moment in another index, in which some leave later; None: the head would be delayed."""
    if isinstance(guard, MixedGuard):
        return guard.within(index)
    shape, floor = guard.shape, index.floor
    gone = {job for job, end in index.ends.items() if end <= guard.reserved_at}
    found: list[Rooms] = []
    for number, spec in enumerate(shape.specs):
        places: Collection[int] = eligible(index, shape, spec)
        if isinstance(guard, Guard) and floor.reservations:
            places = guard.places[number]
        rooms = {order: index.rooms[order].without(gone) for order in places}
        found.append({order: room for order, room in rooms.items() if _fits(room, shape, spec)})
    return Guard(guard.head, shape, guard.reserved_at, found, floor.position) if _enough(found, shape) else None


def is_certain(index: Index, backfill: Backfill) -> bool:
    """Whether `reserve` finds a moment for every job that can start at all, if its replicas are alike."""
    return len(index.ends) == len(index.placed) and not (index.floor.reservations or backfill.window_seconds)


def reserve(index: Index, now: Millis, backfill: Backfill, head: Job, shape: Shape) -> AnyGuard | None:
    """Let those who hold resources go one after the other until the head, which has no room now, has some; None when
    nobody knows that moment, or it lies beyond the window."""
    if shape.spread is not None:
        return reserve_mixed(index, now, backfill, head, shape, since=now)
    if shape.helpers:
        return _reserve_for_all(index, now, backfill, head, shape)
    if (kind := _plain(index, backfill, shape)) is not None:
        return reserve_plainly(index, now, head.id, shape, kind)
    return reserve_by_rooms(index, now, backfill, head, shape)


def _reserve_for_all(index: Index, now: Millis, backfill: Backfill, head: Job, shape: Shape) -> MixedGuard | None:
    """Of replicas that are not alike: not before each kind of them has room by itself."""
    since = now
    for kind in shape.kinds:
        if not has_room(index, kind):
            guard = reserve(index, now, backfill, head, kind)
            if guard is None:
                return None
            since = max(since, guard.reserved_at)
    return reserve_mixed(index, now, backfill, head, shape, since=since)


def reserve_by_rooms(index: Index, now: Millis, backfill: Backfill, head: Job, shape: Shape) -> Guard | None:
    """As `reserve`, whatever the head asks for."""
    shape = replace(shape, barred=()) if shape.barred else shape  # whom a reservation keeps out now may come in later
    places = [eligible(index, shape, spec) for spec in shape.specs]
    watched = places[0].union(*places[1:]) if len(places) > 1 else places[0]
    if len(index.ends) < len(index.placed) and not _has_room_some_day(index, shape, places):
        return None
    rooms: list[Rooms] = [{room.order: room for room in fitting(index, shape, spec)} for spec in shape.specs]
    window, grain = 1000 * backfill.window_seconds, 1000 * backfill.resolution_seconds
    left: dict[int, _Leaving] = {}
    for leaves_at, leaving in _changes(index, now, shape, watched):
        moment = Millis(-(-leaves_at // grain) * grain) if grain else leaves_at
        if window and moment > now + window:
            return None
        left |= leaving
        if max(map(len, rooms)) + len(left) < shape.nodes:
            continue  # however empty they are, they are too few
        emptier = [each.room() for each in left.values()]
        left.clear()
        for alternative, spec, orders in zip(rooms, shape.specs, places, strict=True):
            alternative.update(
                (room.order, room) for room in emptier if room.order in orders and _fits(room, shape, spec)
            )
        usable = _unreserved(index, shape, rooms, moment, 1000 * head.spec.time_limit_seconds)
        if _enough(usable, shape):
            return Guard(head.id, shape, moment, usable, index.floor.position)
    return None  # only inside a reservation that ends too soon


def _plain(index: Index, backfill: Backfill, shape: Shape) -> int | None:
    """The kind of node that it is about, where numbers say all and moments are what they are."""
    floor = index.floor
    if floor.reservations or backfill.window_seconds or backfill.resolution_seconds:
        return None
    kind = floor.plain_kind[shape]
    return kind if kind is not None and not floor.kinds[kind].cards else None


def _unreserved(index: Index, shape: Shape, rooms: list[Rooms], moment: Millis, span: int) -> list[Rooms]:
    """Those of the rooms in which the head would run into no reservation from this moment on."""
    floor = index.floor
    if not floor.reservations:
        return rooms
    named = floor.reservations.get(shape.reservation)
    if named is not None and moment + span > named.end_at:
        return [{} for _ in rooms]
    kept = closed(floor.reservations, shape.reservation, moment, moment + span)
    return [
        {order: room for order, room in each.items() if kept.isdisjoint(floor.kinds[room.kind].reservations)}
        for each in rooms
    ]


def _changes(
    index: Index, now: Millis, shape: Shape, watched: Collection[int]
) -> Iterator[tuple[Millis, dict[int, _Leaving]]]:
    """Moments, soonest first, at which the watched rooms get emptier or a reservation is over."""
    emptying, reservations = _emptying(index, now, shape, watched), index.floor.reservations
    if not reservations:
        return emptying
    over = sorted({Millis(each.end_at) for each in reservations.values() if each.end_at > now})
    return merge(emptying, ((end, {}) for end in over), key=itemgetter(0))


def _has_room_some_day(index: Index, shape: Shape, places: Sequence[Collection[int]]) -> bool:
    """Whether an alternative has room once everybody is gone of whom it is known when."""
    lasting, floor = _lasting(index), index.floor
    for spec, orders in zip(shape.specs, places, strict=True):
        big = (node for empty, nodes in floor.sizes if _fits(empty, shape, spec) for node in nodes)
        blocked = {order for order, room in lasting.items() if not _fits(room, shape, spec)}
        if len({floor.position[node.name] for node in big}.intersection(orders) - blocked) >= shape.nodes:
            return True
    return False


def _lasting(index: Index) -> dict[int, Room]:
    """By order: rooms that somebody stays in, nobody knows how long, with only these left."""
    staying = [job for job in index.placed if job not in index.ends]
    orders = {order for job in staying for order, _ in index.located(index.placed[job])}
    return {order: index.rooms[order].without(index.ends) for order in orders}


def _emptying(
    index: Index, now: Millis, shape: Shape, watched: Collection[int]
) -> Iterator[tuple[Millis, dict[int, _Leaving]]]:
    """Moments at which jobs leave, soonest first, with those of the watched rooms that they leave, by order, that then
    may hold a replica as far as numbers say. Those over their limit are gone any moment."""
    least_cpus = min([spec.cpus for spec in shape.specs])
    least_memory = min([spec.memory_mib for spec in shape.specs])
    least_cards = min([spec.whole_cards for spec in shape.specs])
    leaving: dict[int, _Leaving] = {}
    left: dict[int, _Leaving] = {}
    moment = now
    for end, job, located in index.departures:
        if end > moment:
            if left:
                yield moment, left
                left = {}
            moment = end
        for order, part in located:
            if order not in watched:
                continue
            room = leaving.get(order)
            if room is None:
                room = leaving[order] = _Leaving(index.rooms[order])
            room.leave(job, part)
            if room.cpus >= least_cpus and room.memory_mib >= least_memory and room.cards >= least_cards:
                left[order] = room
    if left:
        yield moment, left


class _Leaving:
    """A room that tenants leave one after the other. What is free is counted as they go, the room made when asked."""

    __slots__ = ("_gone", "_room", "cards", "cpus", "memory_mib")

    def __init__(self, room: Room) -> None:
        self._room = room
        self._gone: list[JobId] = []
        self.cpus, self.memory_mib, self.cards = room.cpus, room.memory_mib, len(room.idle)
        """No more cards than these are idle."""

    def leave(self, job: JobId, part: Allocation) -> None:
        self._gone.append(job)
        self.cpus += part.cpus
        self.memory_mib += part.memory_mib
        self.cards += len(part.slices)

    def room(self) -> Room:
        for job in self._gone:
            self._room = self._room.left_by(job)
        self._gone.clear()
        return self._room


def _enough(rooms: Sequence[Rooms], shape: Shape) -> bool:
    return any(len(each) >= shape.nodes for each in rooms)


def _fits(room: Room, shape: Shape, spec: NodeSpec) -> bool:
    return shortfall(room, spec, exclusive=shape.exclusive) is None
