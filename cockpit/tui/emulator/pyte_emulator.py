"""The emulator of pyte: pure Python, for machines that pyghostty has no library for. It interprets less than a megabyte
a second.

pyte lacks the alternate screen and a scrollback that can be read while output arrives; both are here.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

import pyte
from pyte.modes import DECTCEM
from rich.segment import Segment

from cockpit.tui.emulator.base import Cursor, Modes
from cockpit.tui.emulator.cells import Look, PaletteOrRgb, cell_style, cell_text
from cockpit.tui.emulator.sequences import SequenceFilter

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.style import Style

HISTORY_LINES = 2_000
"""Fewer than with pyghostty: each line is a list of Python objects."""
ALTERNATE_SCREENS = frozenset({47, 1047, 1049})
_NAMES = ("black", "red", "green", "brown", "blue", "magenta", "cyan", "white")
_PALETTE = {name: number for number, name in enumerate(_NAMES)} | {
    f"bright{name}": number + 8 for number, name in enumerate(_NAMES)
}
_PALETTE["bfightmagenta"] = 13  # pyte 0.8 spells it so


class PyteEmulator:
    """A terminal of pyte."""

    def __init__(self, columns: int, rows: int) -> None:
        self.columns, self.rows = columns, rows
        self._screen = _Screen(columns, rows)
        self._stream = _Stream(self._screen)
        self._filter = SequenceFilter()
        self._back = 0
        """How many lines the view is above the newest."""
        self._lines: list[Sequence[Segment]] = [()] * rows

    def feed(self, data: bytes) -> bytes:
        pushed = self._screen.pushed
        self._stream.feed(self._filter.passed(data))
        # The view stays on the same lines while new ones come.
        if self._back:
            self._back = min(self._back + self._screen.pushed - pushed, len(self._screen.history))
        replies, self._screen.replies = "".join(self._screen.replies), []
        return replies.encode()

    def resize(self, columns: int, rows: int) -> None:
        self.columns, self.rows = columns, rows
        self._screen.resize(rows, columns)
        self._screen.dirty.update(range(rows))

    def changed(self) -> Sequence[int]:
        if len(self._lines) != self.rows:
            self._lines = [()] * self.rows
        dirty = sorted(row for row in self._screen.dirty if row < self.rows)
        rows = range(self.rows) if self._back and dirty else dirty
        self._screen.dirty.clear()
        for row in rows:
            self._lines[row] = self._row(row)
        return rows

    def _row(self, row: int) -> Sequence[Segment]:
        if row < self._back:
            return self._screen.history[len(self._screen.history) - self._back + row]
        return segments_of(self._screen.buffer[row - self._back], self.columns)

    def line(self, row: int) -> Sequence[Segment]:
        return self._lines[row]

    def cursor(self) -> Cursor | None:
        where = self._screen.cursor
        row = where.y + self._back
        if DECTCEM not in self._screen.mode or row >= self.rows:
            return None
        return Cursor(min(where.x, self.columns - 1), row)

    def modes(self) -> Modes:
        # pyte keeps private modes shifted, so that they differ from those of ANSI.
        private = {mode >> 5 for mode in self._screen.mode if not mode & 31}
        return Modes(
            application_cursor=1 in private,
            bracketed_paste=2004 in private,
            mouse_clicks=1000 in private,
            mouse_drags=1002 in private,
            mouse_moves=1003 in private,
            sgr_mouse=1006 in private,
            alternate_screen=self._screen.is_alternate,
        )

    def scroll(self, lines: int) -> None:
        if not self._screen.is_alternate:
            self._back = max(0, min(self._back - lines, len(self._screen.history)))
            self._screen.dirty.update(range(self.rows))

    def scrolled_back(self) -> int:
        return self._back

    def close(self) -> None:
        self._screen.history.clear()


class _Stream(pyte.Stream):
    """A stream that survives sequences with numbers that pyte does not expect."""

    def _send_to_parser(self, data: str) -> bool | None:
        try:
            return super()._send_to_parser(data)
        except (TypeError, ValueError, IndexError, KeyError):
            return True  # its parser has begun anew, behind the sequence


class _Screen(pyte.Screen):
    """A screen with an alternate one, whose scrolled lines are kept and whose answers are collected."""

    def __init__(self, columns: int, rows: int) -> None:
        self.history: deque[Sequence[Segment]] = deque(maxlen=HISTORY_LINES)
        self.pushed = 0
        """How many lines were ever scrolled out of sight."""
        self.replies: list[str] = []
        self._primary: tuple[Any, Any] | None = None
        """Contents and cursor of the primary screen, while the alternate one is shown."""
        super().__init__(columns, rows)

    @property
    def is_alternate(self) -> bool:
        """Whether a full-screen program is shown."""
        return self._primary is not None

    def index(self) -> None:
        top, bottom = self.margins or (0, self.lines - 1)
        if self.cursor.y == bottom and top == 0 and not self.is_alternate:
            self.history.append(segments_of(self.buffer[0], self.columns))
            self.pushed += 1
        super().index()

    def set_mode(self, *modes: int, **kwargs: Any) -> None:  # noqa: ANN401 - pyte's signature
        super().set_mode(*modes, **kwargs)
        if kwargs.get("private") and ALTERNATE_SCREENS.intersection(modes) and not self.is_alternate:
            cells = {row: cells.copy() for row, cells in self.buffer.items()}
            self._primary = cells, (self.cursor.x, self.cursor.y, self.cursor.attrs)
            self.erase_in_display(2)

    def reset_mode(self, *modes: int, **kwargs: Any) -> None:  # noqa: ANN401 - pyte's signature
        super().reset_mode(*modes, **kwargs)
        if kwargs.get("private") and ALTERNATE_SCREENS.intersection(modes) and self._primary is not None:
            cells, (x, y, attributes) = self._primary
            self._primary = None
            self.buffer.clear()
            self.buffer.update(cells)
            self.cursor.x, self.cursor.y = min(x, self.columns - 1), min(y, self.lines - 1)
            self.cursor.attrs = attributes
            self.dirty.update(range(self.lines))

    def write_process_input(self, data: str) -> None:
        self.replies.append(data)


def segments_of(cells: Mapping[int, Any], columns: int) -> Sequence[Segment]:
    """Return a line of pyte's cells as segments, without the unstyled blanks at its end."""
    segments: list[Segment] = []
    text: list[str] = []
    present: Style | None = None
    for column in range(max((column for column in cells if column < columns), default=-1) + 1):
        cell = cells[column]
        # The second half of a wide character is a cell of its own, without text.
        if not cell.data:
            continue
        style = _style(cell)
        if style is not present and text:
            segments.append(Segment("".join(text), present))
            text = []
        present = style
        is_wide = column + 1 < columns and column + 1 in cells and not cells[column + 1].data
        text.append(cell_text(cell.data, 2 if is_wide else 1))
    if text:
        segments.append(Segment("".join(text), present))
    return segments


def _style(cell: Any) -> Style:  # noqa: ANN401 - pyte has no types
    look = Look(
        _colour(cell.fg),
        _colour(cell.bg),
        cell.bold,
        False,
        cell.italics,
        cell.underscore,
        cell.reverse,
        cell.strikethrough,
    )
    return cell_style(look)


def _colour(name: str) -> PaletteOrRgb:
    if name == "default":
        return None
    if name in _PALETTE:
        return _PALETTE[name]
    return int(name[:2], 16), int(name[2:4], 16), int(name[4:], 16)
