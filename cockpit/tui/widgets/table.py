"""A table for any number of rows that draws only the visible ones. It refers to rows by their ids, never by indexes.

Its owner passes a row model (`TableRows`) and reports changes. The cursor, the marks and the first visible row follow
their ids through every change, and only cells that look different are painted again.
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
from textual.widget import Widget

from cockpit.present.spans import Line, Span, fitted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from textual import events

    from cockpit.tui.theme import RoleTheme

GAP = 2
MOST_DRAWN = 1_000
"""Largest number of rows whose drawn cells are cached: enough for the visible ones, and little memory in long lists."""
MARGIN = 1
"""Width of the left margin, which shows the signs of the cursor and of marks."""
RIGHT = 3
"""Number of the mouse's right button."""
CURSOR_SIGN = "▌"
MARK_SIGN = "◆"
BRIGHT = "bright"
BRIGHT_SECONDS = 0.9
"""Seconds for which a changed cell is bright; less than the time between two ticks, so that the next tick ends it."""


class TableColumn(NamedTuple):
    """A column of the table with its width in characters."""

    title: str
    width: int
    right: bool = False
    ticks: bool = False
    """Whether it shows a passing time, so that a change of it is not highlighted."""
    leads: bool = False
    """Whether the rows are sorted by it."""
    id: str = ""
    """The column by which a click on the title sorts; empty: none."""


class TableRows(Protocol):
    """The row model of a table."""

    @property
    def order(self) -> Sequence[Any]:
        """The ids of the shown rows, in their order."""
        ...

    def place(self, row_id: Any) -> int | None:  # noqa: ANN401 - each table has its own kind of id
        """Return the id's index in `order`; None where the row does not exist or the filter hides it."""
        ...

    def columns(self, width: int) -> Sequence[TableColumn]:
        """Return the columns that fit a table of this width in characters."""
        ...

    def cells(self, row_id: Any, width: int) -> Sequence[Line]:  # noqa: ANN401 - likewise
        """Return the row's cells: one line of spans for each column of `columns(width)`."""
        ...


class RowMessage(Message):
    """A message about a row; None: there is none."""

    def __init__(self, row_id: Hashable | None) -> None:
        super().__init__()
        self.row_id = row_id


class Table(ScrollView, can_focus=True):
    """The table widget; `theme` returns the theme whose colours the cells' roles get."""

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

    class CursorMoved(RowMessage):
        """The message that the cursor has moved to another row, or that there is none any more."""

    class Opened(RowMessage):
        """The message that the user pressed Enter on a row, or clicked it a second time."""

    class CopyAsked(RowMessage):
        """The message that the user clicked a row with the right button, which copies its id."""

    def __init__(self, rows: TableRows, theme: Callable[[], RoleTheme], *, id: str | None = None) -> None:  # noqa: A002 - Textual's word
        super().__init__(id=id)
        self._rows = rows
        self._theme = theme
        self._drawn: dict[Hashable, tuple[Line, ...]] = {}
        self._bright: dict[tuple[Hashable, int], float] = {}
        """The end of the highlighting of each changed cell, by row id and column index, in the event loop's time."""
        self._anchor: Hashable | None = None
        self.cursor_id: Hashable | None = None
        self.marked: set[Hashable] = set()
        self._was_moved = False
        """Whether the user has put the cursor somewhere."""

    # What the owner tells

    def rows_changed(self, changed: Iterable[Hashable], *, news: bool = True) -> None:
        """Redraw these rows, whose order is unchanged; with `news`, cells that differ are bright for a moment."""
        # Cells are compared as drawn, cut to their columns: a change that is cut off is no news.
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
        """Redraw after rows were added, removed or moved; where possible the cursor's row stays on its screen line."""
        # Both before the cursor is put anywhere: `_cursor_line` is the screen line that the row had in the old order.
        place = self._cursor_place()
        line = None if place is None or self._cursor_line is None else self._cursor_line
        # First the size, then the scrolling: Textual limits a scroll position to the size that it knows.
        self.virtual_size = Size(self._row_width, len(self._rows.order))
        if self.cursor_id is not None and place is None:
            # The cursor's row has gone: the row that moved up into its place takes over.
            self._put_cursor(min(self._last_place, len(self._rows.order) - 1))
        elif self.cursor_id is None and self._rows.order:
            self._put_cursor(0)
        elif place is not None and line is not None and place - line != self.scroll_offset.y:
            # Rows that come and go above must not move the row that the user reads or is about to act on.
            self.scroll_to(y=max(0, place - line), animate=False, force=True)
        self._remember_line()
        self.refresh()

    def redraw(self) -> None:
        """Forget all drawn cells and redraw, as after a change of the width or the theme."""
        before, self._drawn = self._drawn, {}
        width = self._row_width
        for line, row_id in enumerate(self.visible_ids()):
            self._repaint_cells(row_id, line, before.get(row_id), width)

    def tick(self) -> None:
        """Redraw the visible cells that show a passing time."""
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
        """Return the line of column titles, laid out like the rows."""
        theme = self._theme()
        line: list[Span] = [Span(" " * MARGIN)]
        for number, column in enumerate(self._rows.columns(self._row_width)):
            title = Span(column.title, "accent" if column.leads else "muted")
            line += [Span(" " * GAP * (number > 0)), *fitted((title,), column.width, right=column.right)]
        return Strip([Segment(text, theme.on("background", role)) for text, role in line])

    def column_at(self, x: int) -> TableColumn | None:
        """Return the table's column at this screen column, with the gap behind it."""
        end = MARGIN
        for column in self._rows.columns(self._row_width):
            end += column.width + GAP
            if x < end:
                return column
        return None

    def _cells(self, row_id: Hashable) -> tuple[Line, ...]:
        """Return the row's cells, cut or padded to their columns; from the cache where the row has not changed."""
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
        """Highlight for a moment the cells that differ from `before`."""
        until = asyncio.get_running_loop().time() + BRIGHT_SECONDS
        for number, (column, old, new) in enumerate(
            # Not strict: the columns may have changed since `before` was drawn.
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
        """Request a repaint of only the cells that differ from `before`."""
        after = self._cells(row_id)
        # Other columns: no cell can be compared with the one that was there.
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
        """Put the cursor on the row at this place, or the nearest one, and scroll so that it is visible."""
        order = self._rows.order
        before = self.cursor_id
        place = max(0, min(place, len(order) - 1))
        self.cursor_id = order[place] if order else None
        # Where the cursor was last, for the case that its row goes.
        self._last_place = place
        if order:
            self._show(place)
        self._remember_line()
        for row_id in (before, self.cursor_id):
            self._refresh_row(row_id)
        # After an answer the cursor may be put where it is: that is no move, and fetches nothing.
        if before != self.cursor_id:
            self.post_message(self.CursorMoved(self.cursor_id))

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

    def stay_on_top(self) -> None:
        """Put the cursor on the first row, unless the user has moved it."""
        if not self._was_moved:
            self._put_cursor(0)

    def move_to(self, row_id: Hashable) -> None:
        """Move the cursor to this row, if the table shows it."""
        self._was_moved = True
        place = self._rows.place(row_id)
        if place is not None:
            self._put_cursor(place)

    def chosen(self) -> list[Hashable]:
        """Return the ids of the marked rows, else of the one under the cursor."""
        if self.marked:
            return [row_id for row_id in self._rows.order if row_id in self.marked]
        return [] if self.cursor_id is None else [self.cursor_id]

    def action_move(self, lines: int) -> None:
        self._was_moved = True
        place = self._cursor_place()
        self._put_cursor((self._last_place if place is None else place) + lines)

    def action_half_page(self, direction: int) -> None:
        self.action_move(direction * max(1, self.size.height // 2))

    def action_page(self, direction: int) -> None:
        self.action_move(direction * max(1, self.size.height - 1))

    def action_go(self, place: int) -> None:
        self._was_moved = True
        self._put_cursor(place if place >= 0 else len(self._rows.order) - 1)

    def action_mark(self) -> None:
        """Mark or unmark the row under the cursor and move to the next one."""
        if self.cursor_id is not None:
            self.marked ^= {self.cursor_id}
            self._anchor = self.cursor_id
            self.action_move(1)

    def action_mark_range(self) -> None:
        """Mark all rows from the last marked one to the cursor."""
        here = self._cursor_place()
        there = None if self._anchor is None else self._rows.place(self._anchor)
        if here is None:
            return
        first, last = sorted((here, here if there is None else there))
        self.marked |= set(self._rows.order[first : last + 1])
        self._anchor = self.cursor_id
        self.refresh()

    def clear_marks(self) -> bool:
        """Remove all marks; return whether there were any."""
        had = bool(self.marked)
        self.marked.clear()
        self.refresh()
        return had

    def action_open(self) -> None:
        if self.cursor_id is not None:
            self.post_message(self.Opened(self.cursor_id))

    def on_click(self, event: events.Click) -> None:
        """Move the cursor to the clicked row, open it at a second click, or copy its id with the right button."""
        place = event.y + self.scroll_offset.y
        if place < len(self._rows.order):
            self._was_moved = True
            self._put_cursor(place)
            if event.button == RIGHT:
                self.post_message(self.CopyAsked(self.cursor_id))
            elif event.chain > 1:
                self.action_open()

    def on_resize(self) -> None:
        # Columns have other widths now.
        self._drawn.clear()
        self.virtual_size = Size(self._row_width, len(self._rows.order))
        place = self._cursor_place()
        if place is not None:
            self._show(place)
        self._remember_line()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        self._remember_line()


class TitleLine(Widget):
    """The line of column titles of the present table."""

    class Clicked(Message):
        """The message that the user clicked the title of this column."""

        def __init__(self, column: str) -> None:
            super().__init__()
            self.column = column

    def __init__(self, table: Table, *, id: str) -> None:  # noqa: A002 - Textual's word
        super().__init__(id=id)
        self.table = table

    def render_line(self, y: int) -> Strip:
        return self.table.header() if y == 0 else Strip.blank(self.size.width)

    def on_click(self, event: events.Click) -> None:
        if (column := self.table.column_at(event.x)) is not None:
            self.post_message(self.Clicked(column.id))
