"""Calculates trackable resources (TRES) by Slurm's names: what a job asks for, what nodes have, and how that is
billed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cache

from msgspec.structs import replace

from cockpit.model.cardmodels import counted_milli, instances_per_card
from cockpit.model.cluster import Cluster, PriorityFlag, Tres
from cockpit.model.ids import NodeName
from cockpit.model.node import Node, Placement
from cockpit.model.spec import WHOLE_CARD, JobSpec, NodeSpec, TaskSpread

LICENCES = "license"
"""The type of a licence; its name is given beside it."""
CPU = "cpu"
MEMORY = "mem"
NODE = "node"
BILLING = "billing"
CARDS = "gres/gpu"


@cache
def cards_of(model: str) -> str:
    """Return the TRES of one card model."""
    return f"{CARDS}:{model.lower()}"


def requested(spec: JobSpec, alternative: int = 0) -> Tres:
    """Return what the whole job asks for on all its nodes, by the given alternative."""
    own = together(spec.specs[alternative], spec.nodes, spec.helpers, spec.spread)
    return added([own, *map(requested, spec.components)])


def added(amounts: Iterable[Tres]) -> Tres:
    """Return the sum of the amounts."""
    total: Counter[str] = Counter()
    for each in amounts:
        total.update(each)
    return dict(total)


def together(each: NodeSpec, count: int, others: Iterable[NodeSpec], spread: TaskSpread | None = None) -> Tres:
    """Return what so many replicas ask for, with helpers of other kinds; for spread tasks, at least what they ask for
    in all."""
    total = replicas(each, count)
    if spread is not None:
        tasks = replicas(replace(spread.each, card_models=each.card_models), spread.tasks)
        # each node gives at least what one replica asks for, but all tasks together may need more
        cards = replicas(replace(spread.each_card, card_milli=WHOLE_CARD, card_models=each.card_models), spread.cards)
        for more in (tasks, cards):
            total |= {name: max(amount, total.get(name, 0.0)) for name, amount in more.items() if name != NODE}
    for other in others:
        for name, amount in replicas(other, 1).items():
            total[name] = total.get(name, 0.0) + amount
    return total


def replicas(each: NodeSpec, count: int) -> Tres:
    """Return what so many replicas ask for. Cards also count under their model if exactly one model will do, as with
    Slurm's `--gres=gpu:model:n`."""
    amounts: Tres = {CPU: each.cpus, MEMORY: each.memory_mib, NODE: 1}
    if each.card_milli:
        model = each.card_models[0] if len(each.card_models) == 1 else ""
        amounts[CARDS] = counted_milli(each.card_milli, model) / WHOLE_CARD
        if model:
            amounts[cards_of(model)] = amounts[CARDS]
    return {name: float(count * amount) for name, amount in amounts.items()}


def capacity(nodes: Iterable[Node]) -> Tres:
    """Return what the nodes have, in service or not, free or not."""
    total: Counter[str] = Counter()
    for node in nodes:
        total.update({CPU: node.cpus, MEMORY: node.memory_mib, NODE: 1})
        for card in node.cards:
            # a card cut into instances counts as many cards as it has instances
            count = instances_per_card(card.model) or 1
            total.update({CARDS: count, cards_of(card.model): count})
    return {name: float(amount) for name, amount in total.items()}


def billing(amounts: Mapping[str, float], weights: Tres, *, greatest: bool) -> float:
    """Return the billing of amounts by a partition's TRESBillingWeights, in the amounts' unit: their weighted sum;
    without weights, one per CPU.

    `greatest` (PriorityFlags=MAX_TRES): of the resources of nodes only the one with the highest product counts, plus
    the sum of all others. Source: Slurm's `assoc_mgr_tres_weighted`.
    """
    if not weights:
        return amounts.get(CPU, 0.0)
    weighted = {name: amounts.get(name, 0.0) * weight for name, weight in weights.items() if name != BILLING}
    if not greatest:
        return sum(weighted.values())
    of_nodes = [amount for name, amount in weighted.items() if _is_of_nodes(name)]
    return max(of_nodes, default=0.0) + sum(amount for name, amount in weighted.items() if not _is_of_nodes(name))


def billed(amounts: Mapping[str, float], cluster: Cluster, partition: str) -> float:
    """Return the billing of amounts by the cluster's rules for the partition."""
    named = cluster.partition(partition)
    greatest = PriorityFlag.MAX_TRES in cluster.priority.flags
    return billing(amounts, named.billing_weights if named else {}, greatest=greatest)


def _is_of_nodes(name: str) -> bool:
    return name in {CPU, MEMORY, NODE} or name.startswith("gres/")


# Amounts are integers, in thousandths of Slurm's units, so that sums are the same in any order.
Amounts = dict[str, int]
"""Thousandths by TRES name (`model.cluster.Tres`); absent: none."""

ONE = 1000


def thousandths(amount: float) -> int:
    return round(ONE * amount)


def asked(spec: NodeSpec, nodes: int, others: Iterable[NodeSpec] = (), spread: TaskSpread | None = None) -> Amounts:
    """Return what so many replicas ask for, with helpers of other kinds; for spread tasks, the least."""
    return _amounts(together(spec, nodes, others, spread))


def held(placement: Placement, nodes: Mapping[NodeName, Node]) -> Amounts:
    """Return what a placement holds. Nodes and cards that have left the cluster no longer tell the model."""
    amounts = {CPU: 0, MEMORY: 0, NODE: 0}
    for part in placement:
        amounts[CPU] += ONE * part.cpus
        amounts[MEMORY] += ONE * part.memory_mib
        cards = node.cards if part.slices and (node := nodes.get(part.node)) is not None else ()
        for piece in part.slices:
            model = cards[piece.card].model if piece.card < len(cards) else ""
            milli = counted_milli(piece.milli, model)
            amounts[CARDS] = amounts.get(CARDS, 0) + milli
            if model:
                amounts[cards_of(model)] = amounts.get(cards_of(model), 0) + milli
    amounts[NODE] = ONE * len({part.node for part in placement})
    return amounts


def allocated(placement: Placement, nodes: Mapping[NodeName, Node]) -> Tres:
    """Return what a placement holds in Slurm's own units."""
    return {name: amount / ONE for name, amount in held(placement, nodes).items()}


def _amounts(tres: Tres) -> Amounts:
    return {name: thousandths(amount) for name, amount in tres.items()}
