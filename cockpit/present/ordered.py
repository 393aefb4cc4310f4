"""Ids in the order of keys that never repeat: found and moved by bisection, so that little change costs little."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Any, Generic, TypeVar

Key = Any
"""What compares with every other key."""
Id = TypeVar("Id")


class Ordered(Generic[Id]):
    """`ids` is what to read, `move` what changes it. They are given in the order of their keys."""

    def __init__(self, keys: list[Key], ids: list[Id]) -> None:
        self.ids = ids
        self._keys = keys

    def place(self, key: Key) -> int | None:
        """Where the id with that key stands."""
        place = bisect_left(self._keys, key)
        return place if place < len(self._keys) and self._keys[place] == key else None

    def move(self, gone: Iterable[Key], come: Iterable[tuple[Key, Id]]) -> None:
        """Take out the ids with these keys (each must be there), then put in these."""
        cuts = [(bisect_left(self._keys, key), True) for key in gone]
        new = sorted(come, key=itemgetter(0))
        if not cuts and (not self._keys or not new or self._keys[-1] < new[0][0]):
            self.ids += [each for _, each in new]
            self._keys += [key for key, _ in new]
            return
        edits = sorted([*cuts, *((bisect_left(self._keys, key), False) for key, _ in new)])
        self.ids = _edited(self.ids, edits, [each for _, each in new])
        self._keys = _edited(self._keys, edits, [key for key, _ in new])


T = TypeVar("T")


def _edited(old: list[T], edits: Sequence[tuple[int, bool]], new: Sequence[T]) -> list[T]:
    """`edits`: ascending places, each with whether the element there goes; else the next new one comes before it."""
    edited: list[T] = []
    coming = iter(new)
    done = 0
    for place, goes in edits:
        edited += old[done:place]
        done = place
        if goes:
            done += 1
        else:
            edited.append(next(coming))
    edited += old[done:]
    return edited
