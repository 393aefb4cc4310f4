"""Trackable resources as integers: thousandths of Slurm's amounts, so that sums are the same in any order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from cockpit.model.cardmodels import counted_milli
from cockpit.model.cluster import Tres
from cockpit.model.ids import NodeName
from cockpit.model.node import Node, Placement
from cockpit.model.spec import NodeSpec, TaskSpread
from cockpit.sched.rules.tres import CARDS, CPU, MEMORY, NODE, cards_of, together

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
