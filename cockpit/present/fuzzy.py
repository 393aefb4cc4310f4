"""Matching of a few typed letters against names: `jp` finds `job page`, `nod dr` finds `drain nodes`.

Each typed word is looked for by itself, so that their order does not matter. A word counts more where it begins the
name than where it begins a word of it, and more there than inside a word; letters that only follow each other count
least, and the first of them must begin a word.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby
from typing import Final, NamedTuple

from cockpit.present.spans import Line, Span

BEGINS_NAME, BEGINS_WORD, INSIDE, SCATTERED = 100, 80, 40, 20
"""Points of a typed word, by where it was found."""
_WORD: Final = re.compile(r"[^\W_]+")


class FuzzyMatch(NamedTuple):
    """How well a name fits what was typed."""

    score: int
    """Points; more is better, 0 for an empty query."""
    places: frozenset[int]
    """The indexes of the name's characters that were typed."""


def fuzzy_match(query: str, name: str) -> FuzzyMatch | None:
    """Return how the name fits the query; None where a word of the query is not found. Case does not matter."""
    folded = name.casefold()
    # A letter that folds to two would shift all places behind it.
    if len(folded) != len(name):
        folded = name
    score, places = 0, set[int]()
    for word in query.casefold().split():
        found = _found(word, folded)
        if found is None:
            return None
        score += found.score
        places |= found.places
    return FuzzyMatch(score, frozenset(places))


def _found(word: str, name: str) -> FuzzyMatch | None:
    begins = [each.start() for each in _WORD.finditer(name)]
    at_word = next((start for start in begins if name.startswith(word, start)), None)
    start = name.find(word) if at_word is None else at_word
    if start < 0:
        return _scattered(word, name, begins)
    points = INSIDE if at_word is None else BEGINS_NAME if start == begins[0] else BEGINS_WORD
    # The more of the name was typed, the likelier it is the one that is meant.
    return FuzzyMatch(points + 10 * len(word) // len(name), frozenset(range(start, start + len(word))))


def _scattered(word: str, name: str, begins: list[int]) -> FuzzyMatch | None:
    """Find the letters one after the other; where a letter begins a later word, it is taken there."""
    for first in (start for start in begins if name.startswith(word[0], start)):
        places = [first]
        for letter in word[1:]:
            behind = places[-1] + 1
            # The next letter of the same word, else one that begins a word, else the first one there is.
            choices = (behind, *(start for start in begins if start > behind), name.find(letter, behind))
            place = next((each for each in choices if 0 <= each < len(name) and name[each] == letter), None)
            if place is None:
                break
            places.append(place)
        else:
            return FuzzyMatch(SCATTERED, frozenset(places))
    return None


def highlighted(name: str, places: frozenset[int], role: str, match_role: str) -> Line:
    """Return the name in `role`, with the characters at these places in `match_role`."""
    return tuple(_pieces(name, places, role, match_role))


def _pieces(name: str, places: frozenset[int], role: str, match_role: str) -> Iterator[Span]:
    for is_match, pairs in groupby(enumerate(name), lambda pair: pair[0] in places):
        yield Span("".join(char for _, char in pairs), match_role if is_match else role)
