"""The rows of a log on a screen: which are shown from a place on, and the place some rows above or below.

A row is a line of the log, or a part of one that is wrapped. Methods raise `NotLoaded` for blocks that are not in
memory; after these were added, the same call goes on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from cockpit.present.log_lines import LOOK_BACK, line_of_bytes
from cockpit.present.spans import line_width, wrapped

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cockpit.present.log_blocks import LogBlocks
    from cockpit.present.spans import Line


MOST_LONG_LINES: Final = 16
"""Most lines of a page that are longer than a block: more would take more blocks than fit into memory."""


class Place(NamedTuple):
    """A row of a log."""

    offset: int = 0
    """Where its line begins."""
    row: int = 0
    """Its number in the line, where that is wrapped."""


class Row(NamedTuple):
    """A row as it is drawn."""

    place: Place
    end: int
    """Where the next line begins."""
    line: Line


class LogPages:
    """The rows of a log in a window of some size."""

    def __init__(self, blocks: LogBlocks, known: Sequence[str] = ()) -> None:
        self.blocks = blocks
        self._known = known
        """Values of the job's secret variables, which are masked."""
        self.columns = 80
        self.height = 24
        self.wraps = False

    def rows_from(self, top: Place) -> list[Row]:
        """Return the rows from this place on, as many as fit."""
        rows: list[Row] = []
        offset, skipped = top
        long_lines = 0
        while len(rows) < self.height and offset < self.blocks.size and long_lines < MOST_LONG_LINES:
            end = self.blocks.next_start(offset)
            drawn = self._drawn(offset, end)
            # A narrower window, or a line that was shortened, may have fewer rows than before.
            first = min(skipped, len(drawn) - 1)
            rows += [Row(Place(offset, first + number), end, each) for number, each in enumerate(drawn[first:])]
            long_lines += end - offset >= self.blocks.width
            offset, skipped = end, 0
        return rows[: self.height]

    def moved(self, place: Place, rows: int) -> Place:
        """Return the place so many rows below, or above where `rows` < 0; not beyond the last page."""
        moved = self._below(place, rows) if rows >= 0 else self._above(place, -rows)
        return min(moved, self.last_page()) if rows > 0 else moved

    def last_page(self) -> Place:
        """Return the place from which the last row is at the bottom of the window."""
        return self._above(Place(self.blocks.size), self.height)

    def place_of(self, offset: int) -> Place:
        """Return the place of the row with this byte."""
        begin = self.blocks.start_at(offset)
        if not self.wraps:
            return Place(begin)
        return Place(begin, min(self.column_of(begin, offset) // self.columns, self._height(begin) - 1))

    def column_of(self, begin: int, offset: int) -> int:
        """Return the column of a byte in the line that begins at `begin`."""
        return line_width(line_of_bytes(self.blocks.bytes_between(begin, offset)))

    def _below(self, place: Place, rows: int) -> Place:
        offset, row = place.offset, place.row + rows
        while offset < self.blocks.size and row >= (height := self._height(offset)):
            offset, row = self.blocks.next_start(offset), row - height
        return Place(offset, row)

    def _above(self, place: Place, rows: int) -> Place:
        offset, row = place.offset, place.row - rows
        long_lines = 0
        while row < 0 and offset > 0 and long_lines < MOST_LONG_LINES:
            before, offset = offset, self.blocks.previous_start(offset)
            long_lines += before - offset >= self.blocks.width
            row += self._height(offset)
        return Place(offset, max(0, row))

    def _height(self, offset: int) -> int:
        return len(self._drawn(offset, self.blocks.next_start(offset))) if self.wraps else 1

    def _drawn(self, begin: int, end: int) -> list[Line]:
        data = self.blocks.bytes_between(begin, end)
        # Colours go on from line to line. Blocks that are not in memory anyway are not read for them.
        near = max(begin - LOOK_BACK, begin // self.blocks.width * self.blocks.width, 0)
        line = line_of_bytes(data, self.blocks.bytes_between(near, begin), self._known)
        return wrapped(line, self.columns) if self.wraps else [line]
