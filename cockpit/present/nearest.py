"""The known word that a mistyped one most likely meant."""

from __future__ import annotations

from collections.abc import Iterable


def nearest(word: str, known: Iterable[str]) -> str:
    """Empty when none is near."""
    from difflib import get_close_matches  # noqa: PLC0415 - only mistakes need it

    found = get_close_matches(word.lower(), list(known), n=1, cutoff=0.5)
    return found[0] if found else ""
