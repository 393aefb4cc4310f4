"""Calculates with cards and card slices, in thousandths of a card: what is free, what a share takes, which slots it
gets.

A card is whole or shared, never both. A shared card is cut either freely (`Card.slices == 0`) or into equal slots of a
fixed profile; a card that the hardware itself has cut (MIG) cannot be allocated whole.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import cache

from cockpit.model.node import Card, CardSlice
from cockpit.model.spec import WHOLE_CARD, NodeSpec


def slot_milli(card: Card) -> int:
    """Return the size of one slot of a fixed profile, in thousandths of the card."""
    return WHOLE_CARD // card.slices


def shareable(card: Card) -> int:
    """Return the thousandths of an empty card that shares can take."""
    return card.slices * slot_milli(card) if card.slices else WHOLE_CARD


def can_be_whole(card: Card) -> bool:
    return not card.slice_uuids


def accepts(spec: NodeSpec, card: Card) -> bool:
    return not spec.card_models or card.model in spec.card_models


def share_taken(card: Card, milli: int) -> int:
    """Return the thousandths that a share of `milli` takes on this card: fixed profiles round up to whole slots."""
    return -(-milli // slot_milli(card)) * slot_milli(card) if card.slices else milli


@cache
def whole_slices(cards: tuple[int, ...]) -> tuple[CardSlice, ...]:
    """Return the slices for these whole cards, given by index."""
    return tuple([CardSlice(card, None, WHOLE_CARD) for card in cards])


def share_slices(card: Card, milli: int, used_slots: Collection[int | None]) -> tuple[CardSlice, ...]:
    """Return the slices of a share on the lowest unused slots: one slot of any size, or as many fixed slots as it
    takes."""
    unused = _unused(used_slots)
    # a slot of a card without a fixed profile is only a number: it has whatever size the share asks for
    if not card.slices:
        return (CardSlice(card.index, next(unused), milli),)
    size = slot_milli(card)
    return tuple(CardSlice(card.index, next(unused), size) for _ in range(share_taken(card, milli) // size))


def every_slice(card: Card) -> tuple[CardSlice, ...]:
    """Return the slices that take all of an empty card."""
    return whole_slices((card.index,)) if can_be_whole(card) else share_slices(card, shareable(card), ())


def _unused(used_slots: Collection[int | None]) -> Iterator[int]:
    slot = 0
    while True:
        if slot not in used_slots:
            yield slot
        slot += 1
