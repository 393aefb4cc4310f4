"""Parts of sentences: lists of things, amounts of a resource, names from outside."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple, assert_never

from cockpit.model.reasons import Resource
from cockpit.present import units
from cockpit.present.safe import safe

RESOURCE_NAMES: Final = {
    Resource.CPUS: "CPU",
    Resource.MEMORY: "memory",
    Resource.CARDS: "card",
    Resource.CARD_SHARE: "share of a card",
    Resource.NODE: "empty node",
}


class Wording(NamedTuple):
    """A reason in words, without a full stop."""

    brief: str
    """One short clause, for a cell of a list."""
    clauses: tuple[str, ...]
    """The clauses of the sentence: first what blocks the job, then the particulars."""


def wording(first: str, *more: str, brief: str = "") -> Wording:
    """Return the wording with these clauses, of which the first is short enough for a list if `brief` is empty."""
    return Wording(brief or first, (first, *more))


def listed(things: Iterable[str], last: str = "and") -> str:
    """Return the things made harmless, as one list: `a`, `a and b`, `a, b and c`."""
    # Names come from users and other systems: made harmless here, they are so in every sentence.
    names = [safe(thing) for thing in things]
    return f" {last} ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def as_sentence(words: str) -> str:
    """Return the words with a capital letter at the beginning and a full stop: reasons and predictions have neither, as
    lists show them in a cell."""
    # Not `capitalize`, which would make small letters of all others.
    return f"{words[0].upper()}{words[1:]}."


UNKNOWN_CARD = "?"
"""The number of a card, or of a slice, that the cluster does not tell."""


def card_number(card: int, slot: int | None, *, assumed: bool = False) -> str:
    """Return a card as users count cards, from 1: `1`, or `1(2)` for the second slice of the first card. `assumed`: the
    cluster does not tell which one it is, so that it is `?` or `?(?)`."""
    if assumed:
        return UNKNOWN_CARD if slot is None else f"{UNKNOWN_CARD}({UNKNOWN_CARD})"
    return f"{card + 1}" if slot is None else f"{card + 1}({slot + 1})"


def amount(resource: Resource, number: int, card_models: tuple[str, ...] = ()) -> str:
    """Return the amount with its unit: `4 CPUs`, `64G of memory`, `4 A100 or H100`, `1 card`, `0.5 of a card`. `number`
    is in the resource's unit."""
    match resource:
        case Resource.CPUS:
            return units.counted(number, "CPU")
        case Resource.MEMORY:
            return f"{units.memory(number)} of memory"
        case Resource.CARDS:
            models = listed(card_models, "or")
            return f"{number} {models}" if models else units.counted(number, "card")
        case Resource.CARD_SHARE:
            models = listed(card_models, "or")
            return f"{units.cards(number)} of one {models or 'card'}"
        case Resource.NODE:
            return units.counted(number, "empty node")
        case _:
            assert_never(resource)


def bare_amount(resource: Resource, number: int) -> str:
    """Return the amount without its resource, where that was just named: `3`, `12G`, `0.25`."""
    match resource:
        case Resource.MEMORY:
            return units.memory(number)
        case Resource.CARD_SHARE:
            return str(units.cards(number))
        case Resource.CPUS | Resource.CARDS | Resource.NODE:
            return str(number)
        case _:
            assert_never(resource)
