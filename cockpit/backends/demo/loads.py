"""How busy the demo's cards are: as their drivers would say it, of those that a driver measures."""

from __future__ import annotations

from zlib import crc32

from msgspec.structs import replace

from cockpit.model.ids import Millis
from cockpit.model.view import CardLoad, NodeRow

LOOK_MS = 10_000
"""The figures stand so long."""
LEAST, MOST = 35, 99
"""Percent, of a card that somebody has whole."""


def measured(row: NodeRow, now: Millis) -> NodeRow:
    """The row with the loads of its cards; hardware slices are not measured, as on real ones."""
    cards = (card for card in row.node.cards if not card.slice_uuids)
    return replace(row, loads=tuple(CardLoad(card.index, _percent(row, card.index, now)) for card in cards))


def _percent(row: NodeRow, card: int, now: Millis) -> int:
    uses = [use for use in row.slices if use.card == card and not use.held]
    return sum(use.milli * _busy(f"{use.job}/{now // LOOK_MS}") // 1000 for use in uses)


def _busy(what: str) -> int:
    return LEAST + crc32(what.encode()) % (MOST - LEAST + 1)
