"""The free resources of one node: its tenants, and what they leave."""

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


class NodeFree(msgspec.Struct, frozen=True, gc=False):
    """A node, its tenants, and what is free of it.

    Taken CPUs, memory and whole cards are carried over from one value to the next; after a change of shared cards,
    everything is counted again from the tenants. Tests compare both ways with a full recount.
    """

    node: Node
    order: int
    """Position of the node in the cluster's list; the last tie-break."""
    node_class: int
    """Number of the node's class in the layout."""
    tenants: dict[JobId, Allocation]
    """Jobs with resources on the node, by id. The dict is never changed."""
    cpus: int
    """Free CPUs; below 0 where jobs hold more than the node has."""
    memory_mib: int
    """Free memory in MiB; below 0 likewise."""
    idle: tuple[int, ...]
    """Indices of the cards that no job is on and that may be allocated whole."""
    holes: tuple[int, ...]
    """Thousandths of each card that shares can still take of it."""

    def with_tenant(self, job: JobId, part: Allocation) -> NodeFree:
        """Return the node with one more tenant."""
        tenants = self.tenants.copy()
        tenants[job] = part
        idle, holes = self.idle, self.holes
        if part.slices:
            # slot None: the whole card. Whole idle cards are simple sums; anything else is counted again
            taken = {piece.card for piece in part.slices if piece.slot is None}
            # slices of one card, or a card that is shared: the sums below would be wrong
            if len(taken) < len(part.slices) or not taken.issubset(idle):
                return node_free_of(self.node, self.order, self.node_class, tenants.items())
            idle = tuple([card for card in idle if card not in taken])
            holes = tuple([0 if card in taken else hole for card, hole in enumerate(holes)])
        cpus, memory_mib = self.cpus - part.cpus, self.memory_mib - part.memory_mib
        return NodeFree(self.node, self.order, self.node_class, tenants, cpus, memory_mib, idle, holes)

    def without_tenant(self, job: JobId) -> NodeFree:
        """Return the node without one of its tenants."""
        tenants = self.tenants.copy()
        part = tenants.pop(job)
        idle, holes = self.idle, self.holes
        if part.slices:
            left = {piece.card for piece in part.slices if piece.slot is None}
            if len(left) < len(part.slices) or not self._are_idle(left, tenants.values()):
                return node_free_of(self.node, self.order, self.node_class, tenants.items())
            cards = self.node.cards
            idle = tuple(sorted([*idle, *left]))
            holes = tuple([shareable(cards[card]) if card in left else hole for card, hole in enumerate(holes)])
        cpus, memory_mib = self.cpus + part.cpus, self.memory_mib + part.memory_mib
        return NodeFree(self.node, self.order, self.node_class, tenants, cpus, memory_mib, idle, holes)

    def _are_idle(self, left: set[int], staying: Iterable[Allocation]) -> bool:
        """Return whether these cards can be allocated whole once their tenant has left. A card that is reserved for a
        nominated job has two tenants meanwhile, and a card may have been removed under a running job."""
        cards = self.node.cards
        # a card index beyond the list belongs to a card that was removed under the job
        if max(left) >= len(cards) or not all(can_be_whole(cards[card]) for card in left):
            return False
        return left.isdisjoint([piece.card for part in staying for piece in part.slices])

    def without(self, jobs: Collection[JobId]) -> NodeFree:
        """Return the node without these jobs; some of them need not be on it."""
        staying = [tenant for tenant in self.tenants.items() if tenant[0] not in jobs]
        return node_free_of(self.node, self.order, self.node_class, staying)

    def emptied(self) -> NodeFree:
        return node_free_of(self.node, self.order, self.node_class, ())

    def free_milli(self, card: int) -> int:
        return WHOLE_CARD if card in self.idle else self.holes[card]


def node_free_of(node: Node, order: int, node_class: int, tenants: Iterable[Tenant]) -> NodeFree:
    """Count what these tenants leave free of the node."""
    inside = dict(tenants)
    cpus, memory_mib = node.cpus, node.memory_mib
    # thousandths in use, by card
    used = [0] * len(node.cards)
    for allocation in inside.values():
        cpus -= allocation.cpus
        memory_mib -= allocation.memory_mib
        for part in allocation.slices:
            if part.card < len(used):  # a card may have been taken out under a running job
                used[part.card] += part.milli
    idle = tuple([card.index for card in node.cards if not used[card.index] and can_be_whole(card)])
    # not below 0: a card that is reserved for a nominated job has two tenants meanwhile
    holes = tuple([max(0, shareable(card) - used[card.index]) for card in node.cards])
    return NodeFree(node, order, node_class, inside, cpus, memory_mib, idle, holes)


def shortfall(node_free: NodeFree, spec: NodeSpec, *, exclusive: bool) -> tuple[Resource, int] | None:
    """Return the first resource that is short for one replica, and how much of it is free; None when the replica
    fits."""
    # the order is that of the reasons shown: a node that lacks cards is further from fitting than one short of memory
    if exclusive and node_free.tenants:
        return Resource.NODE, 0
    if spec.shares_a_card:
        if not any(_holds_share(node_free, card, spec) for card in node_free.node.cards):
            return Resource.CARD_SHARE, max((node_free.holes[card] for card in _accepted(node_free, spec)), default=0)
    elif spec.card_milli and (cards := len(whole_cards(node_free, spec))) < spec.whole_cards:
        return Resource.CARDS, cards
    if node_free.cpus < spec.cpus:
        return Resource.CPUS, max(0, node_free.cpus)
    if node_free.memory_mib < spec.memory_mib:
        return Resource.MEMORY, max(0, node_free.memory_mib)
    return None


def whole_cards(node_free: NodeFree, spec: NodeSpec) -> tuple[int, ...]:
    """Return the indices of the idle cards that the spec accepts."""
    if not spec.card_models:
        return node_free.idle
    cards = node_free.node.cards
    return tuple(index for index in node_free.idle if cards[index].model in spec.card_models)


def whole_cards_taken(node_free: NodeFree, spec: NodeSpec) -> tuple[int, ...]:
    """Return the whole cards that one replica gets, fewer if there are not enough. Cards cut into fixed slots come
    last."""
    cards, usable = node_free.node.cards, whole_cards(node_free, spec)
    # cards cut into fixed slots can serve small shares, so whole-card jobs take them last
    if len(usable) > spec.whole_cards and any(cards[index].slices for index in usable):
        usable = tuple(sorted(usable, key=lambda index: (cards[index].slices > 0, index)))
    return usable[: spec.whole_cards]


def sharing_cards(node_free: NodeFree, spec: NodeSpec) -> list[int]:
    """Return the accepted cards that hold the share, best fit first: shared cards, least free first, then idle ones,
    and among these the cards cut into fixed slots first."""
    fitting = [card for card in node_free.node.cards if _holds_share(node_free, card, spec)]
    # the fullest shared card first: a share on an idle card would break up a card that whole-card jobs need
    fitting.sort(key=lambda card: (*share_rank(node_free, card.index), card.slices == 0, card.index))
    return [card.index for card in fitting]


def share_rank(node_free: NodeFree, card: int) -> tuple[bool, int]:
    """Return the sort key of cards for a share: shared cards by their free thousandths, least first; then idle cards,
    by how many the node has."""
    return (True, len(node_free.idle)) if card in node_free.idle else (False, node_free.holes[card])


def best_fit_rank(node_free: NodeFree, spec: NodeSpec) -> tuple[bool, int, int, int, int]:
    """Return the sort key of nodes that fit one replica: fewest idle cards (or least free on the shared card), so that
    nodes with many idle cards stay whole; then least free CPUs and memory; then the cluster's order."""
    first = (
        share_rank(node_free, sharing_cards(node_free, spec)[0]) if spec.shares_a_card else (True, len(node_free.idle))
    )
    return (*first, node_free.cpus, node_free.memory_mib, node_free.order)


def allocate(node_free: NodeFree, spec: NodeSpec, rank: int, *, exclusive: bool, card: int | None = None) -> Allocation:
    """Return what one replica gets on a node where it fits; `card` overrides the best fit for a share."""
    node = node_free.node
    if exclusive:
        all_slices = tuple(part for card_ in node.cards for part in every_slice(card_))
        return Allocation(rank, node.name, node.cpus, node.memory_mib, all_slices)
    if not spec.card_milli:
        return Allocation(rank, node.name, spec.cpus, spec.memory_mib)
    if spec.shares_a_card:
        chosen = node.cards[sharing_cards(node_free, spec)[0] if card is None else card]
        slices = share_slices(chosen, spec.card_milli, _used_slots(node_free, chosen.index))
    else:
        slices = whole_slices(tuple(sorted(whole_cards_taken(node_free, spec))))
    return Allocation(rank, node.name, spec.cpus, spec.memory_mib, slices)


def _holds_share(node_free: NodeFree, card: Card, spec: NodeSpec) -> bool:
    return spec.card_milli <= node_free.holes[card.index] and (
        accepts(spec, card) and share_taken(card, spec.card_milli) <= node_free.holes[card.index]
    )


def _accepted(node_free: NodeFree, spec: NodeSpec) -> list[int]:
    return [card.index for card in node_free.node.cards if accepts(spec, card)]


def _used_slots(node_free: NodeFree, card: int) -> set[int | None]:
    return {part.slot for allocation in node_free.tenants.values() for part in allocation.slices if part.card == card}
