"""Finds the nodes that limits leave to a job that may hold more than it asks for: a whole node (exclusive), slots of a
sliced card, or cards of a model that it did not name.

Nodes that are equal when empty are judged as one group, so a cluster of ten thousand nodes has a few groups. For a gang
every choice of groups is tried, up to a bound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from msgspec.structs import replace

from cockpit.model.ids import NodeName
from cockpit.model.node import NodeState
from cockpit.model.reasons import Limit, LimitReached, QuotaFull, never_starts
from cockpit.model.spec import NodeSpec
from cockpit.sched.equivalence import EquivalenceClass
from cockpit.sched.feasible import fewest_nodes, infeasible
from cockpit.sched.gates import NO_AMOUNTS, CounterAmounts, Gates
from cockpit.sched.index import Index
from cockpit.sched.nodes.node_free import allocate, node_free_of, shortfall
from cockpit.sched.nodes.node_layout import NodeLayout, admits
from cockpit.sched.placement import fitting
from cockpit.sched.rules.limits import JOBS
from cockpit.sched.rules.tres import NODE, ONE, Amounts
from cockpit.sched.shape import Shape

_MOST_CHOICES = 5_000


class _Group(NamedTuple):
    """Nodes on which a replica holds the same amounts."""

    names: tuple[NodeName, ...]
    up: tuple[NodeName, ...]
    """The nodes in service."""
    amounts: Amounts


_Choice = tuple[tuple[_Group, int], ...]
"""Groups, each with the number of nodes taken from it."""


def varies(equivalence_class: EquivalenceClass, shape: Shape) -> bool:
    """Return whether what a job of the class holds may depend on its nodes, and a limit may count it."""
    if not (equivalence_class.scope.running or equivalence_class.scope.budgets) or shape.is_uneven:
        return False
    return shape.exclusive or any(spec.card_milli for spec in shape.specs)


def limit_of_all(
    gates: Gates, equivalence_class: EquivalenceClass, shape: Shape, requested: Amounts, layout: NodeLayout
) -> Limit | None:
    """Return the limit that a job would break by one alternative on any nodes, even if nothing else ran; None: there is
    none."""
    # what spread tasks ask for is the least; how many nodes they need depends on the cluster
    if shape.spread is not None and equivalence_class.scope.running and shape.partition not in layout.totalled:
        requested = requested | {NODE: ONE * max(fewest_nodes(shape, layout), requested[NODE] // ONE)}
    never = gates.never(equivalence_class, requested)
    if never is not None or not varies(equivalence_class, shape) or shape.partition in layout.totalled:
        return never
    return _limit(
        _groups(gates, shape, shape.specs[0], layout), shape, lambda amounts: gates.never(equivalence_class, amounts)
    )


def limit_now(
    gates: Gates,
    equivalence_class: EquivalenceClass,
    shape: Shape,
    layout: NodeLayout,
    free: CounterAmounts = NO_AMOUNTS,
) -> Limit | None:
    """Return the limit that a job of a class that passed would break, by each alternative and on any nodes, with what
    is in use; None: some nodes are left to it."""
    first_limit = None
    for spec in shape.specs if varies(equivalence_class, shape) and shape.partition not in layout.totalled else ():
        groups = _groups(gates, shape, spec, layout)
        limit = _limit(groups, shape, lambda amounts: gates.exceeded(equivalence_class, amounts, free))
        if limit is None:
            return None
        # the reason names the limit of the first alternative, the one that the user prefers
        first_limit = first_limit or limit
    return first_limit


def within_limits(
    gates: Gates, equivalence_class: EquivalenceClass, shape: Shape, index: Index, free: CounterAmounts = NO_AMOUNTS
) -> Shape:
    """Return the shape restricted to the nodes that the limits leave to it; unchanged where they leave all, or none.

    Where they leave only nodes out of service it is restricted to these: it waits for them, and takes no reservation on
    nodes that it may not use.
    """
    if not varies(equivalence_class, shape) or shape.partition in index.layout.totalled:
        return shape
    restricted = [
        _restricted(gates, equivalence_class, replace(shape, specs=(spec,)), index, free) for spec in shape.specs
    ]
    if all(each is None for each in restricted):
        return shape
    # one restriction for all alternatives can be expressed by node names; else the first alternative that fits now
    several = {each.node_names for each in restricted if each is not None}
    if len(several) == 1 and all(each is not None and each.specs for each in restricted):
        return replace(shape, node_names=several.pop())
    left = [each or replace(shape, specs=(spec,)) for each, spec in zip(restricted, shape.specs, strict=True)]
    allowed = [each for each in left if each.specs]
    up = {node.name for _, nodes in index.layout.sizes for node in nodes if node.state is NodeState.UP}
    # stable: of those that may start when something comes free, the one that the user prefers comes first; behind them
    # those that wait for nodes out of service, and at last those that no node could hold
    allowed.sort(
        key=lambda each: (_never_fits(each, index.layout), bool(each.node_names) and up.isdisjoint(each.node_names))
    )
    fits = (each for each in allowed if sum(1 for _ in fitting(index, each, each.specs[0])) >= each.nodes)
    return next(fits, allowed[0] if allowed else shape)


def _never_fits(shape: Shape, layout: NodeLayout) -> bool:
    reason = infeasible(shape, layout)
    return reason is not None and never_starts(reason)


def _restricted(
    gates: Gates, equivalence_class: EquivalenceClass, shape: Shape, index: Index, free: CounterAmounts
) -> Shape | None:
    """Restrict one alternative to the nodes left to it. None: all nodes are left; a shape without specs: none is."""
    # only nodes in service: a choice with others could not start now
    known = _groups(gates, shape, shape.specs[0], index.layout)
    groups = [each for each in known if each.up]
    choices = _choices(groups, shape.nodes, up=True)
    allowed = [each for each in choices if gates.exceeded(equivalence_class, _sum(each), free) is None]
    # node names restrict a shape and make it one of its own, so it stays as it is where nothing is excluded
    if choices and not allowed:
        waits_for = _names_out_of_service(gates, equivalence_class, shape, known, free)
        return replace(shape, node_names=waits_for) if waits_for else replace(shape, specs=())
    if len(allowed) == len(choices):
        return None
    if shape.nodes == 1:
        return replace(shape, node_names=tuple(name for ((group, _),) in allowed for name in group.up))
    nodes_free = {node_free.node.name for node_free in fitting(index, shape, shape.specs[0])}
    names = [_names_of_choice(each, nodes_free) for each in allowed]
    free_now = (each for each in names if nodes_free.issuperset(each))
    return replace(shape, node_names=next(free_now, names[0] if names else ()))


def _names_out_of_service(
    gates: Gates, equivalence_class: EquivalenceClass, shape: Shape, groups: Sequence[_Group], free: CounterAmounts
) -> tuple[NodeName, ...]:
    """Return nodes that would break no limit but are not all in service: for one node all of them, else those of the
    first choice; none where every choice breaks a limit."""
    choices = _choices(groups, shape.nodes, up=False)
    allowed = [each for each in choices if gates.exceeded(equivalence_class, _sum(each), free) is None]
    if shape.nodes == 1:
        return tuple(name for ((group, _),) in allowed for name in group.names)
    return tuple(name for group, count in (allowed[0] if allowed else ()) for name in group.names[:count])


def _names_of_choice(choice: _Choice, nodes_free: set[NodeName]) -> tuple[str, ...]:
    """Return nodes of these groups, those that fit now first."""
    first = [(sorted(group.up, key=lambda name: name not in nodes_free), count) for group, count in choice]
    return tuple(name for names, count in first for name in names[:count])


def _limit(groups: Sequence[_Group], shape: Shape, broken: Callable[[Amounts], Limit | None]) -> Limit | None:
    """Return None where some choice of nodes breaks no limit, or there are no such nodes; else the limit that is
    exceeded least."""
    limits: list[Limit] = []
    for choice in _choices(groups, shape.nodes, up=False):
        limit = broken(_sum(choice))
        if limit is None:
            return None
        limits.append(limit)
    return min(limits, key=_excess, default=None)


def _excess(limit: Limit) -> float:
    return limit.asked / limit.allowed if isinstance(limit, LimitReached | QuotaFull) and limit.allowed else 0.0


def _choices(groups: Sequence[_Group], count: int, *, up: bool) -> Sequence[_Choice]:
    """Return the ways to choose so many nodes by the number taken from each group, up to a bound; those with the
    smallest amounts first."""
    sizes = [len(group.up if up else group.names) for group in groups]
    if count == 1:
        return [((group, 1),) for group, size in zip(groups, sizes, strict=True) if size]
    return [*islice(_split(groups, sizes, count), _MOST_CHOICES)]


def _split(groups: Sequence[_Group], sizes: Sequence[int], count: int) -> Iterator[_Choice]:
    if not count:
        yield ()
        return
    rest = sum(sizes[1:])
    # as many as possible from the first group, whose amounts are smallest; never so few that the other groups cannot
    # make up for it
    for taken in range(min(count, sizes[0]) if sizes else 0, max(0, count - rest) - 1, -1):
        for others in _split(groups[1:], sizes[1:], count - taken):
            yield ((groups[0], taken), *others) if taken else others


def _sum(choice: _Choice) -> Amounts:
    total: Amounts = {}
    for group, count in choice:
        for resource, amount in group.amounts.items():
            total[resource] = total.get(resource, 0) + count * amount
    return total | {JOBS: ONE}


def _groups(gates: Gates, shape: Shape, spec: NodeSpec, layout: NodeLayout) -> list[_Group]:
    """Return the groups, those with the smallest amounts first; cached while nodes and rules stay the same."""
    key = gates.rules_version, shape, spec
    known: list[_Group] | None = layout.groups.get(key)
    if known is None:
        known = layout.groups[key] = _grouped(gates, shape, spec, layout)
    return known


def _grouped(gates: Gates, shape: Shape, spec: NodeSpec, layout: NodeLayout) -> list[_Group]:
    """Group the nodes that could hold a replica by what it would hold on them, the smallest amounts first."""
    names_by_amounts: dict[tuple[tuple[str, int], ...], list[NodeName]] = {}
    # nodes in service; those that are not still count for limits that hold on any nodes
    serving = set()
    for node_free, nodes in layout.sizes:
        if (
            not admits(layout.node_classes[node_free.node_class], shape)
            or shortfall(node_free, spec, exclusive=shape.exclusive) is not None
        ):
            continue
        for node in nodes:
            if shape.node_names and node.name not in shape.node_names:
                continue
            if node.state is NodeState.UP:
                serving.add(node.name)
        # placed for trial on an empty node of the group: all its nodes would hold the same
        held = (allocate(node_free_of(nodes[0], 0, node_free.node_class, ()), spec, 0, exclusive=shape.exclusive),)
        amounts = gates.held_by(held, shape.partition)
        names = [node.name for node in nodes if not shape.node_names or node.name in shape.node_names]
        names_by_amounts.setdefault(tuple(sorted(amounts.items())), []).extend(names)
    groups = [
        _Group(tuple(names), tuple(name for name in names if name in serving), dict(amounts))
        for amounts, names in names_by_amounts.items()
        if names
    ]
    return sorted(groups, key=lambda each: sorted(each.amounts.items()))
