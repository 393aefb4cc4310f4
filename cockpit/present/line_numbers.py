"""The numbers of the lines of a large log: exact where they were counted, else estimated."""

from __future__ import annotations

from bisect import bisect_right, insort
from typing import TYPE_CHECKING, Final

from cockpit.present.log_blocks import NotLoaded

if TYPE_CHECKING:
    from cockpit.present.log_blocks import LogBlocks

NEAR: Final = 256 << 10
"""Bytes over which lines are counted in memory, at every step of a reader."""
MOST_KNOWN: Final = 4096


class LineNumbers:
    """How many lines are before some places of a log."""

    def __init__(self, blocks: LogBlocks) -> None:
        self._blocks = blocks
        self._known: list[tuple[int, int]] = [(0, 0)]
        """Offsets, each with the number of lines before it; in order."""

    def add(self, offset: int, lines: int) -> None:
        """Take note that so many lines end before this offset."""
        if len(self._known) >= MOST_KNOWN:
            del self._known[1::2]  # every other place but the beginning
        if (offset, lines) not in self._known:
            insort(self._known, (offset, lines))

    def counted_before(self, offset: int) -> tuple[int, int]:
        """Return the last offset up to `offset` whose number is known, and that number."""
        return self._known[bisect_right(self._known, (offset, 1 << 62)) - 1]

    def last_up_to(self, lines: int) -> tuple[int, int]:
        """Return the last known offset before which at most so many lines end, and how many do."""
        return next(each for each in reversed(self._known) if each[1] <= lines)

    def before(self, offset: int) -> int | None:
        """Return how many lines end before this offset; None: that is not known."""
        behind = bisect_right(self._known, (offset, 1 << 62))
        try:
            begin, lines = self._known[behind - 1]
            if offset - begin <= NEAR:
                lines += self._blocks.lines_between(begin, offset)
            elif behind < len(self._known) and self._known[behind][0] - offset <= NEAR:
                end, lines = self._known[behind]
                lines -= self._blocks.lines_between(offset, end)
            else:
                return None
        except NotLoaded:
            return None
        self.add(offset, lines)
        return lines

    def estimate(self, offset: int) -> int:
        """Return about how many lines end before this offset: what is known, and for the rest the mean length."""
        begin, lines = self.counted_before(offset)
        return lines + round((offset - begin) / max(1.0, self._blocks.mean_line()))
