"""Texts in which device plugins register cards and schedulers write allocations: HAMi's, and Volcano's after it.

A colon ends each card, a semicolon each container. Fields are separated by commas.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from cockpit.backends.kubernetes.mapping.cards.models import short_model
from cockpit.backends.kubernetes.mapping.cards.scheme import Share, Unreadable, share_milli, whole_number
from cockpit.model.node import Card, CardVendor
from cockpit.model.spec import WHOLE_CARD


class Registered(NamedTuple):
    """A card in a register."""

    uuid: str
    memory_mib: int
    type: str
    """Maker and model, such as `NVIDIA-NVIDIA H100 80GB HBM3`."""
    healthy: bool


def cards_of(registered: Iterator[Registered], vendor: CardVendor) -> dict[str, Card]:
    """Return the healthy cards of a register by their UUIDs. Kubernetes offers no others."""
    cards: dict[str, Card] = {}
    for each in registered:
        if each.healthy and each.uuid not in cards:
            cards[each.uuid] = Card(
                index=len(cards),
                model=short_model(each.type) or "card",
                vendor=vendor,
                memory_mib=each.memory_mib,
                uuid=each.uuid,
            )
    return cards


def records(text: str, least: int, where: str) -> Iterator[list[str]]:
    """Yield the fields of each card in a text. Raises `Unreadable` where a card has fewer than `least`."""
    for record in text.replace(";", ":").split(":"):
        if not record.strip():
            continue
        fields = record.split(",")
        if len(fields) < least:
            raise Unreadable(f"{where}: {record!r} has {len(fields)} fields instead of {least}")
        yield fields


def number(text: str, where: str) -> int:
    """Return a number of a register. Raises `Unreadable`."""
    found = whole_number(text)
    if found is None:
        raise Unreadable(f"{where}: {text!r} is no number")
    return found


def allocated(text: str, cards: Mapping[str, Card], where: str, resource: str) -> Iterator[Share]:
    """Yield the shares in an allocation: UUID, maker, memory in MiB and percent of the cores of each card.

    A share's size is that of its memory, or of its cores where no memory is told.
    """
    for uuid, _, memory_text, cores_text, *_ in records(text, 4, where):
        memory, cores = number(memory_text, where), number(cores_text, where)
        # An instance of a card that is cut has the place in brackets behind the UUID of its card.
        name = uuid.partition("[")[0]
        card = cards.get(name)
        if card is not None and memory and card.memory_mib:
            milli = share_milli(memory, card.memory_mib)
        else:
            milli = share_milli(cores, 100) if cores else WHOLE_CARD
        yield Share(name, milli, resource)
