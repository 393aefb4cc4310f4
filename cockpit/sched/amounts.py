"""Trackable resources as integers: thousandths of Slurm's amounts, so that sums come out the same in any order."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from cockpit.model.cluster import PriorityFlag, Tres
from cockpit.model.ids import NodeName
from cockpit.model.node import Card, Node, Placement
from cockpit.model.spec import NodeSpec

Amounts = dict[str, int]
"""By TRES name (`model.cluster.Tres`), in thousandths; absent: none."""

ONE = 1000

CPU, MEM, NODE, BILLING, GPU = "cpu", "mem", "node", "billing", "gres/gpu"
_GLOBAL = ("license/", "bb/")
"""TRES that belong to no node: MAX_TRES adds them whole."""


def thousandths(amount: float) -> int:
    return round(ONE * amount)


def gpu_of(model: str) -> str:
    """The TRES of cards of one model."""
    return f"{GPU}:{model.lower()}"


def asked(spec: NodeSpec, nodes: int) -> Amounts:
    """What so many replicas ask for; cards of a model are known beforehand where only one model will do."""
    amounts = {CPU: ONE * spec.cpus * nodes, MEM: ONE * spec.memory_mib * nodes, NODE: ONE * nodes}
    if spec.card_milli:
        amounts[GPU] = spec.card_milli * nodes
        if len(spec.card_models) == 1:
            amounts[gpu_of(spec.card_models[0])] = spec.card_milli * nodes
    return amounts


def held(placement: Placement, nodes: Mapping[NodeName, Node]) -> Amounts:
    """What a placement takes. Of a node that has left the cluster nobody knows the models any more."""
    amounts = {
        CPU: ONE * sum(part.cpus for part in placement),
        MEM: ONE * sum(part.memory_mib for part in placement),
        NODE: ONE * len(placement),
    }
    for part in placement:
        node = nodes.get(part.node)
        for each in part.slices:
            amounts[GPU] = amounts.get(GPU, 0) + each.milli
            if (card := _card(node, each.card)) is not None:
                name = gpu_of(card.model)
                amounts[name] = amounts.get(name, 0) + each.milli
    return amounts


def billing(amounts: Amounts, weights: Tres, flags: Collection[PriorityFlag] = ()) -> float:
    """What these amounts are billed per second: TRESBillingWeights' sum, or with MAX_TRES the largest part of a node's
    resources plus the global ones; one per CPU where nothing is weighed."""
    if not weights:
        return amounts.get(CPU, 0) / ONE
    parts = {name: weight * amounts.get(name, 0) / ONE for name, weight in weights.items()}
    if PriorityFlag.MAX_TRES not in flags:
        return sum(parts.values())
    everywhere = sum(part for name, part in parts.items() if name.startswith(_GLOBAL))
    return everywhere + max((part for name, part in parts.items() if not name.startswith(_GLOBAL)), default=0.0)


def _card(node: Node | None, index: int) -> Card | None:
    return node.cards[index] if node is not None and index < len(node.cards) else None
