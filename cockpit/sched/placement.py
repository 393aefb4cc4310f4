"""Finds where a job would start right now: all replicas of a gang, each on a node of its own, or none."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice, product
from operator import attrgetter
from typing import Protocol

import msgspec
from msgspec.structs import replace

from cockpit.model.ids import JobId, NodeName
from cockpit.model.node import Allocation, Placement
from cockpit.model.spec import NodeSpec
from cockpit.sched.index import Index
from cockpit.sched.matching import choose_distinct_nodes
from cockpit.sched.nodes.free_node_buckets import FreeNodeBuckets, walk
from cockpit.sched.nodes.node_free import NodeFree, allocate, best_fit_rank, share_rank, sharing_cards, shortfall
from cockpit.sched.nodes.node_layout import admits
from cockpit.sched.shape import Shape
from cockpit.sched.spreading import share_of, spread_over


class JobPlacement(msgspec.Struct, frozen=True, gc=False):
    """The placement of a whole job."""

    spec_index: int
    """Number of the first alternative that fits."""
    placement: Placement


class Fit(Protocol):
    """A placement policy: an order of nodes, and of cards on a node, other than best fit."""

    def nodes_free(self, index: Index, shape: Shape, spec: NodeSpec) -> Iterator[NodeFree]:
        """Yield every node in service that holds one replica now, best first."""
        ...

    def ranked(self, nodes_free: Sequence[NodeFree], spec: NodeSpec) -> list[NodeFree]:
        """Return those of the nodes that hold one replica, best first."""
        ...

    def card(self, node_free: NodeFree, spec: NodeSpec) -> int | None:
        """Return the card to share on a node where the replica fits; None for whole cards or none."""
        ...


def find_placement(
    index: Index, shape: Shape, fit: Fit | None = None, avoid: Collection[int] = frozenset()
) -> JobPlacement | None:
    """Find a placement for the shape, on none of the nodes (by order) in `avoid`; None when no alternative fits.

    1. A shape of one node without cards in a single node class: one look-up.
    2. Jobs that may hold different amounts on their nodes: components of a heterogeneous job, tasks that may be spread
       over any number of nodes, replicas of several kinds.
    3. All other shapes: the first alternative for which enough nodes fit.
    """
    # 1. one node, by CPUs and memory alone
    layout = index.layout
    if fit is None and (node_class := layout.single_class[shape]) is not None:
        spec = shape.specs[0]
        order = index.tightest(node_class, spec, avoid)
        if order is None:
            return None
        return JobPlacement(0, (Allocation(0, layout.nodes[order].name, spec.cpus, spec.memory_mib),))
    # 2. different amounts on different nodes
    if shape.is_uneven:
        return _find_uneven(index, shape, fit, avoid)
    # 3. equal replicas, by the first alternative that fits
    fit = None if shape.exclusive else fit  # whole nodes leave no fragments to choose between
    for spec_index, spec in enumerate(shape.specs):
        if spec.cpus > index.most_cpus or (spec.card_milli and _lacks_nodes(index, shape, spec)):
            continue
        nodes_free = _choose(index, shape, spec, fit, avoid)
        if len(nodes_free) == shape.nodes:
            return JobPlacement(spec_index, allocated(shape, spec, nodes_free, fit))
    return None


def _find_uneven(index: Index, shape: Shape, fit: Fit | None, avoid: Collection[int]) -> JobPlacement | None:
    if shape.components:
        return _find_components(index, shape, fit, avoid)
    if shape.spread is not None:
        return find_spread((each for each in fitting(index, shape, shape.specs[0]) if each.order not in avoid), shape)
    return _find_mixed(index, shape, fit, avoid)


_COMPONENTS = JobId(-1)
"""The job id under which the components that are placed so far are in the index."""


def _find_components(index: Index, shape: Shape, fit: Fit | None, avoid: Collection[int]) -> JobPlacement | None:
    """Find a placement for jobs that start together: each takes its place beside those before it."""
    beside = index.fork()
    placed: list[JobPlacement] = []
    for each in shape.each_component:
        job_placement = find_placement(beside, each, fit, avoid)
        if job_placement is None:
            return None
        placed.append(job_placement)
        beside.apply([(_COMPONENTS, of_components(placed).placement)], {})
    return of_components(placed)


def of_components(placed: Sequence[JobPlacement]) -> JobPlacement:
    """Return the placements of a job's components as one, in which each node has one part."""
    parts: dict[NodeName, Allocation] = {}
    for part in (part for each in placed for part in each.placement):
        before = parts.get(part.node)
        parts[part.node] = part if before is None else _both(before, part)
    return JobPlacement(0, tuple([replace(part, rank=rank) for rank, part in enumerate(parts.values())]))


def _both(one: Allocation, other: Allocation) -> Allocation:
    cpus, memory_mib = one.cpus + other.cpus, one.memory_mib + other.memory_mib
    return replace(one, cpus=cpus, memory_mib=memory_mib, slices=(*one.slices, *other.slices))


def find_spread(nodes_free: Iterable[NodeFree], shape: Shape) -> JobPlacement | None:
    """Find a placement for tasks that may be spread over any number of these nodes."""
    shares = spread_over(nodes_free, shape)
    if shares is None:
        return None
    spec, spread = shape.specs[0], shape.spread
    assert spread is not None
    # ranks follow the cluster's order of nodes, not the order of the choice
    in_order = sorted(shares, key=lambda share: share.node_free.order)
    parts = [
        allocate(share.node_free, share_of(spec, spread, share), rank, exclusive=shape.exclusive)
        for rank, share in enumerate(in_order)
    ]
    return JobPlacement(0, tuple(parts))


def _lacks_nodes(index: Index, shape: Shape, spec: NodeSpec) -> bool:
    """Return whether too few nodes have enough idle cards and CPUs. It is known cheaply, and so tested, only for a
    single node class."""
    if not spec.whole_cards or len(node_classes := index.layout.classes_for(shape, spec)) != 1:
        return False
    return index.by_whole[node_classes[0].number].has_fewer(shape.nodes, spec.whole_cards, spec.cpus)


def _find_mixed(index: Index, shape: Shape, fit: Fit | None, avoid: Collection[int]) -> JobPlacement | None:
    """Find a placement for a job whose replicas differ; all of them fit, or none.

    1. The most demanding kind takes its best nodes, then the next one.
    2. If that leaves too few nodes for some kind, find nodes for all kinds together.
    """
    # 1. kind after kind
    taken = set(avoid)
    placements: dict[Shape, JobPlacement] = {}
    # a demanding kind fits on few nodes; a modest one that chose first could take them
    for group in by_demand(shape.replica_groups):
        place = find_placement(index, group, fit, taken)
        if place is None:
            # 2. where nothing is taken yet, this kind does not fit by itself
            return _find_together(index, shape, fit, avoid) if placements else None
        taken |= {order for order, _ in index.located(place.placement)}
        placements[group] = place
    return joined(shape, placements)


def _find_together(index: Index, shape: Shape, fit: Fit | None, avoid: Collection[int]) -> JobPlacement | None:
    """Find nodes for all kinds of replicas at once."""

    def place(group: Shape, number: int, orders: Sequence[int]) -> JobPlacement:
        spec, nodes_free = group.specs[number], list(index.nodes_free_at(orders))
        return JobPlacement(number, allocated(group, spec, nodes_free, None if shape.exclusive else fit))

    def holding(group: Shape, number: int) -> list[int]:
        own_fit = None if shape.exclusive else fit
        nodes_free = _choose(index, _for_all(shape, group), group.specs[number], own_fit, avoid)
        return [node_free.order for node_free in nodes_free]

    return place_together(shape, holding, place)


def _for_all(shape: Shape, group: Shape) -> Shape:
    """Return the kind with as many replicas as the whole job has: of more nodes than that, no kind needs any."""
    return replace(group, nodes=shape.nodes + len(shape.helpers))


def place_together(
    shape: Shape,
    holding: Callable[[Shape, int], Sequence[int]],
    place: Callable[[Shape, int, Sequence[int]], JobPlacement],
) -> JobPlacement | None:
    """Place all kinds of replicas on different nodes, by the first alternatives for which these suffice. `holding`: the
    nodes that hold one replica by this alternative, best first; `place`: places a kind on nodes."""
    groups = by_demand(shape.replica_groups)
    # the first alternatives first, so that later ones are used only where these do not suffice
    for numbers in product(*(range(len(each.specs)) for each in groups)):
        nodes = [holding(group, number) for group, number in zip(groups, numbers, strict=True)]
        chosen = choose_distinct_nodes(nodes, [each.nodes for each in groups])
        if chosen is not None:
            each = zip(groups, numbers, chosen, strict=True)
            return joined(shape, {group: place(group, number, orders) for group, number, orders in each})
    return None


def by_demand(groups: Iterable[Shape]) -> list[Shape]:
    """Sort kinds of replicas, the most demanding first."""
    return sorted(groups, key=lambda each: _demand(each.specs[0]), reverse=True)


def joined(shape: Shape, placements: Mapping[Shape, JobPlacement]) -> JobPlacement:
    """Join the placements of each kind of replica into the placement of the whole job, with ranks in the job's
    order."""
    groups = shape.replica_groups
    first = placements[groups[0]]
    # helpers like the first kind were placed with it, as further replicas of one group
    own, like_first = first.placement[: shape.nodes], first.placement[shape.nodes :]
    left = {group.specs[0]: iter(placements[group].placement) for group in groups[1:]}
    left.setdefault(shape.specs[0], iter(like_first))
    placement = (*own, *(next(left[spec]) for spec in shape.helpers))
    return JobPlacement(first.spec_index, tuple([replace(part, rank=rank) for rank, part in enumerate(placement)]))


def _demand(spec: NodeSpec) -> tuple[int, int, int]:
    return spec.card_milli, spec.cpus, spec.memory_mib


def find_among(nodes_free: Sequence[NodeFree], shape: Shape, spec_index: int, fit: Fit | None = None) -> JobPlacement:
    """Choose the best of these nodes, enough of which hold a replica each."""
    spec = shape.specs[spec_index]
    fit = None if shape.exclusive else fit
    ranked = (
        sorted(nodes_free, key=lambda node_free: best_fit_rank(node_free, spec))
        if len(nodes_free) > 1
        else list(nodes_free)
    )
    chosen = (fit.ranked(nodes_free, spec) if fit else ranked)[: shape.nodes]
    return JobPlacement(spec_index, allocated(shape, spec, chosen, fit))


def fits_now(index: Index, shape: Shape) -> bool:
    """Return whether `find_placement` would return a placement."""
    if (node_class := index.layout.single_class[shape]) is not None:
        return index.tightest(node_class, shape.specs[0]) is not None
    if shape.is_uneven:
        return find_placement(index, shape) is not None
    if index.lacks_cpus_for(shape.specs):
        return False
    return any(len(_choose(index, shape, spec, None, ())) == shape.nodes for spec in shape.specs)


def eligible(index: Index, shape: Shape, spec: NodeSpec) -> frozenset[int]:
    """Return the orders of the nodes in service where a replica could run at some time, if they are big enough."""
    if shape.node_names:
        return frozenset(node_free.order for node_free in pinned(index, shape))
    return index.layout.nodes_for(shape, spec)


def allocated(shape: Shape, spec: NodeSpec, nodes_free: Collection[NodeFree], fit: Fit | None = None) -> Placement:
    """Allocate one replica on each node; ranks follow the cluster's order of nodes, so that neighbours stay
    neighbours."""

    if len(nodes_free) == 1 and fit is None:
        (node_free,) = nodes_free
        return (allocate(node_free, spec, 0, exclusive=shape.exclusive),)
    in_order = sorted(nodes_free, key=_order_of)
    return tuple(
        [
            allocate(node_free, spec, rank, exclusive=shape.exclusive, card=fit.card(node_free, spec) if fit else None)
            for rank, node_free in enumerate(in_order)
        ]
    )


_order_of = attrgetter("order")


def fitting(index: Index, shape: Shape, spec: NodeSpec) -> Iterator[NodeFree]:
    """Yield every node in service that holds one replica now, best fit first (the order of
    `node_free.best_fit_rank`)."""
    nodes_free = _fitting(index, shape, spec)
    return nodes_free if spec.cpus else (node_free for node_free in nodes_free if not _is_all_taken(node_free))


def _is_all_taken(node_free: NodeFree) -> bool:
    """Return whether a single tenant holds the whole node. That job may have asked for the node alone, so nothing is
    left there for best effort jobs, which ask for 0 CPUs."""
    if node_free.cpus or node_free.memory_mib or len(node_free.tenants) != 1:
        return False
    (tenant,) = node_free.tenants.values()
    return tenant.cpus == node_free.node.cpus and tenant.memory_mib == node_free.node.memory_mib


def _fitting(index: Index, shape: Shape, spec: NodeSpec) -> Iterator[NodeFree]:
    """Yield the nodes that hold one replica now, best fit first, by the cheapest search that suffices for the
    request."""
    if shape.node_names:
        # few nodes: they are sorted, without a walk through the buckets
        named_nodes = [node_free for node_free in pinned(index, shape) if _fits(node_free, shape, spec)]
        return iter(sorted(named_nodes, key=lambda node_free: best_fit_rank(node_free, spec)))
    node_classes = index.layout.classes_for(shape, spec)
    # CPUs and memory alone on one class: every node of the walk fits, so none is tested again
    if len(node_classes) == 1 and not (spec.card_milli or shape.exclusive):
        return index.nodes_free_at(index.by_whole[node_classes[0].number].with_at_least(spec.cpus, spec.memory_mib))
    idle = [index.by_whole[node_class.number] for node_class in node_classes]
    if shape.exclusive:
        # a node that is free as a whole has all its cards idle, so buckets below that are skipped
        least = min((node_class.whole_cards for node_class in node_classes), default=0)
        nodes_free = _filtered(index, walk(idle, least, spec.cpus, spec.memory_mib), shape, spec)
        return (
            iter(sorted(nodes_free, key=lambda node_free: best_fit_rank(node_free, spec)))
            if spec.shares_a_card
            else nodes_free
        )
    if spec.shares_a_card:
        holes = [index.by_hole[node_class.number] for node_class in node_classes]
        return _sharing(index, holes, idle, shape, spec)
    walked = walk(idle, spec.whole_cards, spec.cpus, spec.memory_mib)
    return (
        _filtered(index, walked, shape, spec) if spec.card_models else index.nodes_free_at(order for _, order in walked)
    )


def pinned(index: Index, shape: Shape) -> list[NodeFree]:
    """Return the nodes that the job names, those in service."""
    position, node_classes = index.layout.position, index.layout.node_classes
    orders = sorted({position[name] for pin in shape.node_names if (name := NodeName(pin)) in position})
    return [
        node_free
        for node_free in index.nodes_free_at(orders)
        if node_classes[node_free.node_class].up and admits(node_classes[node_free.node_class], shape)
    ]


def _choose(
    index: Index, shape: Shape, spec: NodeSpec, fit: Fit | None, avoid: Collection[int]
) -> Collection[NodeFree]:
    nodes_free = fit.nodes_free(index, shape, spec) if fit else fitting(index, shape, spec)
    if avoid:
        nodes_free = (node_free for node_free in nodes_free if node_free.order not in avoid)
    # generators are best first and stop here: a job of one node costs one step of the walk
    return list(islice(nodes_free, shape.nodes))


def _fits(node_free: NodeFree, shape: Shape, spec: NodeSpec) -> bool:
    return shortfall(node_free, spec, exclusive=shape.exclusive) is None


def _filtered(index: Index, walked: Iterator[tuple[int, int]], shape: Shape, spec: NodeSpec) -> Iterator[NodeFree]:
    return (node_free for _, order in walked if _fits(node_free := index.nodes_free[order], shape, spec))


def _sharing(
    index: Index, holes: list[FreeNodeBuckets], idle: list[FreeNodeBuckets], shape: Shape, spec: NodeSpec
) -> Iterator[NodeFree]:
    """Yield nodes for a share of a card: shared cards before idle ones. A node comes once, at the place of its best
    card."""
    for on_idle, buckets, least in ((False, holes, spec.card_milli), (True, idle, 1)):
        for label, order in walk(buckets, least, spec.cpus, spec.memory_mib):
            node_free = index.nodes_free[order]
            if _fits(node_free, shape, spec) and share_rank(node_free, sharing_cards(node_free, spec)[0]) == (
                on_idle,
                label,
            ):
                yield node_free
