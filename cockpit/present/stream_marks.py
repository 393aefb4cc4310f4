"""Which parts of a merged log are from stderr, and when each had been written; of what was read of it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from cockpit.model.asking import LogChunk

MOST_PARTS: Final = 400_000
"""Most parts in memory; of more, those far from the last ones are forgotten, and known again once they are read."""


class Part(NamedTuple):
    """A part of a merged log."""

    is_error: bool
    at: int
    """When it had been written, in milliseconds UTC."""


class StreamMarks:
    """The parts of one merged log, by their ends."""

    def __init__(self) -> None:
        self._ends: list[int] = []
        self._parts: dict[int, Part] = {}

    def add(self, chunk: LogChunk) -> None:
        """Take note of the parts of this piece."""
        if not chunk.moments:
            return
        # A part of stderr may be cut by the piece, and then ends with it as its moment does.
        errors = {end for _, end in chunk.errors}
        for end, at in chunk.moments:
            self._parts[end] = Part(end in errors, at)
        low, high = bisect_left(self._ends, chunk.moments[0][0]), bisect_right(self._ends, chunk.moments[-1][0])
        ends = {end for end, _ in chunk.moments} | set(self._ends[low:high])
        self._ends[low:high] = sorted(ends)
        if len(self._ends) > MOST_PARTS:
            first = max(0, low - MOST_PARTS // 4)
            self._ends = self._ends[first : low + len(ends) + MOST_PARTS // 4]
            self._parts = {end: self._parts[end] for end in self._ends}

    def of(self, end: int) -> Part | None:
        """Return the part with the byte before this offset; None: it was not read."""
        place = bisect_left(self._ends, end)
        return self._parts[self._ends[place]] if place < len(self._ends) else None
