"""Numbers that no reader expects, put where a text has its own."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

HOSTILE = (
    "9" * 5000,
    "-" + "9" * 5000,
    "9" * 5000 + ".5",
    "0." + "0" * 5000 + "1",
    "1e5000",
    "1e-5000",
    "1e999999999",
    "0x" + "f" * 5000,
    "9" * 25,
    "18446744073709551616",
    "-9223372036854775809",
    "\u00b2",
    "\u0663",
    "1_000_000",
)
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?")


def variants(text: str, most: int = 60) -> Iterator[str]:
    """The text with each of its numbers in turn replaced by each hostile one; of a long text only some numbers."""
    found = list(_NUMBER.finditer(text))
    for each in found[:: max(1, len(found) // most)]:
        for number in HOSTILE:
            yield text[: each.start()] + number + text[each.end() :]
