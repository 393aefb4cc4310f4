"""Cards, their slices and their models: the rows, and their columns for every output."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Final

import msgspec

from cockpit.model.ids import JobId
from cockpit.model.node import Card, Node, NodeState
from cockpit.model.spec import WHOLE_CARD
from cockpit.model.view import NodeRow, Overview, SliceUse
from cockpit.present.columns import Column, Context, TableView, ValueKind
from cockpit.present.phrases import card_number
from cockpit.present.references import job_cell
from cockpit.present.stranded import Requests, free_milli, usable_cards
from cockpit.sched.nodes.cards import slot_milli

UNMEASURED, HARDWARE_SLICED = "n/a", "n/a (MIG)"


class CardState(StrEnum):
    """Allocation state of a card or a part of one. An allocated card need not be busy."""

    ALLOCATED = "allocated"
    HELD = "kept"  # the word of JSON and filters, which stays
    """Held by the container of a failed job."""
    FREE = "free"
    STRANDED = "stranded"
    """Free, but of no use to any known request."""
    OUT = "out of service"
    """Free, but on a node that takes no jobs."""


class CardRow(msgspec.Struct, frozen=True, kw_only=True):
    """A whole card, one slice of a card, or the free part of a card."""

    node: Node
    card: Card
    slot: int | None = None
    """Number of the slice from 0; None: the whole card, or the free part of a card without fixed slices."""
    milli: int
    state: CardState
    job: JobId | None = None
    """The job that holds it; None: no job; 0: a job that the user may not see."""
    name: str = ""
    user: str = ""
    load: int | None = None
    """Percentage of the whole card that is busy; None: not measured."""
    assumed: bool = False
    """Whether the job holds a part of this size on the node, and the cluster does not tell on which card."""

    @property
    def key(self) -> tuple[int, int]:
        """The card's index and the slice's number; the free part of a card without fixed slices comes after its
        slices."""
        if self.slot is not None:
            return self.card.index, self.slot
        return self.card.index, -1 if self.whole else WHOLE_CARD

    @property
    def whole(self) -> bool:
        return self.slot is None and self.milli == WHOLE_CARD


def card_rows(row: NodeRow, requests: Requests) -> list[CardRow]:
    """Return a node's rows card by card: the slices in the order of their slots, then the free part."""
    # Without any request for cards nothing is stranded: there is nothing that could not use them.
    usable = usable_cards(row, requests) if requests else {card.index for card in row.node.cards}
    loads = {load.card: load.percent for load in row.loads}
    return [
        part
        for card in row.node.cards
        for part in _parts(
            row, card, _free_state(row, card, usable), None if card.slice_uuids else loads.get(card.index)
        )
    ]


def _free_state(row: NodeRow, card: Card, usable: set[int]) -> CardState:
    if row.node.state is not NodeState.UP:
        return CardState.OUT
    return CardState.FREE if card.index in usable else CardState.STRANDED


def _parts(row: NodeRow, card: Card, free: CardState, load: int | None) -> list[CardRow]:
    """Return the card's parts: those in use, and the free slots or the free rest."""
    uses = [use for use in row.slices if use.card == card.index]
    # A card that is not in use is one free part, even if it could be cut. Once it is cut, in software or hardware, its
    # free slots are parts of their own, as each can be allocated by itself.
    left = free_milli(row, card)
    slots: list[int | None] = [None] if left else []
    if left and card.slices and (uses or card.slice_uuids):
        used_slots = {use.slot for use in uses}
        slots, left = [slot for slot in range(card.slices) if slot not in used_slots], slot_milli(card)
    parts = [_used_part(row.node, card, use, load) for use in uses]
    parts += [CardRow(node=row.node, card=card, slot=slot, milli=left, state=free, load=load) for slot in slots]
    # By place and not by state, so that a part stays where it is while jobs come and go.
    return sorted(parts, key=lambda part: part.key)


def _used_part(node: Node, card: Card, use: SliceUse, load: int | None) -> CardRow:
    """Return the row of a part in use."""
    return CardRow(
        node=node,
        card=card,
        slot=use.slot,
        milli=use.milli,
        state=CardState.HELD if use.held else CardState.ALLOCATED,
        job=use.job,
        name=use.name,
        user=use.user,
        load=load,
        assumed=use.assumed,
    )


def usage(row: CardRow, _: Context) -> str:
    """Return `1(1):app`, `?:app` where it is not known which card the job holds, or the place alone where no
    job holds it."""
    place = card_number(row.card.index, row.slot, assumed=row.assumed)
    return f"{place}:{row.name}" if row.job is not None else place


def in_use_words(row: CardRow, _: Context) -> str:
    """Return the busy percentage, or why it is not measured, which is not the same as 0."""
    if row.load is not None:
        return f"{row.load} %"
    # NVML gives no utilisation for MIG instances.
    return HARDWARE_SLICED if row.card.slice_uuids else UNMEASURED


CARDS: Final = TableView(
    name="cards",
    identity=("node", "card", "slice"),
    help="The cluster's cards, their slices, and who holds them",
    empty="No cards in service. Of this machine: cockpit doctor. Declared ones: cards in cluster.toml",
    columns=(
        Column("node", "NODE", "The node's name", field="node.name"),
        Column("usage", "CARD", "card(slice):job, both from 1; ?: not known which", derive=usage),
        Column("model", "MODEL", "The card's model", field="card.model", aliases=("card_model",)),
        Column(
            "state",
            "STATE",
            "allocated: to a job; kept: by a failed job's container; stranded: free, but of no use to any job "
            "that waits or runs; out of service: on a drained or down node",
            schema={"type": "string", "enum": [str(state) for state in CardState]},
            aliases=("status",),
        ),
        Column(
            "share",
            "SHARE",
            "Of the whole card; 0.5 is half of it",
            ValueKind.NUMBER,
            derive=lambda row, _: row.milli / WHOLE_CARD,
        ),
        # Allocated and busy are different things: this is measured, the state is what the scheduler gave away.
        Column(
            "in_use",
            "IN USE",
            "Percent of the time that the card is busy; null: not measured, which is not 0",
            ValueKind.INTEGER,
            field="load",
            words=in_use_words,
            nullable=True,
            aliases=("load",),
        ),
        Column(
            "job",
            "JOB",
            "Who holds it",
            ValueKind.INTEGER,
            derive=lambda row, _: row.job or None,  # 0 is a job that the user may not see
            words=lambda row, _: job_cell(row.job),
            nullable=True,
            aliases=("id",),
        ),
        Column("user", "USER", "Whose job that is", derive=lambda row, _: row.user or None, nullable=True),
        Column("name", "NAME", "The job's name", derive=lambda row, _: row.name or None, nullable=True, wide=True),
        Column(
            "card",
            "NUMBER",
            "The card on its node, from 1",
            ValueKind.INTEGER,
            derive=lambda row, _: row.card.index + 1,
            wide=True,
        ),
        Column(
            "slice",
            "SLICE",
            "The virtual card on its card, from 1",
            ValueKind.INTEGER,
            derive=lambda row, _: None if row.slot is None else row.slot + 1,
            nullable=True,
            wide=True,
            aliases=("slot",),
        ),
        Column(
            "memory_mib",
            "MEMORY",
            "Of the whole card; 0: unknown",
            ValueKind.MIB,
            field="card.memory_mib",
            wide=True,
            aliases=("memory",),
        ),
        Column("vendor", "VENDOR", "Who makes the card", field="card.vendor", wide=True),
        Column(
            "uuid",
            "UUID",
            "The card's or the hardware slice's",
            derive=lambda row, _: uuid(row),
            nullable=True,
            wide=True,
        ),
        Column(
            "assumed",
            "ASSUMED",
            "Whether the cluster does not tell which card the job holds, so that card and slice are only counted",
            ValueKind.RECORD,
            words=lambda row, _: "yes" if row.assumed else "no",
            schema={"type": "boolean"},
            wide=True,
        ),
        Column("pool", "POOL", "The node's pool", field="node.pool", wide=True),
        Column("node_state", "NODE STATE", "up, drained or down", field="node.state", wide=True),
    ),
)


def uuid(row: CardRow) -> str | None:
    """Return the UUID of the hardware slice where the row is one, else of the card; None: it has none, or it is not
    known which card it is."""
    if row.assumed:
        return None
    if row.slot is not None and row.slot < len(row.card.slice_uuids):
        return row.card.slice_uuids[row.slot]
    return row.card.uuid or None


class ModelRow(msgspec.Struct, frozen=True):
    """Totals of one card model, without cards out of service."""

    model: str
    nodes: int
    cards: int
    free: int
    """Number of cards of which no part is allocated."""
    waited_milli: int
    """Cards that queued jobs request, in thousandths."""


def model_rows(nodes: Iterable[NodeRow], overview: Overview) -> list[ModelRow]:
    """Return one row per card model in order of the names, models that are only requested included."""
    # Cards that no job can get do not count.
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
            "As jobs ask for it; (any): where it does not matter to them",
            derive=lambda row, _: row.model or "(any)",
            aliases=("card_model",),
        ),
        Column("nodes", "NODES", "Nodes that have such", ValueKind.INTEGER),
        Column("cards", "CARDS", "How many there are in service", ValueKind.INTEGER),
        Column("free", "FREE", "Of which nothing is taken", ValueKind.INTEGER),
        Column(
            "queued",
            "QUEUED",
            "So many the queued jobs ask for",
            ValueKind.NUMBER,
            derive=lambda row, _: row.waited_milli / WHOLE_CARD,
            aliases=("demand",),
        ),
    ),
)
