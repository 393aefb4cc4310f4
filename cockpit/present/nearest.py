"""Look-up of the known word that a mistyped one most likely meant."""

from __future__ import annotations

from collections.abc import Iterable


def nearest(word: str, known: Iterable[str]) -> str:
    """Return the known word that is most similar to `word`; empty where none is similar."""
    # Late, as only a wrong word needs it.
    from difflib import get_close_matches

    # Below one half the similarity is chance: a wrong suggestion helps less than the list of all words.
    matches = get_close_matches(word.lower(), list(known), n=1, cutoff=0.5)
    return matches[0] if matches else ""
