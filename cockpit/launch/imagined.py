"""A job as it would be placed on nodes that are just what it asks for: to see its launch before it has a place."""

from __future__ import annotations

from cockpit.model.ids import NodeName
from cockpit.model.image import Mpi
from cockpit.model.node import Allocation, Card, CardSlice, Node, Placement
from cockpit.model.spec import LAUNCHER, WHOLE_CARD, JobSpec, NodeSpec


def imagined_placement(spec: JobSpec, names: tuple[str, ...] = ()) -> Placement:
    """Of its first node spec, on nodes of these names by turns; without any on `node-1`, `node-2` …"""
    kinds = [*[LAUNCHER] * spec.first_worker, *[spec.specs[0]] * spec.nodes, *spec.helpers]
    nodes = names or tuple(f"node-{rank + 1}" for rank in range(len(kinds)))
    return tuple(
        Allocation(rank, NodeName(nodes[rank % len(nodes)]), asked.cpus, asked.memory_mib, _slices(asked))
        for rank, asked in enumerate(kinds)
    )


def imagined_node(spec: JobSpec, name: NodeName, mpi: Mpi | None = None) -> Node:
    """With the cards that one replica takes."""
    asked = spec.specs[0]
    model = asked.card_models[0] if asked.card_models else "card"
    cards = tuple(Card(index=part.card, model=model) for part in _slices(asked))
    return Node(name=name, cpus=asked.cpus, memory_mib=asked.memory_mib, cards=cards, mpi=mpi)


def _slices(asked: NodeSpec) -> tuple[CardSlice, ...]:
    if asked.shares_a_card:
        return (CardSlice(0, 0, asked.card_milli),)
    return tuple(CardSlice(card, None) for card in range(asked.card_milli // WHOLE_CARD))
