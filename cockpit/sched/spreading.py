"""Spreads tasks over any number of nodes, as many on each as fit there (`-n 24` without a fixed `-N`).

Source: Slurm's select/cons_tres. It counts how many tasks each node could hold now, takes nodes until all tasks have a
place, at least one on each, and tries to use few of them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable

from msgspec.structs import replace

from cockpit.model.spec import NodeSpec, TaskSpread
from cockpit.sched.nodes.node_free import NodeFree, shortfall, whole_cards
from cockpit.sched.shape import Shape


def tasks_in(node_free: NodeFree, shape: Shape) -> int:
    """Return how many such tasks the node could hold now."""
    spec, spread = shape.specs[0], shape.spread
    assert spread is not None
    if shortfall(node_free, spec, exclusive=shape.exclusive) is not None:
        return 0
    most, each = [], spread.each
    if spread.most_per_node is not None:
        most.append(spread.most_per_node)
    if each.cpus:
        most.append(node_free.cpus // each.cpus)
    if each.memory_mib:
        most.append(node_free.memory_mib // each.memory_mib)
    if each.whole_cards:
        most.append(len(whole_cards(node_free, spec)) // each.whole_cards)
    return min(most, default=spread.tasks)


def share_of(spec: NodeSpec, spread: TaskSpread, tasks: int) -> NodeSpec:
    """Return what so many of the tasks take of one node, which gives at least what the job asks of each node."""
    each = spread.each
    return replace(
        spec,
        cpus=max(spec.cpus, tasks * each.cpus),
        memory_mib=max(spec.memory_mib, tasks * each.memory_mib),
        card_milli=max(spec.card_milli, tasks * each.card_milli),
    )


def spread_over(nodes_free: Iterable[NodeFree], shape: Shape) -> list[tuple[NodeFree, int]] | None:
    """Spread the tasks over the fewest of these nodes; None where not all of them fit.

    1. Nodes that hold most tasks come first; of equal ones the tightest, then the cluster's order.
    2. Each takes all that it holds, but leaves one task for each further node that the job must have.
    3. As soon as one node holds the rest, the tightest such node takes it, so that large free nodes stay whole.
    """
    spread = shape.spread
    assert spread is not None
    # 1. ascending, so that the best node is last
    holding = sorted(
        [
            (count, -node_free.cpus, -node_free.order, node_free)
            for node_free in nodes_free
            if (count := tasks_in(node_free, shape))
        ]
    )
    chosen: list[tuple[NodeFree, int]] = []
    left = spread.tasks
    while left:
        needed = max(1, shape.nodes - len(chosen))
        if len(holding) < needed or len(chosen) == spread.most_nodes:
            return None
        number = len(holding) - 1
        # 3.
        if needed == 1 and holding[-1][0] >= left:
            enough = holding[bisect_left(holding, (left,))][0]
            number = bisect_left(holding, (enough + 1,)) - 1
        # 2.
        count, *_, node_free = holding.pop(number)
        taken = min(count, left - (needed - 1))
        chosen.append((node_free, taken))
        left -= taken
    return chosen
