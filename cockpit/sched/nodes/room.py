"""The room on one node: who is on it and what is left."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import msgspec

from cockpit.model.ids import JobId
from cockpit.model.node import Allocation, Card, Node
from cockpit.model.reasons import Resource
from cockpit.model.spec import WHOLE_CARD, NodeSpec
from cockpit.sched.nodes.cards import (
    accepts,
    can_be_whole,
    every_slice,
    share_slices,
    share_taken,
    shareable,
    whole_slices,
)

Tenant = tuple[JobId, Allocation]


class Room(msgspec.Struct, frozen=True, gc=False):
    """A node, its tenants, and what is free of it.

    CPUs, memory and whole cards that are taken are counted on from one room to the next, other cards anew from the
    tenants; tests compare with a recount of everything.
    """

    node: Node
    order: int
    """Position of the node in the cluster; breaks ties."""
    kind: int
    """Number of the node's kind in the index."""
    tenants: dict[JobId, Allocation]
    """Never changed."""
    cpus: int
    memory_mib: int
    idle: tuple[int, ...]
    """Indices of the cards that nobody is on and that may be given whole."""
    holes: tuple[int, ...]
    """Per card, the thousandths that shares can still take of it."""

    def having(self, job: JobId, part: Allocation) -> Room:
        """With one more tenant."""
        tenants = self.tenants.copy()
        tenants[job] = part
        idle, holes = self.idle, self.holes
        if part.slices:
            taken = {piece.card for piece in part.slices if piece.slot is None}
            if len(taken) < len(part.slices) or not taken.issubset(idle):
                return room_of(self.node, self.order, self.kind, tenants.items())
            idle = tuple([card for card in idle if card not in taken])
            holes = tuple([0 if card in taken else hole for card, hole in enumerate(holes)])
        cpus, memory_mib = self.cpus - part.cpus, self.memory_mib - part.memory_mib
        return Room(self.node, self.order, self.kind, tenants, cpus, memory_mib, idle, holes)

    def left_by(self, job: JobId) -> Room:
        """Without one of its tenants."""
        tenants = self.tenants.copy()
        part = tenants.pop(job)
        idle, holes = self.idle, self.holes
        if part.slices:
            left = {piece.card for piece in part.slices if piece.slot is None}
            if len(left) < len(part.slices) or not self._are_idle(left, tenants.values()):
                return room_of(self.node, self.order, self.kind, tenants.items())
            cards = self.node.cards
            idle = tuple(sorted([*idle, *left]))
            holes = tuple([shareable(cards[card]) if card in left else hole for card, hole in enumerate(holes)])
        cpus, memory_mib = self.cpus + part.cpus, self.memory_mib + part.memory_mib
        return Room(self.node, self.order, self.kind, tenants, cpus, memory_mib, idle, holes)

    def _are_idle(self, left: set[int], staying: Iterable[Allocation]) -> bool:
        """Whether these cards can be given whole now: one that is promised to somebody has two tenants meanwhile, and
        one may have been taken out under a running job."""
        cards = self.node.cards
        if max(left) >= len(cards) or not all(can_be_whole(cards[card]) for card in left):
            return False
        return left.isdisjoint([piece.card for part in staying for piece in part.slices])

    def without(self, jobs: Collection[JobId]) -> Room:
        """Without any of these, tenants or not."""
        staying = [tenant for tenant in self.tenants.items() if tenant[0] not in jobs]
        return room_of(self.node, self.order, self.kind, staying)

    def emptied(self) -> Room:
        return room_of(self.node, self.order, self.kind, ())

    def free_milli(self, card: int) -> int:
        return WHOLE_CARD if card in self.idle else self.holes[card]


def room_of(node: Node, order: int, kind: int, tenants: Iterable[Tenant]) -> Room:
    """The room that these tenants leave."""
    inside = dict(tenants)
    cpus, memory_mib = node.cpus, node.memory_mib
    used = [0] * len(node.cards)
    for allocation in inside.values():
        cpus -= allocation.cpus
        memory_mib -= allocation.memory_mib
        for part in allocation.slices:
            if part.card < len(used):  # a card may have been taken out under a running job
                used[part.card] += part.milli
    idle = tuple([card.index for card in node.cards if not used[card.index] and can_be_whole(card)])
    holes = tuple([max(0, shareable(card) - used[card.index]) for card in node.cards])
    return Room(node, order, kind, inside, cpus, memory_mib, idle, holes)


def shortfall(room: Room, spec: NodeSpec, *, exclusive: bool) -> tuple[Resource, int] | None:
    """The first thing that the room lacks for one replica, and how much of it is free; None when it fits."""
    if exclusive and room.tenants:
        return Resource.NODE, 0
    if spec.shares_a_card:
        if not any(_holds_share(room, card, spec) for card in room.node.cards):
            return Resource.CARD_SHARE, max((room.holes[card] for card in _accepted(room, spec)), default=0)
    elif spec.card_milli and (cards := len(whole_cards(room, spec))) < spec.whole_cards:
        return Resource.CARDS, cards
    if room.cpus < spec.cpus:
        return Resource.CPUS, max(0, room.cpus)
    if room.memory_mib < spec.memory_mib:
        return Resource.MEMORY, max(0, room.memory_mib)
    return None


def whole_cards(room: Room, spec: NodeSpec) -> tuple[int, ...]:
    """Idle cards that the spec accepts."""
    if not spec.card_models:
        return room.idle
    cards = room.node.cards
    return tuple(index for index in room.idle if cards[index].model in spec.card_models)


def whole_cards_taken(room: Room, spec: NodeSpec) -> tuple[int, ...]:
    """Those that one replica gets, fewer where there are not enough: cards made for sharing last."""
    cards, usable = room.node.cards, whole_cards(room, spec)
    if len(usable) > spec.whole_cards and any(cards[index].slices for index in usable):
        usable = tuple(sorted(usable, key=lambda index: (cards[index].slices > 0, index)))
    return usable[: spec.whole_cards]


def sharing_cards(room: Room, spec: NodeSpec) -> list[int]:
    """Accepted cards with room for the share, best fit first: cards already shared, smallest hole first, then idle
    ones, those made for sharing first."""
    fitting = [card for card in room.node.cards if _holds_share(room, card, spec)]
    fitting.sort(key=lambda card: (*share_rank(room, card.index), card.slices == 0, card.index))
    return [card.index for card in fitting]


def share_rank(room: Room, card: int) -> tuple[bool, int]:
    """Idle cards last, by how many there are on the node; before them the smallest hole first."""
    return (True, len(room.idle)) if card in room.idle else (False, room.holes[card])


def best_fit_rank(room: Room, spec: NodeSpec) -> tuple[bool, int, int, int, int]:
    """The order of rooms that fit: the fewest cards left stranded beside it, so that big holes stay whole; then the
    tightest in CPUs and memory; then the cluster's order."""
    first = share_rank(room, sharing_cards(room, spec)[0]) if spec.shares_a_card else (True, len(room.idle))
    return (*first, room.cpus, room.memory_mib, room.order)


def allocate(room: Room, spec: NodeSpec, rank: int, *, exclusive: bool, card: int | None = None) -> Allocation:
    """What one replica gets in a room where it fits; `card` overrides the best fit for a share."""
    node = room.node
    if exclusive:
        everything = tuple(part for card_ in node.cards for part in every_slice(card_))
        return Allocation(rank, node.name, node.cpus, node.memory_mib, everything)
    if not spec.card_milli:
        return Allocation(rank, node.name, spec.cpus, spec.memory_mib)
    if spec.shares_a_card:
        chosen = node.cards[sharing_cards(room, spec)[0] if card is None else card]
        slices = share_slices(chosen, spec.card_milli, _used_slots(room, chosen.index))
    else:
        slices = whole_slices(tuple(sorted(whole_cards_taken(room, spec))))
    return Allocation(rank, node.name, spec.cpus, spec.memory_mib, slices)


def _holds_share(room: Room, card: Card, spec: NodeSpec) -> bool:
    return spec.card_milli <= room.holes[card.index] and (
        accepts(spec, card) and share_taken(card, spec.card_milli) <= room.holes[card.index]
    )


def _accepted(room: Room, spec: NodeSpec) -> list[int]:
    return [card.index for card in room.node.cards if accepts(spec, card)]


def _used_slots(room: Room, card: int) -> set[int | None]:
    return {part.slot for allocation in room.tenants.values() for part in allocation.slices if part.card == card}
