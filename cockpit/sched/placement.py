"""Where a job would start right now: all replicas of a gang, each on a node of its own, or none."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from operator import attrgetter
from typing import Protocol

import msgspec
from msgspec.structs import replace

from cockpit.model.ids import NodeName
from cockpit.model.node import Allocation, Placement
from cockpit.model.spec import NodeSpec
from cockpit.sched.index import Index
from cockpit.sched.nodes.floor import admits
from cockpit.sched.nodes.room import Room, allocate, best_fit_rank, share_rank, sharing_cards, shortfall
from cockpit.sched.nodes.shelves import Shelves, walk
from cockpit.sched.shape import Shape
from cockpit.sched.spreading import share_of, spread_over


class Found(msgspec.Struct, frozen=True, gc=False):
    """Room for a whole job."""

    spec_index: int
    """The first alternative that has room."""
    placement: Placement


class Fit(Protocol):
    """Another order of rooms, and of cards in a room, than best fit."""

    def rooms(self, index: Index, shape: Shape, spec: NodeSpec) -> Iterator[Room]:
        """Every room in service that holds one replica now, best first."""
        ...

    def ranked(self, rooms: Sequence[Room], spec: NodeSpec) -> list[Room]:
        """Those of the rooms that hold one replica, best first."""
        ...

    def card(self, room: Room, spec: NodeSpec) -> int | None:
        """The card to share in a room where it fits; None for whole cards or none."""
        ...


def find(index: Index, shape: Shape, fit: Fit | None = None, avoid: Collection[int] = frozenset()) -> Found | None:
    """Room for the shape, not on the nodes (by order) to avoid; None when no alternative has enough."""
    floor = index.floor
    if fit is None and (kind := floor.plain_kind[shape]) is not None:
        spec = shape.specs[0]
        order = index.tightest(kind, spec, avoid)
        if order is None:
            return None
        return Found(0, (Allocation(0, floor.nodes[order].name, spec.cpus, spec.memory_mib),))
    if shape.spread is not None:
        return find_spread((each for each in fitting(index, shape, shape.specs[0]) if each.order not in avoid), shape)
    if shape.helpers:
        return _find_mixed(index, shape, fit, avoid)
    fit = None if shape.exclusive else fit  # whole nodes leave no fragments to choose between
    for spec_index, spec in enumerate(shape.specs):
        if spec.cpus > index.widest or (spec.card_milli and _lacks_nodes(index, shape, spec)):
            continue
        rooms = _choose(index, shape, spec, fit, avoid)
        if len(rooms) == shape.nodes:
            return Found(spec_index, allocated(shape, spec, rooms, fit))
    return None


def find_spread(rooms: Iterable[Room], shape: Shape) -> Found | None:
    """Room for tasks that share out over any number of these rooms."""
    shares = spread_over(rooms, shape)
    if shares is None:
        return None
    spec, spread = shape.specs[0], shape.spread
    assert spread is not None
    in_order = sorted(shares, key=lambda share: share[0].order)
    parts = [
        allocate(room, share_of(spec, spread, tasks), rank, exclusive=shape.exclusive)
        for rank, (room, tasks) in enumerate(in_order)
    ]
    return Found(0, tuple(parts))


def _lacks_nodes(index: Index, shape: Shape, spec: NodeSpec) -> bool:
    """A cheap no: too few nodes have cards and CPUs enough, as far as the numbers of a single kind of node say it."""
    if not spec.whole_cards or len(kinds := index.floor.kinds_for(shape, spec)) != 1:
        return False
    return index.by_whole[kinds[0].number].has_fewer(shape.nodes, spec.whole_cards, spec.cpus)


def _find_mixed(index: Index, shape: Shape, fit: Fit | None, avoid: Collection[int]) -> Found | None:
    """Of a job whose replicas are not alike: the most demanding kind chooses first. All of it, or nothing."""
    taken = set(avoid)
    found: dict[Shape, Found] = {}
    for kind in by_demand(shape.kinds):
        place = find(index, kind, fit, taken)
        if place is None:
            return None
        taken |= {order for order, _ in index.located(place.placement)}
        found[kind] = place
    return joined(shape, found)


def by_demand(kinds: Iterable[Shape]) -> list[Shape]:
    """The most demanding first."""
    return sorted(kinds, key=lambda each: _demand(each.specs[0]), reverse=True)


def joined(shape: Shape, found: Mapping[Shape, Found]) -> Found:
    """Room for a whole job whose replicas are not alike, of that for each kind of them."""
    kinds = shape.kinds
    first = found[kinds[0]]
    own, like_first = first.placement[: shape.nodes], first.placement[shape.nodes :]
    left = {kind.specs[0]: iter(found[kind].placement) for kind in kinds[1:]}
    left.setdefault(shape.specs[0], iter(like_first))
    placement = (*own, *(next(left[spec]) for spec in shape.helpers))
    return Found(first.spec_index, tuple([replace(part, rank=rank) for rank, part in enumerate(placement)]))


def _demand(spec: NodeSpec) -> tuple[int, int, int]:
    return spec.card_milli, spec.cpus, spec.memory_mib


def find_among(rooms: Sequence[Room], shape: Shape, spec_index: int, fit: Fit | None = None) -> Found:
    """The best of these rooms, enough of which hold a replica each."""
    spec = shape.specs[spec_index]
    fit = None if shape.exclusive else fit
    ranked = sorted(rooms, key=lambda room: best_fit_rank(room, spec)) if len(rooms) > 1 else list(rooms)
    chosen = (fit.ranked(rooms, spec) if fit else ranked)[: shape.nodes]
    return Found(spec_index, allocated(shape, spec, chosen, fit))


def has_room(index: Index, shape: Shape) -> bool:
    """Whether `find` would find any."""
    if (kind := index.floor.plain_kind[shape]) is not None:
        return index.tightest(kind, shape.specs[0]) is not None
    if shape.is_uneven:
        return find(index, shape) is not None
    if index.too_narrow_for(shape.specs):
        return False
    return any(len(_choose(index, shape, spec, None, ())) == shape.nodes for spec in shape.specs)


def eligible(index: Index, shape: Shape, spec: NodeSpec) -> frozenset[int]:
    """Orders of the nodes in service where a replica could be at some time, if they are big enough."""
    if shape.node_names:
        return frozenset(room.order for room in pinned(index, shape))
    return index.floor.places_for(shape, spec)


def allocated(shape: Shape, spec: NodeSpec, rooms: Collection[Room], fit: Fit | None = None) -> Placement:
    """One replica in each room, ranks in the cluster's order of nodes so that neighbours stay neighbours."""

    if len(rooms) == 1 and fit is None:
        (room,) = rooms
        return (allocate(room, spec, 0, exclusive=shape.exclusive),)
    in_order = sorted(rooms, key=_order_of)
    return tuple(
        [
            allocate(room, spec, rank, exclusive=shape.exclusive, card=fit.card(room, spec) if fit else None)
            for rank, room in enumerate(in_order)
        ]
    )


_order_of = attrgetter("order")


def fitting(index: Index, shape: Shape, spec: NodeSpec) -> Iterator[Room]:
    """Every room in service that holds one replica now, best fit first (the order of `room.best_fit_rank`)."""
    rooms = _fitting(index, shape, spec)
    return rooms if spec.cpus else (room for room in rooms if not _is_all_taken(room))


def _is_all_taken(room: Room) -> bool:
    """One tenant has all of it, and may not want others beside itself: nothing is left over there for best effort."""
    if room.cpus or room.memory_mib or len(room.tenants) != 1:
        return False
    (tenant,) = room.tenants.values()
    return tenant.cpus == room.node.cpus and tenant.memory_mib == room.node.memory_mib


def _fitting(index: Index, shape: Shape, spec: NodeSpec) -> Iterator[Room]:
    if shape.node_names:
        at_hand = [room for room in pinned(index, shape) if _fits(room, shape, spec)]
        return iter(sorted(at_hand, key=lambda room: best_fit_rank(room, spec)))
    kinds = index.floor.kinds_for(shape, spec)
    if len(kinds) == 1 and not (spec.card_milli or shape.exclusive):
        return index.rooms_at(index.by_whole[kinds[0].number].wide_enough(spec.cpus, spec.memory_mib))
    idle = [index.by_whole[kind.number] for kind in kinds]
    if shape.exclusive:
        least = min((kind.whole_cards for kind in kinds), default=0)
        rooms = _filtered(index, walk(idle, least, spec.cpus, spec.memory_mib), shape, spec)
        return iter(sorted(rooms, key=lambda room: best_fit_rank(room, spec))) if spec.shares_a_card else rooms
    if spec.shares_a_card:
        holes = [index.by_hole[kind.number] for kind in kinds]
        return _sharing(index, holes, idle, shape, spec)
    walked = walk(idle, spec.whole_cards, spec.cpus, spec.memory_mib)
    return _filtered(index, walked, shape, spec) if spec.card_models else index.rooms_at(order for _, order in walked)


def pinned(index: Index, shape: Shape) -> list[Room]:
    """Rooms of the nodes the job is pinned to, those in service."""
    position, kinds = index.floor.position, index.floor.kinds
    orders = sorted({position[name] for pin in shape.node_names if (name := NodeName(pin)) in position})
    return [room for room in index.rooms_at(orders) if kinds[room.kind].up and admits(kinds[room.kind], shape)]


def _choose(index: Index, shape: Shape, spec: NodeSpec, fit: Fit | None, avoid: Collection[int]) -> Collection[Room]:
    rooms = fit.rooms(index, shape, spec) if fit else fitting(index, shape, spec)
    if avoid:
        rooms = (room for room in rooms if room.order not in avoid)
    return list(islice(rooms, shape.nodes))


def _fits(room: Room, shape: Shape, spec: NodeSpec) -> bool:
    return shortfall(room, spec, exclusive=shape.exclusive) is None


def _filtered(index: Index, walked: Iterator[tuple[int, int]], shape: Shape, spec: NodeSpec) -> Iterator[Room]:
    return (room for _, order in walked if _fits(room := index.rooms[order], shape, spec))


def _sharing(index: Index, holes: list[Shelves], idle: list[Shelves], shape: Shape, spec: NodeSpec) -> Iterator[Room]:
    """Cards already shared before idle ones; a room comes once, with the card that fits best."""
    for on_idle, shelves, least in ((False, holes, spec.card_milli), (True, idle, 1)):
        for label, order in walk(shelves, least, spec.cpus, spec.memory_mib):
            room = index.rooms[order]
            if _fits(room, shape, spec) and share_rank(room, sharing_cards(room, spec)[0]) == (on_idle, label):
                yield room
