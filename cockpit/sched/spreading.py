"""Spreads tasks over any number of nodes, as many on each as fit there (`-n 24` without a fixed `-N`).

Source: Slurm's select/cons_tres. It counts how many tasks each node could hold now, takes nodes until all tasks have a
place, at least one on each, and tries to use few of them. Cards that a job asks for as a whole (`--gpus`) are spread
too, at least one on each node.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from msgspec.structs import replace

from cockpit.model.spec import WHOLE_CARD, NodeSpec, TaskSpread
from cockpit.sched.nodes.node_free import NodeFree, shortfall, whole_cards
from cockpit.sched.shape import Shape


class Share(NamedTuple):
    """What one node holds of a job."""

    node_free: NodeFree
    tasks: int
    cards: int = 0
    """Of the cards that the job asks for as a whole."""


def tasks_in(node_free: NodeFree, shape: Shape) -> int:
    """Return how many such tasks the node could hold now."""
    spec, spread = shape.specs[0], shape.spread
    assert spread is not None
    if shortfall(node_free, spec, exclusive=shape.exclusive) is not None:
        return 0
    # how many tasks each bound allows; the least of these counts
    most, each = [], spread.each
    if spread.most_per_node is not None:
        most.append(spread.most_per_node)
    if each.cpus:
        most.append(node_free.cpus // each.cpus)
    if each.memory_mib:
        most.append(node_free.memory_mib // each.memory_mib)
    if each.whole_cards:
        most.append(len(whole_cards(node_free, spec)) // each.whole_cards)
    if spread.tasks_per_card is not None:
        most.append(cards_in(node_free, shape) * spread.tasks_per_card)
    return min(most, default=spread.tasks)


def cards_in(node_free: NodeFree, shape: Shape) -> int:
    """Return how many of the cards that the job asks for as a whole the node could give now."""
    spec, spread = shape.specs[0], shape.spread
    assert spread is not None
    if not spread.cards or shortfall(node_free, spec, exclusive=shape.exclusive) is not None:
        return 0
    most, each = [len(whole_cards(node_free, spec))], spread.each_card
    if each.cpus:
        most.append(node_free.cpus // each.cpus)
    if each.memory_mib:
        most.append(node_free.memory_mib // each.memory_mib)
    return min(most)


def share_of(spec: NodeSpec, spread: TaskSpread, share: Share) -> NodeSpec:
    """Return what a share takes of its node, which gives at least what the job asks of each node."""
    each, each_card, tasks, cards = spread.each, spread.each_card, share.tasks, share.cards
    return replace(
        spec,
        cpus=max(spec.cpus, tasks * each.cpus, cards * each_card.cpus),
        memory_mib=max(spec.memory_mib, tasks * each.memory_mib, cards * each_card.memory_mib),
        card_milli=max(spec.card_milli, tasks * each.card_milli, cards * WHOLE_CARD),
    )


def spread_over(nodes_free: Iterable[NodeFree], shape: Shape) -> list[Share] | None:
    """Spread the tasks over the fewest of these nodes; None where not all of them fit.

    1. Nodes that hold most tasks come first; of equal ones the tightest, then the cluster's order.
    2. Each takes all that it holds, but leaves one task for each further node that the job must have.
    3. As soon as one node holds the rest, the tightest such node takes it, so that large free nodes stay whole.
    """
    spread = shape.spread
    assert spread is not None
    if spread.cards:
        return _spread_with_cards(nodes_free, shape)
    # 1. ascending, so that the best node is last
    holding = sorted(
        [
            (count, -node_free.cpus, -node_free.order, node_free)
            for node_free in nodes_free
            if (count := tasks_in(node_free, shape))
        ]
    )
    chosen: list[Share] = []
    left = spread.tasks
    while left:
        needed = max(1, shape.nodes - len(chosen))
        if len(holding) < needed or len(chosen) == spread.most_nodes:
            return None
        number = len(holding) - 1
        # 3. the last node
        if needed == 1 and holding[-1][0] >= left:
            enough = holding[bisect_left(holding, (left,))][0]
            number = bisect_left(holding, (enough + 1,)) - 1
        # 2. the node takes its share
        count, *_, node_free = holding.pop(number)
        taken = min(count, left - (needed - 1))
        chosen.append(Share(node_free, taken))
        left -= taken
    return chosen


def _spread_with_cards(nodes_free: Iterable[NodeFree], shape: Shape) -> list[Share] | None:
    """Spread the tasks and the cards that the job asks for as a whole over few of these nodes.

    1. Count for each node the cards and the tasks that it could hold; where cards bound the tasks, only cards with all
       their tasks count.
    2. If one node suffices, take the tightest such node.
    3. Else take the nodes that hold most of both until they suffice: each amount counts as a part of what is asked.
       Several orders are tried, which prefer cards or tasks, and the one that needs the fewest nodes is taken.
    4. Give each node one task and one card, and the rest to the first nodes.
    """
    spread = shape.spread
    assert spread is not None
    # 1. what each node could hold
    each = spread.tasks_per_card
    holding = []
    for node_free in nodes_free:
        tasks, cards = tasks_in(node_free, shape), cards_in(node_free, shape)
        cards = min(cards, tasks // each) if each is not None else cards
        if tasks and cards:
            holding.append(Share(node_free, min(tasks, spread.tasks), min(cards, spread.cards)))
    # 2. one node
    if shape.nodes == 1:
        enough = [share for share in holding if _suffice([share], spread)]
        if enough:
            best = min(enough, key=lambda share: (cards_in(share.node_free, shape), *_tightness(share.node_free)))
            return [Share(best.node_free, spread.tasks, spread.cards)]
    # 3. the fewest nodes, over several orders
    most = min(spread.tasks, spread.cards, spread.most_nodes or spread.tasks)
    chosen: list[Share] | None = None
    for weight in _WEIGHTS:
        holding.sort(
            key=lambda share, weight=weight: (  # type: ignore[misc]  # mypy knows no default in a lambda
                -(weight * share.cards / spread.cards + (1 - weight) * share.tasks / spread.tasks),
                *_tightness(share.node_free),
            )
        )
        count = shape.nodes
        while count <= min(most, len(holding)) and not _suffice(holding[:count], spread):
            count += 1
        if count <= min(most, len(holding)) and (chosen is None or count < len(chosen)):
            chosen = holding[:count]
    # 4. exact shares
    return _split_tasks(chosen, spread) if chosen is not None else None


_WEIGHTS: Final = (0.5, 1.0, 0.0, 0.75, 0.25)
"""How much cards count against tasks in each order of the nodes."""


def _suffice(shares: Sequence[Share], spread: TaskSpread) -> bool:
    """Return whether these nodes hold all tasks and cards."""
    cards = sum(share.cards for share in shares)
    return cards >= spread.cards and sum(share.tasks for share in shares) >= spread.tasks


def _tightness(node_free: NodeFree) -> tuple[int, int]:
    return node_free.cpus, node_free.order


def _split_tasks(chosen: Sequence[Share], spread: TaskSpread) -> list[Share]:
    """Return the shares of exactly all tasks and cards: one of each on each node, the rest on the first ones."""
    parts: list[Share] = []
    tasks, cards, each = spread.tasks, spread.cards, spread.tasks_per_card
    for share, behind in zip(chosen, range(len(chosen) - 1, -1, -1), strict=True):
        own_cards = min(share.cards, cards - behind)
        own_tasks = min(share.tasks, tasks - behind, own_cards * each if each is not None else tasks)
        parts.append(Share(share.node_free, own_tasks, own_cards))
        tasks, cards = tasks - own_tasks, cards - own_cards
    return parts
