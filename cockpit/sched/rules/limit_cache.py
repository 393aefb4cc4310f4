"""Requests that a limit stopped, by what it counts: all that so much use stops is known from one look."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from cockpit.sched.rules.limits import Counter


class Stop(NamedTuple):
    """A limit that stops a request for as long as so much of it is in use."""

    counter: Counter
    least: int


class LimitCache:
    """Kept from pass to pass while the rules stay what they are: a limit that was near stays near."""

    def __init__(self) -> None:
        self._by_counter: dict[Counter, list[tuple[int, int]]] = {}
        """Least use, and the number of the request; in order."""
        self._known: set[tuple[Counter, int]] = set()

    def __bool__(self) -> bool:
        return bool(self._known)

    def add(self, number: int, stop: Stop) -> None:
        if (stop.counter, number) not in self._known:
            self._known.add((stop.counter, number))
            insort(self._by_counter.setdefault(stop.counter, []), (stop.least, number))

    def between(self, counter: Counter, before: int, used: int) -> list[int]:
        """Numbers of the requests that stop when use grows from `before` to `used`."""
        stops = self._by_counter.get(counter, [])
        first, last = bisect_right(stops, (before, _LAST)), bisect_right(stops, (used, _LAST))
        return [number for _, number in stops[first:last]]

    def at(self, used: Mapping[Counter, int]) -> Iterator[int]:
        """Numbers of all requests that stop at this use."""
        for counter, stops in self._by_counter.items():
            last = bisect_right(stops, (used.get(counter, 0), _LAST))
            yield from (number for _, number in stops[:last])


_LAST = 1 << 62
"""After every number."""
