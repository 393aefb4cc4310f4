"""Decides whether a job could ever start on this cluster: by the rules that no waiting changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice, product

from msgspec.structs import replace

from cockpit.model.ids import Millis, NodeName
from cockpit.model.labels import pair_text
from cockpit.model.node import Node, NodeState
from cockpit.model.reasons import NeverFits, NoAlternative, NodesReserved, NoEligibleNode, OfOne, Reason, Resource
from cockpit.model.spec import JobSpec, NodeSpec
from cockpit.sched.matching import most_distinct_nodes
from cockpit.sched.nodes.eligibility import PRICE, excluding_taints_and_pools, may_launch, suits, suits_some_day
from cockpit.sched.nodes.node_free import NodeFree, node_free_of, shortfall
from cockpit.sched.nodes.node_layout import NodeLayout, admits, serves
from cockpit.sched.shape import Shape, shape_of
from cockpit.sched.spreading import cards_in, spread_over, tasks_in

Group = tuple[NodeFree, Sequence[Node]]
"""Nodes that are equal when empty and in the same state, with the empty state of one of them."""

MOST_PRICES = 3
"""How many of the nodes that are too expensive a reason names."""
_STAGES = (Resource.CARDS, Resource.CARD_SHARE, Resource.CPUS, Resource.MEMORY)
"""The order in which a node is tested: a node that lacks only the last resource is nearest to holding the job."""


def never_fits(spec: JobSpec, nodes: Mapping[NodeName, Node]) -> Reason | None:
    """Return why the job could not start on these nodes (`partitions.nodes_of`) if all were empty and in service; None
    when it could.

    Used to refuse jobs at submission: drained nodes come back, nodes that are too small do not grow.
    """
    if spec.components:
        each_never = (never_fits(each, nodes) for each in (replace(spec, components=()), *spec.components))
        return next((each for each in each_never if each is not None), None)
    shape = shape_of(spec)
    if shape.launcher and (nowhere := _no_launcher(shape, nodes.values(), in_service=False)):
        return nowhere
    never = _verdict(shape, _singly(node for node in nodes.values() if suits_some_day(node, shape)), in_service=False)
    return _with_taints_and_pools(never, _singly(nodes.values()), shape)


def infeasible(shape: Shape, layout: NodeLayout) -> Reason | None:
    """Return why the shape could not start even on empty nodes, counting only nodes in service that it may use; None
    when it could. Cached while the nodes stay the same."""
    try:
        return layout.never[shape]
    except KeyError:
        nowhere: Reason | None
        if shape.components:
            verdicts = (infeasible(each, layout) for each in shape.each_component)
            layout.never[shape] = nowhere = next((each for each in verdicts if each is not None), None)
            if nowhere is None:
                layout.possible.add(shape)
            return nowhere
        # the first of these that holds: no node for the launcher; a reason that passes with no advance reservation;
        # the reservation that keeps it from nodes that it needs; the nodes themselves
        nowhere = _no_launcher(shape, layout.nodes, in_service=True) if shape.launcher else None
        if nowhere is None and shape.barred:
            nowhere = infeasible(replace(shape, barred=()), layout)
        never = (
            nowhere
            or _blocked_by_reservation(shape, layout)
            or _verdict(shape, _admitting(shape, layout), in_service=True)
        )
        if never is not None and shape.excluded and nowhere is None:
            never = _without_exclusion(shape, layout)
        elif never is not None and nowhere is None and (dear := _too_dear(shape, layout)):
            never = dear
        elif nowhere is None:
            never = _with_taints_and_pools(never, _serving(shape, layout), shape)
            never = in_partition(
                never, shape.partition, lambda: _verdict(shape, _suiting(shape, layout), in_service=False)
            )
        layout.never[shape] = never
        if never is None:
            layout.possible.add(shape)
        return never


def _without_exclusion(shape: Shape, layout: NodeLayout) -> Reason:
    """Return the verdict on the shape without its exclusions; where it would pass, the excluded nodes as the reason."""
    freer = infeasible(replace(shape, excluded=()), layout)
    return freer or replace(_no_eligible(shape, ()), excluded=shape.excluded)


def _too_dear(shape: Shape, layout: NodeLayout) -> NoEligibleNode | None:
    """Return the cheapest nodes as the reason, where only their present prices keep the shape off; else None."""
    most = shape.max_price_milli
    if most is None or all(node_class.price_milli is None for node_class in layout.node_classes):
        return None
    freer = replace(shape, max_price_milli=None)
    if infeasible(freer, layout) is not None:
        return None
    dear = [
        (node.price_milli, node.name)
        for node_free, nodes in _admitting(freer, layout)
        for node in nodes
        if node.price_milli is not None and node.price_milli > most and node_free.node.state is NodeState.UP
    ]
    cheapest = tuple((name, price) for price, name in sorted(dear)[:MOST_PRICES])
    return replace(_no_eligible(shape, ()), prices=cheapest) if cheapest else None


def in_partition(never: Reason | None, partition: str, elsewhere: Callable[[], Reason | None]) -> Reason | None:
    """Name the partition in a reason that only its nodes give; `elsewhere` is the verdict on all nodes of the
    cluster."""
    parts = never.specs if isinstance(never, NoAlternative) else (never,)
    if not partition or not all(isinstance(one, NeverFits | NoEligibleNode) for one in parts):
        return never
    if any(isinstance(one, NoEligibleNode) and one.out_of_service for one in parts) or elsewhere() is not None:
        return never
    named = [replace(one, partition=partition) for one in parts if isinstance(one, NeverFits | NoEligibleNode)]
    return none_of(named)


def blocking_reservation(shape: Shape, layout: NodeLayout, passes: Callable[[Shape], bool]) -> NodesReserved | None:
    """Return the advance reservation without which, and without those before it, a barred shape would pass; None: no
    reservation is the cause."""
    for count, name in enumerate(shape.barred, 1):
        if passes(replace(shape, barred=shape.barred[count:])):
            reservation = layout.reservations[name]
            return NodesReserved(name, Millis(reservation.start_at), Millis(reservation.end_at))
    return None


def wanted(spec: NodeSpec, resource: Resource) -> int:
    """Return how much of the resource one replica asks for, in the resource's unit."""
    match resource:
        case Resource.CPUS:
            return spec.cpus
        case Resource.MEMORY:
            return spec.memory_mib
        case Resource.CARDS:
            return spec.whole_cards
        case Resource.CARD_SHARE:
            return spec.card_milli
        case Resource.NODE:
            return 1


def _no_launcher(shape: Shape, nodes: Iterable[Node], *, in_service: bool) -> NoEligibleNode | None:
    """Return the reason if no node may run the launcher."""
    labelled = replace(shape, selector=shape.launcher)
    some = [node for node in nodes if may_launch(node, shape, in_service=False)]
    if any(not in_service or node.state is NodeState.UP for node in some):
        return None
    return replace(_no_eligible(labelled, some), launcher=True)


def _blocked_by_reservation(shape: Shape, layout: NodeLayout) -> Reason | None:
    """Return the advance reservation that keeps it from nodes that it needs."""
    if not shape.barred or _verdict(shape, _admitting(shape, layout), in_service=True) is None:
        return None
    return blocking_reservation(
        shape, layout, lambda freer: _verdict(freer, _admitting(freer, layout), in_service=True) is None
    )


def _admitting(shape: Shape, layout: NodeLayout) -> list[Group]:
    """Return the nodes that the shape may use."""
    if not shape.node_names:
        return [
            (node_free, nodes)
            for node_free, nodes in layout.sizes
            if admits(layout.node_classes[node_free.node_class], shape)
        ]
    nodes = [
        layout.nodes[order]
        for order in _pinned(shape, layout)
        if admits(layout.node_classes[layout.class_of[order]], shape)
    ]
    return _singly(nodes)


def _suiting(shape: Shape, layout: NodeLayout) -> list[Group]:
    """Return the nodes that have what the shape asks for, in any partition and reservation."""
    groups = _singly(layout.nodes[order] for order in _pinned(shape, layout)) if shape.node_names else layout.sizes
    return [(node_free, nodes) for node_free, nodes in groups if suits(node_free.node, shape)]


def _serving(shape: Shape, layout: NodeLayout) -> list[Group]:
    """Return the nodes of its partition and reservation, whether they suit it or not."""

    def is_served(node_free: NodeFree) -> bool:
        return serves(layout.node_classes[layout.class_of[layout.position[node_free.node.name]]], shape)

    groups = _singly(layout.nodes[order] for order in _pinned(shape, layout)) if shape.node_names else layout.sizes
    return [(node_free, nodes) for node_free, nodes in groups if is_served(node_free)]


def _pinned(shape: Shape, layout: NodeLayout) -> list[int]:
    orders = (order for name in shape.node_names if (order := layout.position.get(NodeName(name))) is not None)
    return sorted(set(orders))


def _with_taints_and_pools(never: Reason | None, groups: Sequence[Group], shape: Shape) -> Reason | None:
    """Add the taints and dedicated pools that keep the shape off nodes which have what it asks for."""
    if isinstance(never, NoAlternative):
        each = zip(never.specs, shape.specs, strict=True)
        reasons = [_kept_off(one, groups, replace(shape, specs=(spec,))) for one, spec in each]
        return none_of(reasons)
    return _kept_off(never, groups, shape) if isinstance(never, NeverFits | NoEligibleNode) else never


def _kept_off(never: OfOne, groups: Sequence[Group], shape: Shape) -> OfOne:
    """Return the reason with the taints and pools that keep the shape off nodes, if these are the cause."""
    if not isinstance(never, NeverFits | NoEligibleNode):
        return never
    # nodes that suit exist and are only out of service: no taint is to blame
    if isinstance(never, NoEligibleNode) and never.out_of_service:
        return never
    nodes_free = [
        node_free for node_free, _ in groups if not shape.node_names or node_free.node.name in shape.node_names
    ]
    if isinstance(never, NeverFits):
        nodes_free = [
            node_free
            for node_free in nodes_free
            if shortfall(node_free, shape.specs[0], exclusive=shape.exclusive) is None
        ]
    taints, pools = excluding_taints_and_pools([node_free.node for node_free in nodes_free], shape)
    return replace(never, taints=taints, dedicated=pools)


def _singly(nodes: Iterable[Node]) -> list[Group]:
    return [(node_free_of(node, 0, 0, ()), (node,)) for node in nodes]


def _mixed_verdict(shape: Shape, matching: Sequence[Group], *, in_service: bool) -> Reason | None:
    """Judge each kind of replica by itself, then whether all kinds fit on different nodes; nodes out of service last,
    since they come back."""
    for only_up in (False, True) if in_service else (False,):
        for group in shape.replica_groups:
            if never := _verdict(group, matching, in_service=only_up):
                return never
        wanted, most = shape.nodes + len(shape.helpers), _most_together(shape, matching, in_service=only_up)
        if most < wanted:
            out = [node for _, nodes in matching for node in nodes if node.state is not NodeState.UP]
            return _no_eligible(shape, out) if only_up else NeverFits(None, wanted, most, ())
    return None


def _most_together(shape: Shape, matching: Sequence[Group], *, in_service: bool) -> int:
    """Return how many replicas of all kinds fit at once, by the best of their alternatives."""
    groups, empty = shape.replica_groups, list(_each_empty(matching))
    usable = [each for each in empty if not in_service or each.node.state is NodeState.UP]
    holding = [[_holding(usable, shape, spec) for spec in group.specs] for group in groups]
    counts = [group.nodes for group in groups]
    # each combination of alternatives has its own nodes; the best one is the figure shown
    return max(most_distinct_nodes(nodes, counts) for nodes in product(*holding))


def _holding(nodes_free: Iterable[NodeFree], shape: Shape, spec: NodeSpec) -> list[int]:
    """Return the orders of the nodes that hold one replica; of more than the job has replicas, no kind needs any."""
    fitting = (each.order for each in nodes_free if shortfall(each, spec, exclusive=shape.exclusive) is None)
    return list(islice(fitting, shape.nodes + len(shape.helpers)))


def _spread_verdict(shape: Shape, matching: Sequence[Group], *, in_service: bool) -> Reason | None:
    """Judge spread tasks: first whether enough nodes hold one task each, then whether all tasks fit together; nodes out
    of service last, since they come back."""
    if never := _alternative(shape, shape.specs[0], matching, in_service=False):
        return never
    if spread_over(_each_empty(matching), shape) is None:
        spec, spread = shape.specs[0], shape.spread
        assert spread is not None
        held = sum(tasks_in(node_free, shape) * len(nodes) for node_free, nodes in matching)
        if spread.cards:
            total = sum(cards_in(node_free, shape) * len(nodes) for node_free, nodes in matching)
            if total < spread.cards:
                return NeverFits(Resource.CARDS, spread.cards, total, spec.card_models)
        missing = Resource.CARDS if spread.each.whole_cards else Resource.CPUS
        each = max(1, wanted(spread.each, missing))
        # nodes may hold enough tasks in sum and still not fit, for bounds of their number: fewer than all are named
        return NeverFits(missing, spread.tasks * each, min(held, spread.tasks - 1) * each, spec.card_models)
    up = [group for group in matching if group[1][0].state is NodeState.UP]
    if in_service and spread_over(_each_empty(up), shape) is None:
        return _no_eligible(shape, [node for _, nodes in matching for node in nodes if node.state is not NodeState.UP])
    return None


def fewest_nodes(shape: Shape, layout: NodeLayout) -> int:
    """Return how few nodes a shape with spread tasks could use if all were empty and in service; `nodes` where its
    tasks never fit."""
    spread = spread_over(_each_empty(_admitting(shape, layout)), shape)
    return len(spread) if spread is not None else shape.nodes


def _each_empty(groups: Iterable[Group]) -> Iterator[NodeFree]:
    """Yield one empty node state for each node."""
    each = ((node_free, node) for node_free, nodes in groups for node in nodes)
    return (replace(node_free, node=node, order=order) for order, (node_free, node) in enumerate(each))


def _verdict(shape: Shape, groups: Iterable[Group], *, in_service: bool) -> Reason | None:
    """Return None if one alternative could start; else why none of them can."""
    # groups of named nodes have one node each (`_singly`), so that the first one's name stands for the group
    matching = [group for group in groups if not shape.node_names or group[0].node.name in shape.node_names]
    if shape.helpers:
        return _mixed_verdict(shape, matching, in_service=in_service)
    if not matching:
        return _no_eligible(shape, ())
    if shape.spread is not None:
        return _spread_verdict(shape, matching, in_service=in_service)
    verdicts = []
    for spec in shape.specs:
        verdict = _alternative(shape, spec, matching, in_service)
        if verdict is None:
            return None
        verdicts.append(verdict)
    return none_of(verdicts)


def _alternative(shape: Shape, spec: NodeSpec, matching: Sequence[Group], in_service: bool) -> OfOne | None:
    """Return why one alternative could not start on these nodes if they were empty; None: it could."""
    lacking = [shortfall(node_free, spec, exclusive=shape.exclusive) for node_free, _ in matching]
    big = [nodes for (_, nodes), lack in zip(matching, lacking, strict=True) if lack is None]
    if not big:
        return _too_small(spec, [lack for lack in lacking if lack])
    count = sum(map(len, big))
    if count < shape.nodes:
        return NeverFits(None, shape.nodes, count, spec.card_models)
    # a group is of one class, and so of one state
    out = [node for nodes in big if nodes[0].state is not NodeState.UP for node in nodes]
    if in_service and count - len(out) < shape.nodes:
        return _no_eligible(shape, out)
    return None


def _too_small(spec: NodeSpec, lacking: Sequence[tuple[Resource, int]]) -> NeverFits:
    # the node that comes nearest: the furthest stage reached, and of that the most
    resource, most = max(lacking, key=lambda lack: (_STAGES.index(lack[0]), lack[1]))
    return NeverFits(resource, wanted(spec, resource), most, spec.card_models)


def _no_eligible(shape: Shape, out_of_service: Sequence[Node]) -> NoEligibleNode:
    """Return the reason for a shape that no node in service suits, with all that it asks of a node."""
    pins = tuple(NodeName(name) for name in shape.node_names)
    labels = tuple(pair_text(*pair) for pair in shape.selector)
    if shape.max_price_milli is not None:
        labels = (*labels, f"{PRICE}<={shape.max_price_milli / 1000:g}")
    return NoEligibleNode(
        pins,
        shape.pool or "",
        shape.driver_version or "",
        tuple(node.name for node in out_of_service),
        labels,
        why_out=tuple(node.why_out for node in out_of_service),
    )


def none_of(each: Sequence[OfOne]) -> OfOne | NoAlternative:
    """Return one reason for all alternatives: the common one, or one that lists them. At least one is given."""
    return each[0] if all(reason == each[0] for reason in each) else NoAlternative(tuple(each))
