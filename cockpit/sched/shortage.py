"""Explains why a shape does not fit right now, with the nodes that come nearest to holding it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from msgspec.structs import replace

from cockpit.model.reasons import NoAlternative, NodeShortfall, NotEnoughFree, NotEvaluated, OfOne, Reason, Resource
from cockpit.model.spec import NodeSpec
from cockpit.sched.feasible import blocking_reservation, infeasible, none_of, wanted
from cockpit.sched.index import Index
from cockpit.sched.nodes.cards import accepts
from cockpit.sched.nodes.free_node_buckets import FreeNodeBuckets
from cockpit.sched.nodes.node_free import NodeFree, shortfall, whole_cards
from cockpit.sched.nodes.node_layout import NodeClass
from cockpit.sched.placement import find_placement, fitting, pinned
from cockpit.sched.shape import Shape

_MOST_NEAREST = 3
_NEARNESS = (Resource.MEMORY, Resource.CPUS, Resource.NODE, Resource.CARDS, Resource.CARD_SHARE)
"""A node that lacks only memory is nearer than one that lacks cards."""


class Shortages:
    """Reasons for one state of the index. Gangs that differ only in their number of nodes share the search."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._of_one: dict[Shape, NotEnoughFree] = {}

    def reason(self, shape: Shape) -> Reason:
        """Return what each alternative lacks, for a feasible shape that did not fit. It may fit by now if jobs were
        suspended after it was considered; the next pass will see that."""
        layout = self._index.layout
        # an advance reservation is the reason if the shape would fit on its nodes
        if kept := blocking_reservation(shape, layout, lambda freer: find_placement(self._index, freer) is not None):
            return kept
        if shape.components:
            lacking = (each for each in shape.each_component if find_placement(self._index, each) is None)
            alone = next(lacking, None)
            return self.reason(alone) if alone is not None else NotEvaluated()
        if shape.helpers:
            lacking = (group for group in shape.replica_groups if find_placement(self._index, group) is None)
            shape = next(lacking, shape.alike)
        elif shape.spread is not None:
            return self._of_tasks(shape)
        reasons = [self._of_alternative(replace(shape, specs=(spec,))) for spec in shape.specs]
        each = [one for one in reasons if one is not None]
        return none_of(each) if len(each) == len(reasons) else NotEvaluated()

    def _of_tasks(self, shape: Shape) -> Reason:
        """Return what too few nodes have for one spread task; if enough have it, all nodes together hold too few
        tasks."""
        never = infeasible(shape, self._index.layout)
        if never is not None:
            return never
        nodes_free = list(fitting(self._index, shape, shape.specs[0]))
        return NotEvaluated() if len(nodes_free) >= shape.nodes else self._of_alternative(shape) or NotEvaluated()

    def _of_alternative(self, shape: Shape) -> OfOne | None:
        """Return what one alternative lacks; None: it fits by now."""
        never = infeasible(shape, self._index.layout)
        if isinstance(never, OfOne):
            return never
        one = replace(shape, nodes=1)
        if one not in self._of_one:
            # for one node: what is short does not depend on how many nodes the gang wants
            near = nearest(self._index, one, one.specs[0])
            if not near:
                return None
            self._of_one[one] = _not_enough(self._index, one, near)
        return replace(self._of_one[one], nodes_wanted=shape.nodes)


def _not_enough(index: Index, shape: Shape, near: tuple[NodeShortfall, ...]) -> NotEnoughFree:
    """Return the reason of a shape of one node and one alternative; `near`: the nodes that lack least, not empty."""
    (spec,) = shape.specs
    return NotEnoughFree(
        resource=near[0].resource,
        wanted=wanted(spec, near[0].resource),
        card_models=spec.card_models,
        nodes_wanted=shape.nodes,
        nodes_with_room=sum(1 for _ in fitting(index, shape, spec)),
        nearest=near,
        other_models_free=_other_models_free(index, shape, spec),
        excluded=shape.excluded,
    )


def nearest(index: Index, shape: Shape, spec: NodeSpec) -> tuple[NodeShortfall, ...]:
    """Return at most three of the eligible nodes that lack least, best first; only nodes that would hold a replica when
    empty."""
    lacking = [(node_free, lack) for node_free in _near(index, shape, spec) if (lack := _lack(node_free, shape, spec))]
    lacking.sort(key=lambda each: _distance(*each))
    return tuple(NodeShortfall(node_free.node.name, *lack) for node_free, lack in lacking[:_MOST_NEAREST])


def _distance(node_free: NodeFree, lack: tuple[Resource, int]) -> tuple[int, ...]:
    return _NEARNESS.index(lack[0]), -lack[1], -node_free.cpus, -node_free.memory_mib, node_free.order


def _lack(node_free: NodeFree, shape: Shape, spec: NodeSpec) -> tuple[Resource, int] | None:
    return shortfall(node_free, spec, exclusive=shape.exclusive)


def _near(index: Index, shape: Shape, spec: NodeSpec) -> Iterable[NodeFree]:
    """Return nodes among which the nearest three are."""
    if shape.node_names:
        return (node_free for node_free in pinned(index, shape) if not _lack(node_free.emptied(), shape, spec))
    near = {
        node_free.order: node_free
        for node_class in index.layout.classes_for(shape, spec)
        for nodes_free in _candidates(index, node_class, shape, spec)
        for node_free in islice(_short_nodes(nodes_free, shape, spec), _MOST_NEAREST)
    }
    return near.values()


def _short_nodes(nodes_free: Iterable[NodeFree], shape: Shape, spec: NodeSpec) -> Iterator[NodeFree]:
    """Yield the nodes that lack something and are big enough; that their cards suffice is known from their class."""
    return (
        node_free
        for node_free in nodes_free
        if node_free.node.cpus >= spec.cpus
        and node_free.node.memory_mib >= spec.memory_mib
        and _lack(node_free, shape, spec)
    )


def _candidates(index: Index, node_class: NodeClass, shape: Shape, spec: NodeSpec) -> Iterator[Iterator[NodeFree]]:
    """Yield series of nodes of one class, each nearest first: nodes with enough cards that lack memory, and those that
    lack CPUs; then nodes that lack cards."""
    idle, holes = index.by_whole[node_class.number], index.by_hole[node_class.number]
    least = 1 if spec.shares_a_card else spec.whole_cards
    if not shape.exclusive:
        yield from _with_cards(index, idle, least, spec)
    if spec.shares_a_card and not shape.exclusive:
        yield from _with_cards(index, holes, spec.card_milli, spec)
        yield _descending(index, holes, spec.card_milli)
    yield _descending(index, idle, node_class.whole_cards + 1 if shape.exclusive else least)


def _with_cards(index: Index, buckets: FreeNodeBuckets, least: int, spec: NodeSpec) -> Iterator[Iterator[NodeFree]]:
    for key in buckets.sorted_keys():
        if key >= least:
            yield index.nodes_free_at(buckets.most_memory(key, spec.cpus))
            yield index.nodes_free_at(buckets.most_cpus(key, spec.cpus))


def _descending(index: Index, buckets: FreeNodeBuckets, below: int) -> Iterator[NodeFree]:
    # a node is in several buckets of shared cards, but is listed once
    seen: set[int] = set()
    # most cards first: these nodes lack least
    keys = [key for key in reversed(buckets.sorted_keys()) if key < below]
    for order in (order for key in keys for order in buckets.most_cpus(key)):
        if order not in seen:
            seen.add(order)
            yield index.nodes_free[order]


def _other_models_free(index: Index, shape: Shape, spec: NodeSpec) -> int:
    """Return the number of idle cards on eligible nodes in service whose model the spec does not accept."""
    if not spec.card_models:
        return 0
    if shape.node_names:
        return sum(_not_accepted(node_free, spec) for node_free in pinned(index, shape))
    # classes of other models too: without cards in the request the models do not matter
    any_model = replace(spec, card_milli=0)
    return sum(_refused_cards(index, node_class, spec) for node_class in index.layout.classes_for(shape, any_model))


def _refused_cards(index: Index, node_class: NodeClass, spec: NodeSpec) -> int:
    accepted = [accepts(spec, card) for card in node_class.cards]
    if all(accepted):
        return 0
    buckets = index.by_whole[node_class.number]
    if not any(accepted):
        # no card of the class is accepted: all idle ones count, without a look at the nodes
        return buckets.total()
    return sum(_not_accepted(node_free, spec) for node_free in index.nodes_free_at(buckets.orders()))


def _not_accepted(node_free: NodeFree, spec: NodeSpec) -> int:
    return len(node_free.idle) - len(whole_cards(node_free, spec))


def is_short_of_resources(reason: Reason) -> bool:
    """Return whether the job lacks free resources, so that others could be evicted for it."""
    reasons = reason.specs if isinstance(reason, NoAlternative) else (reason,)
    return any(isinstance(one, NotEnoughFree) for one in reasons)


def with_shortage_changed(reason: Reason, changed: Callable[[NotEnoughFree], NotEnoughFree]) -> Reason:
    """Return the reason with its part about missing resources changed."""
    if isinstance(reason, NotEnoughFree):
        return changed(reason)
    if not isinstance(reason, NoAlternative):
        return reason
    return replace(
        reason, specs=tuple([changed(one) if isinstance(one, NotEnoughFree) else one for one in reason.specs])
    )
