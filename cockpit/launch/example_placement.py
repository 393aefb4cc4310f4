"""A job as it would be placed on nodes that are just what it asks for: to see its launch before it has a place."""

from __future__ import annotations

from collections.abc import Sequence

from cockpit.model.cardmodels import is_one_of
from cockpit.model.ids import NodeName
from cockpit.model.image import Mpi
from cockpit.model.node import Allocation, Card, CardSlice, CardVendor, Node, Placement
from cockpit.model.spec import LAUNCHER, WHOLE_CARD, JobSpec, NodeSpec


def example_placement(spec: JobSpec, names: tuple[str, ...] = ()) -> Placement:
    """Return a placement of the first node spec on nodes of these names in turn; without names on `node-1`,
    `node-2` …"""
    asked_by_rank = _asked_by_rank(spec)
    nodes = names or tuple(f"node-{rank + 1}" for rank in range(len(asked_by_rank)))
    return tuple(
        Allocation(rank, NodeName(nodes[rank % len(nodes)]), requests.cpus, requests.memory_mib, _slices(requests))
        for rank, requests in enumerate(asked_by_rank)
    )


def example_node(spec: JobSpec, part: Allocation, known: Sequence[Node], mpi: Mpi | None = None) -> Node:
    """Return a node that is just what one replica of `example_placement` takes; `known` are the cluster's nodes."""
    cards = example_cards(spec, part, known)
    return Node(name=part.node, cpus=part.cpus, memory_mib=part.memory_mib, cards=cards, mpi=mpi)


def example_cards(spec: JobSpec, part: Allocation, known: Sequence[Node]) -> tuple[Card, ...]:
    """Return a card for each one that a replica of `example_placement` uses, without a UUID, which only real cards
    have.

    The vendor is that of the first card of the cluster's nodes (`known`) with a model that the replica asks for. Where
    there is none it is NVIDIA, the default of cards that cluster.toml declares.
    """
    models = _asked_by_rank(spec)[part.rank].card_models
    fitting = (card for node in known for card in node.cards if is_one_of(card.model, models))
    like = next(fitting, None)
    model, vendor = (like.model, like.vendor) if like is not None else ((*models, "card")[0], CardVendor.NVIDIA)
    return tuple(Card(index=each.card, model=model, vendor=vendor) for each in part.slices)


def _asked_by_rank(spec: JobSpec) -> list[NodeSpec]:
    """Return what each replica requests, by rank: the launcher, the workers, then parameter servers and further
    pools."""
    return [*[LAUNCHER] * spec.first_worker, *[spec.specs[0]] * spec.nodes, *spec.helpers]


def _slices(requested: NodeSpec) -> tuple[CardSlice, ...]:
    if requested.shares_a_card:
        return (CardSlice(0, 0, requested.card_milli),)
    return tuple(CardSlice(card, None) for card in range(requested.card_milli // WHOLE_CARD))
