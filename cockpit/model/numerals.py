"""Whole numbers in texts from outside. Python's own `int` refuses digits by the thousand with an exception, and takes
digits of other scripts; `str.isdigit` is true of more than `int` takes."""

from __future__ import annotations

MOST_DIGITS = 18
"""More do not fit into the 64 bits that the journal and the protocol have for a number."""


def is_whole(text: str) -> bool:
    """Whether the text is ASCII digits, few enough to be a number of 64 bits."""
    return 0 < len(text) <= MOST_DIGITS and text.isascii() and text.isdigit()


def whole(text: str) -> int | None:
    """The number that the text is, without a sign; None where it is none, or too large."""
    return int(text) if is_whole(text) else None
