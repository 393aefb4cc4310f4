"""Remembers the classes that a limit stopped, so that the next pass knows from one look-up which are still stopped."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from cockpit.sched.rules.limits import Counter


class Stop(NamedTuple):
    """A limit that stops a class while at least so much is in use of its counter, in thousandths."""

    counter: Counter
    least: int


class LimitCache:
    """The stopped classes, kept from pass to pass while the rules stay the same: a limit that was near stays near."""

    def __init__(self) -> None:
        self._by_counter: dict[Counter, list[tuple[int, int]]] = {}
        """By counter: the least use that stops a class, and the class's number; sorted."""
        self._known: set[tuple[Counter, int]] = set()

    def __bool__(self) -> bool:
        return bool(self._known)

    def add(self, number: int, stop: Stop) -> None:
        if (stop.counter, number) not in self._known:
            self._known.add((stop.counter, number))
            insort(self._by_counter.setdefault(stop.counter, []), (stop.least, number))

    def between(self, counter: Counter, before: int, used: int) -> list[int]:
        """Return the numbers of the classes that stop when use grows from `before` to `used`."""
        stops = self._by_counter.get(counter, [])
        # lists are sorted by the least use that stops a class, so each step of the use stops one slice of the list
        first, last = bisect_right(stops, (before, _LAST)), bisect_right(stops, (used, _LAST))
        return [number for _, number in stops[first:last]]

    def at(self, used: Mapping[Counter, int]) -> Iterator[int]:
        """Yield the numbers of all classes that stop at this use."""
        for counter, stops in self._by_counter.items():
            last = bisect_right(stops, (used.get(counter, 0), _LAST))
            yield from (number for _, number in stops[:last])


_LAST = 1 << 62
"""A number larger than any class number."""
