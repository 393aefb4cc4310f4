"""A priority as a person types it: a word, a number in the place of the computed one, or `+N` and `-N` beside it."""

from __future__ import annotations

from typing import Final

from cockpit.model.asking import SiteFactor, WantedPriority
from cockpit.model.spec import PriorityWord

MOST_DIGITS: Final = 12
EXPECTED: Final = f"{', '.join(PriorityWord)}, a number, or +N and -N"


def read_priority(text: str) -> WantedPriority | None:
    """None: it is none of these (`EXPECTED`)."""
    if text in set(PriorityWord):
        return PriorityWord(text)
    digits = text.removeprefix("+") if text.startswith("+") else text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= MOST_DIGITS):
        return None
    return int(text) if digits == text else SiteFactor(int(text))


def priority_text(wanted: WantedPriority) -> str:
    """As `read_priority` reads it back."""
    return f"{wanted.factor:+}" if isinstance(wanted, SiteFactor) else str(wanted)
