"""The columns of the list of card models: how many there are, how many are free, and how many are waited for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from cockpit.model.node import NodeState
from cockpit.model.spec import WHOLE_CARD
from cockpit.model.view import NodeRow, Overview
from cockpit.present.columns import Column, TableView, ValueKind


class ModelRow(msgspec.Struct, frozen=True):
    """Cards of one model, those out of service not counted."""

    model: str
    nodes: int
    cards: int
    free: int
    """Whole ones."""
    waited_milli: int
    """Thousandths of cards that queued jobs ask for."""


def model_rows(nodes: Iterable[NodeRow], overview: Overview) -> list[ModelRow]:
    """By name, first what is asked for of any model; also models that are only asked for."""
    up = [row for row in nodes if row.node.state is NodeState.UP and not row.login]
    names = {card.model for row in up for card in row.node.cards}
    return [_model_row(name, up, overview.demand.get(name, 0)) for name in sorted(names | overview.demand.keys())]


def _model_row(model: str, up: list[NodeRow], waited: int) -> ModelRow:
    cards = [(row, card.index) for row in up for card in row.node.cards if card.model == model]
    free = sum(all(use.card != index for use in row.slices) for row, index in cards)
    return ModelRow(model, len({row.node.name for row, _ in cards}), len(cards), free, waited)


CARD_MODELS: Final = TableView(
    name="card-models",
    identity=("model",),
    help="The models of the cluster's cards, and how many of each queued jobs ask for",
    empty="No cards in service, and no job requests any",
    columns=(
        Column(
            "model",
            "MODEL",
            ValueKind.TEXT,
            "As jobs ask for it; (any): where it does not matter to them",
            derive=lambda row, _: row.model or "(any)",
            aliases=("card_model",),
        ),
        Column("nodes", "NODES", ValueKind.INTEGER, "Nodes that have such", field="nodes"),
        Column("cards", "CARDS", ValueKind.INTEGER, "How many there are in service", field="cards"),
        Column("free", "FREE", ValueKind.INTEGER, "Of which nothing is taken", field="free"),
        Column(
            "queued",
            "QUEUED",
            ValueKind.NUMBER,
            "So many the queued jobs ask for",
            derive=lambda row, _: row.waited_milli / WHOLE_CARD,
            aliases=("demand",),
        ),
    ),
)
