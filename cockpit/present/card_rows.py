"""Cards and their slices as rows: who holds each, what is free, and what of that is stranded."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from cockpit.model.ids import JobId
from cockpit.model.node import Card, Node, NodeState
from cockpit.model.spec import WHOLE_CARD
from cockpit.model.view import NodeRow, SliceUse
from cockpit.present.stranded import Requests, free_milli, usable_cards
from cockpit.sched.nodes.cards import slot_milli


class CardState(StrEnum):
    """What becomes of a card or a part of one. Being given to somebody is not the same as being busy."""

    ALLOCATED = "allocated"
    KEPT = "kept"
    """By the container of a failed job."""
    FREE = "free"
    STRANDED = "stranded"
    """Free, yet of no use to anybody in sight."""
    OUT = "out of service"
    """Free, on a node that takes no jobs."""


class CardRow(msgspec.Struct, frozen=True, kw_only=True):
    """A whole card, one slice of a card, or what is free of one."""

    node: Node
    card: Card
    slot: int | None = None
    """From 0; None: the whole card, or what is free of one that is shared freely."""
    milli: int
    state: CardState
    job: JobId | None = None
    """None: nobody's. 0: a job that the asker may not see."""
    name: str = ""
    user: str = ""
    load: int | None = None
    """Percent, of the whole card; None: nobody knows."""

    @property
    def key(self) -> tuple[int, int]:
        """Where on its node it is; of a card that is shared freely, what is left comes after its slices."""
        if self.slot is not None:
            return self.card.index, self.slot
        return self.card.index, -1 if self.whole else WHOLE_CARD

    @property
    def whole(self) -> bool:
        return self.slot is None and self.milli == WHOLE_CARD


def card_rows(row: NodeRow, requests: Requests) -> list[CardRow]:
    """Of one node, card by card: its slices in the order of their slots, then what is free."""
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
    uses = [use for use in row.slices if use.card == card.index]
    left = free_milli(row, card)
    slots: list[int | None] = [None] if left else []
    if left and card.slices and (uses or card.slice_uuids):
        taken = {use.slot for use in uses}
        slots, left = [slot for slot in range(card.slices) if slot not in taken], slot_milli(card)
    parts = [_used(row.node, card, use, load) for use in uses]
    parts += [CardRow(node=row.node, card=card, slot=slot, milli=left, state=free, load=load) for slot in slots]
    return sorted(parts, key=lambda part: part.key)


def _used(node: Node, card: Card, use: SliceUse, load: int | None) -> CardRow:
    return CardRow(
        node=node,
        card=card,
        slot=use.slot,
        milli=use.milli,
        state=CardState.KEPT if use.held else CardState.ALLOCATED,
        job=use.job,
        name=use.name,
        user=use.user,
        load=load,
    )
