"""A table of any length that draws only what is seen. Rows are known by their ids, never by their places.

The owner gives it rows (`TableRows`) and says what changed; the cursor, the marks and the first visible row stay with
their ids through every change. Only cells whose drawing differs are painted again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

from rich.segment import Segment
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from cockpit.present.spans import Line, Span, fitted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from textual import events

    from cockpit.tui.theme import RoleTheme

GAP = 2
MOST_DRAWN = 1_000
"""Rows whose cells are remembered: who goes through a hundred thousand does not come back to all of them."""
MARGIN = 1
"""Blank columns at the left edge; the cursor's sign stands there."""
RIGHT = 3
"""The mouse's button."""
CURSOR_SIGN = "▌"
MARK_SIGN = "◆"
BRIGHT = "bright"
BRIGHT_SECONDS = 0.9
"""Less than the time between two ticks, so that the next one ends it."""


class TableColumn(NamedTuple):
    """A column as it is laid out."""

    title: str
    width: int
    right: bool = False
    ticks: bool = False
    """Tells the time: that it differs is no news."""
    leads: bool = False
    """The rows are in its order."""
    id: str = ""
    """What the rows are sorted by when its title is clicked; empty: by nothing."""


class TableRows(Protocol):
    """What a table shows."""

    @property
    def order(self) -> Sequence[Any]:
        """Ids in the order of their lines."""
        ...

    def place(self, row_id: Any) -> int | None:  # noqa: ANN401 - each table has its own kind of id
        """Where in `order` the id stands; None when it is gone or filtered out."""
        ...

    def columns(self, width: int) -> Sequence[TableColumn]:
        """What fits into so many terminal columns."""
        ...

    def cells(self, row_id: Any, width: int) -> Sequence[Line]:  # noqa: ANN401 - likewise
        """One line of spans per column of `columns(width)`."""
        ...


class Table(ScrollView, can_focus=True):
    """The widget. `theme` gives the colours of the cells' roles."""

    DEFAULT_CSS = """
    Table { height: 1fr; scrollbar-size-vertical: 1; overflow-x: hidden; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j,down", "move(1)", show=False),
        Binding("k,up", "move(-1)", show=False),
        Binding("ctrl+d", "half_page(1)", show=False),
        Binding("ctrl+u", "half_page(-1)", show=False),
        Binding("pagedown", "page(1)", show=False),
        Binding("pageup", "page(-1)", show=False),
        Binding("g,home", "go(0)", show=False),
        Binding("G,end", "go(-1)", show=False),
        Binding("space", "mark", show=False),
        Binding("V", "mark_range", show=False),
    ]

    class CursorMoved(Message):
        """The cursor stands on another row, or on none."""

        def __init__(self, table: Table, row_id: Hashable | None) -> None:
            super().__init__()
            self.table = table
            self.row_id = row_id

    class Opened(Message):
        """Enter, or a second click."""

        def __init__(self, table: Table, row_id: Hashable) -> None:
            super().__init__()
            self.table = table
            self.row_id = row_id

    class CopyAsked(Message):
        """The right button."""

        def __init__(self, table: Table, row_id: Hashable | None) -> None:
            super().__init__()
            self.table = table
            self.row_id = row_id

    def __init__(self, rows: TableRows, theme: Callable[[], RoleTheme], *, id: str | None = None) -> None:  # noqa: A002 - Textual's word
        super().__init__(id=id)
        self._rows = rows
        self._theme = theme
        self._drawn: dict[Hashable, tuple[Line, ...]] = {}
        self._bright: dict[tuple[Hashable, int], float] = {}
        """Cells that differ since a moment ago, and until when they show it."""
        self._anchor: Hashable | None = None
        self.cursor_id: Hashable | None = None
        self.marked: set[Hashable] = set()

    @property
    def rows(self) -> TableRows:
        """What it shows."""
        return self._rows

    # What the owner tells

    def rows_changed(self, changed: Iterable[Hashable], *, news: bool = True) -> None:
        """Cells of these rows may look different; order and number are as before. `news` brightens for a moment."""
        width = self._row_width
        visible = {row_id: line for line, row_id in enumerate(self.visible_ids())}
        for row_id in changed:
            before = self._drawn.pop(row_id, None)
            line = visible.get(row_id)
            if line is not None:
                if news and before is not None:
                    self._brighten(row_id, before, width)
                self._repaint_cells(row_id, line, before, width)

    def order_changed(self) -> None:
        """Rows came, went or moved. The row under the cursor keeps its line on the screen where it can."""
        place = self._cursor_place()
        line = None if place is None or self._cursor_line is None else self._cursor_line
        self.virtual_size = Size(self._row_width, len(self._rows.order))
        if self.cursor_id is not None and place is None:
            self._put_cursor(min(self._last_place, len(self._rows.order) - 1))
        elif self.cursor_id is None and self._rows.order:
            self._put_cursor(0)
        elif place is not None and line is not None and place - line != self.scroll_offset.y:
            self.scroll_to(y=max(0, place - line), animate=False, force=True)
        self._remember_line()
        self.refresh()

    def redraw(self) -> None:
        """Everything may look different: another width, theme, or moment."""
        before, self._drawn = self._drawn, {}
        width = self._row_width
        for line, row_id in enumerate(self.visible_ids()):
            self._repaint_cells(row_id, line, before.get(row_id), width)

    def tick(self) -> None:
        """Time has passed: paint again the visible cells that tell it."""
        self._fade()
        self.rows_changed(list(self.visible_ids()), news=False)

    # Drawing

    def render_line(self, y: int) -> Strip:
        place = y + self.scroll_offset.y
        order = self._rows.order
        width = self.scrollable_content_region.width
        if place >= len(order):
            return Strip.blank(width, self._theme().on("background", "text"))
        row_id = order[place]
        ground = self._theme().on(self._row_ground(row_id), "text")
        return self._strip(row_id, self._cells(row_id)).adjust_cell_length(width, ground)

    def header(self) -> Strip:
        """The titles, laid out like the rows."""
        theme = self._theme()
        line: list[Span] = [Span(" " * MARGIN)]
        for number, column in enumerate(self._rows.columns(self._row_width)):
            title = Span(column.title, "accent" if column.leads else "muted")
            line += [Span(" " * GAP * (number > 0)), *fitted((title,), column.width, right=column.right)]
        return Strip([Segment(text, theme.on("background", role)) for text, role in line])

    def column_at(self, x: int) -> TableColumn | None:
        """The column whose title or cells stand there, the gap behind it included."""
        end = MARGIN
        for column in self._rows.columns(self._row_width):
            end += column.width + GAP
            if x < end:
                return column
        return None

    def _cells(self, row_id: Hashable) -> tuple[Line, ...]:
        drawn = self._drawn.get(row_id)
        if drawn is None:
            if len(self._drawn) >= MOST_DRAWN:
                seen = set(self.visible_ids())
                self._drawn = {each: cells for each, cells in self._drawn.items() if each in seen}
            width = self._row_width
            pairs = zip(self._rows.columns(width), self._rows.cells(row_id, width), strict=True)
            drawn = tuple(fitted(cell, column.width, right=column.right) for column, cell in pairs)
            self._drawn[row_id] = drawn
        return drawn

    def _strip(self, row_id: Hashable, cells: tuple[Line, ...]) -> Strip:
        theme, ground = self._theme(), self._row_ground(row_id)
        sign = CURSOR_SIGN if row_id == self.cursor_id else MARK_SIGN if row_id in self.marked else " "
        segments = [Segment(sign, theme.on(ground, "accent"))]
        for number, cell in enumerate(cells):
            if number:
                segments.append(Segment(" " * GAP, theme.on(ground, "text")))
            bright = BRIGHT if (row_id, number) in self._bright else ""
            segments += [Segment(text, theme.on(ground, bright or role)) for text, role in cell]
        return Strip(segments)

    def _brighten(self, row_id: Hashable, before: tuple[Line, ...], width: int) -> None:
        """What differs from `before` shows it for a moment."""
        until = asyncio.get_running_loop().time() + BRIGHT_SECONDS
        for number, (column, old, new) in enumerate(
            zip(self._rows.columns(width), before, self._cells(row_id), strict=False)
        ):
            if old != new and not column.ticks:
                self._bright[row_id, number] = until

    def _fade(self) -> None:
        now = asyncio.get_running_loop().time()
        for row_id, number in [cell for cell, until in self._bright.items() if until <= now]:
            del self._bright[row_id, number]
            self._refresh_row(row_id)

    def _row_ground(self, row_id: Hashable) -> str:
        if row_id == self.cursor_id:
            return "cursor"
        return "marked" if row_id in self.marked else "background"

    def _repaint_cells(self, row_id: Hashable, line: int, before: tuple[Line, ...] | None, width: int) -> None:
        """Ask for a repaint of just the cells that differ from `before`."""
        after = self._cells(row_id)
        if before is None or len(before) != len(after):
            self.refresh(Region(0, line, self.size.width, 1))
            return
        x = MARGIN
        for column, old, new in zip(self._rows.columns(width), before, after, strict=True):
            if old != new:
                self.refresh(Region(x, line, column.width, 1))
            x += column.width + GAP

    @property
    def _row_width(self) -> int:
        return max(0, self.scrollable_content_region.width - MARGIN)

    def visible_ids(self) -> Sequence[Hashable]:
        top = self.scroll_offset.y
        return list(self._rows.order[top : top + self.size.height])

    # The cursor

    _last_place = 0
    _cursor_line: int | None = None

    def _cursor_place(self) -> int | None:
        return None if self.cursor_id is None else self._rows.place(self.cursor_id)

    def _put_cursor(self, place: int) -> None:
        order = self._rows.order
        before = self.cursor_id
        place = max(0, min(place, len(order) - 1))
        self.cursor_id = order[place] if order else None
        self._last_place = place
        if order:
            self._show(place)
        self._remember_line()
        for row_id in (before, self.cursor_id):
            self._refresh_row(row_id)
        if before != self.cursor_id:
            self.post_message(self.CursorMoved(self, self.cursor_id))

    def _show(self, place: int) -> None:
        top, height = self.scroll_offset.y, self.size.height
        if place < top:
            self.scroll_to(y=place, animate=False, force=True)
        elif height and place >= top + height:
            self.scroll_to(y=place - height + 1, animate=False, force=True)

    def _remember_line(self) -> None:
        place = self._cursor_place()
        self._cursor_line = None if place is None else place - self.scroll_offset.y
        if place is not None:
            self._last_place = place

    def _refresh_row(self, row_id: Hashable | None) -> None:
        place = None if row_id is None else self._rows.place(row_id)
        if place is not None:
            self.refresh(Region(0, place - self.scroll_offset.y, self.size.width, 1))

    def move_to(self, row_id: Hashable) -> None:
        """Put the cursor on a row, if it is there."""
        place = self._rows.place(row_id)
        if place is not None:
            self._put_cursor(place)

    def chosen(self) -> list[Hashable]:
        """What an action is about: the marked rows, else the one under the cursor."""
        if self.marked:
            return [row_id for row_id in self._rows.order if row_id in self.marked]
        return [] if self.cursor_id is None else [self.cursor_id]

    def action_move(self, lines: int) -> None:
        place = self._cursor_place()
        self._put_cursor((self._last_place if place is None else place) + lines)

    def action_half_page(self, direction: int) -> None:
        self.action_move(direction * max(1, self.size.height // 2))

    def action_page(self, direction: int) -> None:
        self.action_move(direction * max(1, self.size.height - 1))

    def action_go(self, place: int) -> None:
        self._put_cursor(place if place >= 0 else len(self._rows.order) - 1)

    def action_mark(self) -> None:
        """Mark or unmark the row and go on to the next."""
        if self.cursor_id is not None:
            self.marked ^= {self.cursor_id}
            self._anchor = self.cursor_id
            self.action_move(1)
            self._refresh_row(self._anchor)

    def action_mark_range(self) -> None:
        """Mark everything from the last marked row to the cursor."""
        here = self._cursor_place()
        there = None if self._anchor is None else self._rows.place(self._anchor)
        if here is None:
            return
        first, last = sorted((here, here if there is None else there))
        self.marked |= set(self._rows.order[first : last + 1])
        self._anchor = self.cursor_id
        self.refresh()

    def clear_marks(self) -> bool:
        """Whether there were any."""
        had = bool(self.marked)
        self.marked.clear()
        self.refresh()
        return had

    def action_open(self) -> None:
        if self.cursor_id is not None:
            self.post_message(self.Opened(self, self.cursor_id))

    def on_click(self, event: events.Click) -> None:
        """One click puts the cursor there, a second opens; the right button copies."""
        place = event.y + self.scroll_offset.y
        if place < len(self._rows.order):
            self._put_cursor(place)
            if event.button == RIGHT:
                self.post_message(self.CopyAsked(self, self.cursor_id))
            elif event.chain > 1:
                self.action_open()

    def on_resize(self) -> None:
        self._drawn.clear()
        self.virtual_size = Size(self._row_width, len(self._rows.order))
        place = self._cursor_place()
        if place is not None:
            self._show(place)
        self._remember_line()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        self._remember_line()
