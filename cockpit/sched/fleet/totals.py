"""Places a fleet's jobs by totals: what is free in a member cluster in sum, against what the job asks for in sum.

This is for members of which the fleet knows no more. Replicas are bound to the cluster, not to nodes, so the cluster
may not be able to place them. `reserved_placement` is the other way round: what a member with reservations keeps for
its part of a fleet's job.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from cockpit.model.fleet import OVER_CLUSTERS, member_of
from cockpit.model.ids import NodeName
from cockpit.model.job import Job
from cockpit.model.node import Allocation, CardSlice, NodeState, Placement
from cockpit.model.reasons import ClusterShort, NoMemberPlacement, Resource
from cockpit.model.spec import WHOLE_CARD, NodeSpec
from cockpit.sched.index import Index
from cockpit.sched.nodes.cards import accepts
from cockpit.sched.nodes.node_free import NodeFree, shortfall
from cockpit.sched.nodes.node_layout import admits
from cockpit.sched.placement import JobPlacement
from cockpit.sched.shape import Shape
from cockpit.sched.snapshot import Snapshot


class Free(NamedTuple):
    """Sums over the nodes of a cluster that a shape may use; below 0 where more is bound to it than it has."""

    cpus: int
    memory_mib: int
    card_milli: int
    """Thousandths of the cards that the spec accepts."""
    nodes: int
    """Nodes that would hold one replica when empty: the cluster can never place more replicas than that."""

    def replicas(self, spec: NodeSpec) -> int:
        """Return the number of replicas for which the sums suffice."""
        amounts = ((self.cpus, spec.cpus), (self.memory_mib, spec.memory_mib), (self.card_milli, spec.card_milli))
        return max(0, min(self.nodes, *(free // each for free, each in amounts if each)))


def by_totals(
    index: Index, snapshot: Snapshot, job: Job, shape: Shape
) -> JobPlacement | ClusterShort | NoMemberPlacement:
    """Place the job on as few clusters as possible, of equal ones the first; or return what the nearest lacks.

    A cluster that could not place the job is not tried again before something has come free there.
    """
    members = [each.name for each in snapshot.cluster.members if shape.partition in (each.name, OVER_CLUSTERS)]
    in_vain = {name: at for name, at in job.in_vain.items() if name in members and snapshot.freed_at.get(name, 0) <= at}
    # a member's totals may suffice although its nodes do not, so a failure is remembered until something comes free
    names = [name for name in members if name not in in_vain]
    lacking: ClusterShort | None = None
    for spec_index, spec in enumerate(shape.specs):
        free_by_member = [free_in(index, name, shape, spec) for name in names]
        most_replicas = [free.replicas(spec) for free in free_by_member]
        shares = _shares(shape.nodes, _over_links(snapshot, job, names, most_replicas))
        if shares is not None:
            return JobPlacement(spec_index, _bound(zip(names, shares, strict=True), spec))
        if lacking is None and not in_vain:
            nearest = most_replicas.index(max(most_replicas))
            lacking = _lack(names[nearest], free_by_member[nearest], spec, shape.nodes)
    return lacking or NoMemberPlacement(tuple(in_vain), max(in_vain.values()))


def free_in(index: Index, member: str, shape: Shape, spec: NodeSpec) -> Free:
    """Return what the fleet takes to be free, including nodes that are too small. Everything bound to the cluster
    counts as used, whether the cluster could place it or not."""
    usable = {
        node_class.number for node_class in index.layout.node_classes if node_class.up and admits(node_class, shape)
    }
    nodes_free = [
        node_free
        for node_free in index.nodes_free
        if node_free.node_class in usable and member_of(node_free.node.name) == member
    ]
    # jobs bound by totals are placed on the member's name instead of a node
    bound = [part for placement in index.placed.values() for part in placement if part.node == member]
    cards = sum(
        node_free.free_milli(card.index)
        for node_free in nodes_free
        for card in node_free.node.cards
        if accepts(spec, card)
    )
    return Free(
        sum(node_free.cpus for node_free in nodes_free) - sum(part.cpus for part in bound),
        sum(node_free.memory_mib for node_free in nodes_free) - sum(part.memory_mib for part in bound),
        cards - sum(part.card_milli for part in bound),
        sum(
            member_of(node.name) == member
            for node_free, nodes in index.layout.sizes
            if node_free.node_class in usable and shortfall(node_free, spec, exclusive=shape.exclusive) is None
            for node in nodes
        ),
    )


def _over_links(snapshot: Snapshot, job: Job, names: Sequence[str], most: Sequence[int]) -> list[int]:
    """Return the largest share of each cluster, with what clusters over a link cannot have taken off.

    Such a cluster gets its part as a job of its own. A job that may be divided has no mode, and without one only a job
    of a single replica is accepted everywhere.
    """
    if not job.spec.divide_over_clusters:
        return list(most)
    over_link = {each.name for each in snapshot.cluster.members if each.over_link}
    return [min(1, each) if name in over_link else each for name, each in zip(names, most, strict=True)]


def _shares(wanted: int, most: Sequence[int]) -> list[int] | None:
    """Return how many replicas each cluster gets, none more than its `most`; None where all together are too small."""
    if sum(most) < wanted:
        return None
    shares = [0] * len(most)
    # the clusters with most free take all they can, so that few clusters are used
    for at in sorted(range(len(most)), key=lambda at: -most[at]):
        shares[at] = min(wanted, most[at])
        wanted -= shares[at]
    return shares


def _bound(shares: Iterable[tuple[str, int]], spec: NodeSpec) -> Placement:
    members = [name for name, count in shares for _ in range(count)]
    return tuple(
        Allocation(rank, NodeName(name), spec.cpus, spec.memory_mib, _cards(spec)) for rank, name in enumerate(members)
    )


def _cards(spec: NodeSpec) -> tuple[CardSlice, ...]:
    """Return placeholders for the cards: which ones they are is not known."""
    if spec.shares_a_card:
        return (CardSlice(0, 0, spec.card_milli),)
    return tuple(CardSlice(card, None, WHOLE_CARD) for card in range(spec.whole_cards))


def _lack(member: str, free: Free, spec: NodeSpec, replicas: int) -> ClusterShort:
    """Return the first resource of which the totals are too small."""
    in_cards = not spec.shares_a_card
    unit = WHOLE_CARD if in_cards else 1
    resource = Resource.CARDS if in_cards else Resource.CARD_SHARE
    amounts = (
        (resource, spec.card_milli * replicas // unit, free.card_milli // unit),
        (Resource.CPUS, spec.cpus * replicas, free.cpus),
        (Resource.MEMORY, spec.memory_mib * replicas, free.memory_mib),
    )
    short = next((each for each in amounts if each[1] > each[2]), (Resource.NODE, replicas, free.replicas(spec)))
    return ClusterShort(member, short[0], short[1], max(0, short[2]), spec.card_models)


def reserved_placement(index: Index, job: Job) -> JobPlacement | None:
    """Return the placement that is reserved for the job if all of it is still free; None where nothing is reserved."""
    placement = job.part.reserved if job.part is not None else ()
    if not placement or not all(_is_free(index, part) for part in placement):
        return None
    return JobPlacement(0, placement)  # the fleet has chosen among the alternatives


def _is_free(index: Index, part: Allocation) -> bool:
    order = index.layout.position.get(NodeName(part.node))
    if order is None:
        return False
    node_free = index.nodes_free[order]
    enough = node_free.cpus >= part.cpus and node_free.memory_mib >= part.memory_mib
    return enough and node_free.node.state is NodeState.UP and _cards_are_free(node_free, part)


def _cards_are_free(node_free: NodeFree, part: Allocation) -> bool:
    held = {(piece.card, piece.slot) for tenant in node_free.tenants.values() for piece in tenant.slices}
    return all(
        each.card in node_free.idle
        if each.slot is None
        else (each.card, each.slot) not in held and node_free.holes[each.card] >= each.milli
        for each in part.slices
    )
