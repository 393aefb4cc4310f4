"""The lines of a log of any size, of which only some blocks are in memory.

A line ends with its newline. One that is longer than a block is shown in several, so that a line of any length costs
no more memory than others: it also ends at the beginning of a block if the block before has no newline, a few bytes
earlier where this would cut a character of UTF-8. So where lines begin depends on two blocks alone, and not on how the
reader came there.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from typing import Final

BLOCK: Final = 128 << 10
"""Bytes of a block: the smallest part of a log that is read."""
MOST_BLOCKS: Final = 64
"""Most blocks in memory; those that were used last stay."""
MOST_STARTS: Final = 8
"""Most blocks whose lines are in memory: of empty lines, each takes more than the block itself."""
_CONTINUES, _LEADS = 0x80, 0xC0
"""In UTF-8, bytes below the first are a character, those below the second continue one, and others begin one."""
_LONGEST_CHARACTER: Final = 4
_NEWLINE: Final = re.compile(rb"\n")


class NotLoaded(Exception):
    """A block that is needed is not in memory; its number."""

    def __init__(self, block: int) -> None:
        super().__init__(f"block {block}")
        self.block = block


class LogBlocks:
    """What is in memory of one log, by offsets. Methods raise `NotLoaded` for what is not."""

    def __init__(self, block: int = BLOCK, most: int = MOST_BLOCKS) -> None:
        self.size = 0
        """Bytes of the log, as far as is known."""
        self.width = block
        self._most = most
        self._blocks: OrderedDict[int, bytes] = OrderedDict()
        self._starts: OrderedDict[int, array[int]] = OrderedDict()
        self._gaps: list[tuple[int, int]] = []
        """First and last offset of what was not stored, in order; line breaks stand for it."""

    @property
    def last(self) -> int:
        """Number of the last block."""
        return max(0, self.size - 1) // self.width

    def add(self, offset: int, data: bytes) -> None:
        """Add bytes of the log. Those of blocks that are not whole are left out, except at the end of the log."""
        end = offset + len(data)
        if end > self.size:
            # The last block may have been added when it was shorter, and the next one's first line depends on it.
            self._forget(self.last)
            self.size = end
        for number in range(-(-offset // self.width), -(-end // self.width)):
            begin = number * self.width
            if begin + self.width <= end or end == self.size:
                self._forget(number)
                self._blocks[number] = data[begin - offset : begin - offset + self.width]
        while len(self._blocks) > self._most:
            self._forget(next(iter(self._blocks)))

    def extend(self, data: bytes) -> None:
        """Add bytes at the end of the log."""
        begun = self._blocks.get(self.last) if self.size % self.width else b""
        if begun is None:  # its beginning is not in memory, and all of it is read when it is needed
            self._grow(self.size + len(data))
        else:
            self.add(self.size - len(begun), begun + data)

    def grow(self, size: int) -> None:
        """Take note that the log is at least so long."""
        if size > self.size:
            self._grow(size)

    def skip(self, begin: int, end: int) -> None:
        """Take note that the bytes between these offsets are not stored."""
        touching = [gap for gap in self._gaps if gap[0] <= end and begin <= gap[1]]
        kept = [gap for gap in self._gaps if gap not in touching]
        bounds = [begin, end, *(bound for gap in touching for bound in gap)]
        self._gaps = sorted([*kept, (min(bounds), max(bounds))])
        self._starts.clear()

    def bytes_between(self, begin: int, end: int) -> bytes:
        """Return the bytes between two offsets, without what is not stored."""
        for first, behind in self._gaps:
            if begin < behind and first < end:
                end = max(begin, first) if begin < first else end
                begin = max(begin, behind) if begin >= first else begin
        if begin >= end:
            return b""
        first, last = begin // self.width, (end - 1) // self.width
        data = b"".join(map(self._block, range(first, last + 1)))
        return data[begin - first * self.width : end - first * self.width]

    def next_start(self, offset: int) -> int:
        """Return where the next line after this offset begins, or the log's end."""
        for number in range(offset // self.width, self.last + 1):
            starts = self._starts_in(number)
            if (place := bisect_right(starts, offset)) < len(starts):
                return starts[place]
            if gap := self._gap_over(number):
                return gap[1]
        return self.size

    def previous_start(self, offset: int) -> int:
        """Return where the last line before this offset begins; 0 for the first one."""
        # A line may begin a few bytes before the block to which it belongs.
        number = min(self.last, (offset + _LONGEST_CHARACTER) // self.width)
        while number > 0:
            starts = self._starts_in(number)
            if place := bisect_left(starts, offset):
                return starts[place - 1]
            gap = self._gap_over(number)
            number = min(number - 1, gap[0] // self.width) if gap else number - 1
        starts = self._starts_in(0)
        return starts[max(0, bisect_left(starts, offset) - 1)] if starts else 0

    def start_at(self, offset: int) -> int:
        """Return where the line with this byte begins."""
        return self.previous_start(offset + 1)

    def lines_between(self, begin: int, end: int) -> int:
        """Return the number of line ends between two offsets, without those in what is not stored."""
        return self.bytes_between(begin, end).count(b"\n")

    def mean_line(self) -> float:
        """Return the mean length of the lines that are in memory, in bytes."""
        blocks = list(self._blocks.values())
        return sum(map(len, blocks)) / max(1, sum(each.count(b"\n") for each in blocks))

    def _grow(self, size: int) -> None:
        self._forget(self.last)
        self.size = size

    def _forget(self, number: int) -> None:
        self._blocks.pop(number, None)
        for each in (number, number + 1):
            self._starts.pop(each, None)

    def _gap_over(self, number: int) -> tuple[int, int] | None:
        """Return the part that is not stored and has all of this block; None: there is none."""
        begin, end = number * self.width, (number + 1) * self.width
        return next((gap for gap in self._gaps if gap[0] <= begin and end <= gap[1]), None)

    def _block(self, number: int) -> bytes:
        if self._gap_over(number):
            return b"\n" * self.width
        try:
            self._blocks.move_to_end(number)
        except KeyError:
            raise NotLoaded(number) from None
        return self._blocks[number]

    def _starts_in(self, number: int) -> array[int]:
        """Return where lines begin in this block, and before it the one that its beginning continues."""
        if (starts := self._starts.get(number)) is None:
            starts = self._starts[number] = array("Q", self._find_starts(number))
            if len(self._starts) > MOST_STARTS:
                self._starts.popitem(last=False)
        return starts

    def _find_starts(self, number: int) -> list[int]:
        data, begin = self._block(number), number * self.width
        starts = [begin + each.end() for each in _NEWLINE.finditer(data)]
        if starts and starts[-1] == begin + len(data):  # the next block's, or the end of the log
            starts.pop()
        if data:
            before = self._block(number - 1) if number else b"\n"
            if before.endswith(b"\n"):
                starts.insert(0, begin)
            elif b"\n" not in before:
                starts.insert(0, begin - _cut_part(before, data))
        for first, behind in self._gaps:
            starts = [each for each in starts if not first <= each < behind]
            if begin <= behind < begin + len(data) and behind not in starts:
                starts = sorted([*starts, behind])
        return starts


def _cut_part(before: bytes, after: bytes) -> int:
    """Return how many bytes at the end of `before` begin a character that `after` continues."""
    if not after or not _CONTINUES <= after[0] < _LEADS:
        return 0
    for length in range(1, min(_LONGEST_CHARACTER, len(before))):
        byte = before[-length]
        if byte >= _LEADS:
            return length
        if byte < _CONTINUES:
            return 0
    return 0
