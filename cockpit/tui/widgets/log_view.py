"""The widget for a log of any size, of which it reads what it shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.segment import Segment
from rich.style import Style
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from cockpit.errors import CockpitError
from cockpit.present.log_blocks import NotLoaded
from cockpit.present.log_lines import line_of_bytes
from cockpit.present.log_pages import LogPages, Place
from cockpit.present.moments import clock_of_second
from cockpit.present.spans import MUTED, TEXT, Line, Span, line, marked, plain, shifted
from cockpit.present.units import grouped
from cockpit.tui.log_source import LogSource, Query
from cockpit.tui.widgets.lines import FOUND, MATCH, RIGHT, strip_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from textual import events

    from cockpit.present.columns import Context
    from cockpit.present.log_pages import Row
    from cockpit.tui.theme import RoleTheme

NO_TIME = " " * 8
"""Blanks in place of a time, as wide as `clock_of_second` writes one."""
ERROR_SIGN, NO_SIGN = "! ", "  "
"""What is before a line of stderr and of stdout in a merged log, also where there are no colours."""
STDERR: Final = "warning"
"""The role of text from stderr in a merged log."""
WHEEL_ROWS: Final = 3
COUNTED_BYTES: Final = 256 << 20
"""Bytes whose lines are counted for an exact number without being asked for: more would burden a file server."""


class LogView(Widget, can_focus=True):
    """A scrolling widget for a log. With `follow` its end stays visible while it grows."""

    class Moved(Message):
        """The message that another part is shown, or that more is known of it."""

    DEFAULT_CSS = "LogView { height: 1fr; }"
    BINDINGS = [  # noqa: RUF012 - Textual reads it from the class
        ("j,down", "by(1)", ""),
        ("k,up", "by(-1)", ""),
        ("ctrl+d,pagedown", "pages(1)", ""),
        ("ctrl+u,pageup", "pages(-1)", ""),
        ("g,home", "top", ""),
        ("G,end", "bottom", ""),
        ("right", "sideways(1)", ""),
        ("left", "sideways(-1)", ""),
    ]

    def __init__(self, theme: Callable[[], RoleTheme], context: Callable[[], Context]) -> None:
        super().__init__()
        self._theme, self._table_context = theme, context
        self.source: LogSource | None = None
        self._pages: LogPages | None = None
        self._top = Place()
        self._left = 0
        """Number of columns that are out of sight at the left."""
        self.rows: list[Row] = []
        """What is drawn."""
        self._moves: list[Callable[[LogPages], Place]] = []
        """Moves that wait for a block of the log, in order."""
        self._is_loading = False
        self._wraps = False
        self.follow = False
        self.shows_times = False
        self.query_text: Query | None = None
        """What is highlighted; None: nothing."""
        self.match: tuple[int, int] | None = None
        """First byte and length of the present match."""

    def open(self, source: LogSource | None) -> None:
        """Show this log from its end on, once it was read; None: none."""
        self.workers.cancel_node(self)
        self.source = source
        self._pages = LogPages(source.blocks, source.known) if source is not None else None
        self._top, self._left, self.rows, self._moves, self._is_loading = Place(), 0, [], [], False
        self.match = None
        self.refresh()

    def grown(self) -> None:
        """Draw what came since; with `follow`, go to the end."""
        if self.follow:
            self.action_bottom()
        else:
            self._advance()

    def move(self, where: Callable[[LogPages], Place]) -> None:
        """Go to a place, which is looked for again whenever a block was missing for it."""
        self._moves.append(where)
        if not self._is_loading:
            self._advance()

    def go_to(self, offset: int, *, at_end_too: bool = False) -> None:
        """Show the line with this byte a third below the top; with `at_end_too` rather the end, if that shows it."""

        def place(pages: LogPages) -> Place:
            last = pages.last_page()
            here = pages.place_of(offset)
            if at_end_too and here >= last:
                return last
            self.follow = False
            return min(pages.moved(here, -(pages.height // 3)), last)

        self.move(place)

    def show_column(self, offset: int) -> None:
        """Scroll sideways so that this byte is visible, where lines are cut."""

        def place(pages: LogPages) -> Place:
            column = pages.column_of(pages.blocks.start_at(offset), offset)
            visible = self._text_columns()
            if not self._left <= column < self._left + visible - 1:
                self._left = 0 if column < visible - 1 else column - visible // 3
            return self._top

        if not self._wraps:
            self.move(place)

    def wrap(self) -> None:
        """Wrap long lines, or cut them at the edge."""
        self._wraps, self._left = not self._wraps, 0
        self._top = Place(self._top.offset)
        self._advance()

    def toggle_times(self) -> None:
        """Show or hide the time at which each line arrived."""
        self.shows_times = not self.shows_times
        self._advance()

    @property
    def top(self) -> int:
        """Offset of the first line that is shown."""
        return self._top.offset

    def position(self) -> str:
        """Return which line is the first one shown, of how many, such as `line 7 of about 6 100 000`."""
        if self.source is None or not self.rows:
            return ""
        numbers, size = self.source.numbers, self.source.blocks.size
        here, total = numbers.before(self._top.offset), numbers.before(size)
        first = grouped(here + 1) if here is not None else f"about {_rounded(numbers.estimate(self._top.offset) + 1)}"
        if total is None:
            return f"line {first} of about {_rounded(numbers.estimate(size))}"
        # The last line counts without its newline, too.
        ends = 1 if self._ends_in_line() else 0
        return f"line {first} of {grouped(total + ends)}"

    def _ends_in_line(self) -> bool:
        assert self.source is not None
        size = self.source.blocks.size
        try:
            return bool(size) and not self.source.blocks.bytes_between(size - 1, size).endswith(b"\n")
        except NotLoaded:
            return False

    def _advance(self) -> None:
        """Carry out the moves and lay out the rows, as far as their blocks are in memory."""
        if self.source is None or self._pages is None or not self.is_mounted:
            return
        if self._pages.blocks is not self.source.blocks:  # the log began anew
            self._pages, self._top = LogPages(self.source.blocks, self.source.known), Place()
        pages = self._pages
        pages.columns, pages.height, pages.wraps = self._text_columns(), max(1, self.size.height), self._wraps
        try:
            while self._moves:
                self._top = self._moves[0](pages)
                self._moves.pop(0)
            self.rows = pages.rows_from(self._top)
        except NotLoaded as missing:
            if not self._is_loading:
                self._is_loading = True
                self.run_worker(self._load(self.source, missing.block), name="log block", group="load")
            return
        self.refresh()
        self.post_message(self.Moved())

    async def _load(self, source: LogSource, block: int) -> None:
        try:
            await source.load(block)
        except CockpitError as error:
            self._moves.clear()
            self.app.notify(str(error), severity="warning")
            return
        finally:
            if source is self.source:
                self._is_loading = False
        if source is self.source:
            self._advance()

    @property
    def is_settled(self) -> bool:
        """Whether all that is to be shown is shown."""
        return not self._is_loading and not self._moves

    # Drawing

    def _text_columns(self) -> int:
        return max(1, self.size.width - 1 - self._lead_columns())

    def _lead_columns(self) -> int:
        """Return the columns before the text: the time, and the sign of stderr."""
        is_merged = self.source is not None and self.source.is_merged
        return (len(NO_TIME) + 2 if self.shows_times else 0) + (len(ERROR_SIGN) if is_merged else 0)

    def render_line(self, y: int) -> Strip:
        theme = self._theme()
        ground = theme.background("background")
        shown = self._shown(y)
        text = strip_of(shown, max(0, self.size.width - 1), theme, ground)
        return Strip([*text, self._scrollbar(y, theme) or Segment(" ", ground)], self.size.width)

    def _shown(self, y: int) -> Line:
        if self.source is None or not self.source.opened.is_set():
            return ()
        if not self.source.blocks.size:
            ending = "" if self.source.ended else " yet"
            where = "stdout and stderr" if self.source.is_merged else self.source.request.stream
            return line(Span(f" nothing on {where}{ending}", MUTED)) if y == 0 else ()
        if y >= len(self.rows):
            return ()
        row = self.rows[y]
        shown = shifted(row.line, self._left) if self._left else row.line
        if text := self._marked_text():
            is_match = self.match is not None and row.place.offset <= self.match[0] < row.end
            shown = marked(shown, text, FOUND if is_match else MATCH)
        if self.source.is_merged:
            shown = self._with_stream(row, shown)
        return (self._time(row), *shown) if self.shows_times else shown

    def _with_stream(self, row: Row, shown: Line) -> Line:
        """Return a row of a merged log behind its sign; text of stderr that has no colour of its own is tinted."""
        assert self.source is not None
        part = self.source.marks.of(row.end)
        if part is None or not part.is_error:
            return (Span(NO_SIGN), *shown)
        tinted = (span._replace(role=STDERR) if span.role == TEXT else span for span in shown)
        return (Span(ERROR_SIGN, STDERR), *tinted)

    def _marked_text(self) -> str:
        """Return the text to highlight; of a pattern, that of the present match."""
        if self.query_text is None or not self.query_text.is_pattern:
            return self.query_text.text if self.query_text is not None else ""
        if self.match is None or self.source is None:
            return ""
        try:
            data = self.source.blocks.bytes_between(self.match[0], sum(self.match))
        except NotLoaded:
            return ""
        return plain(line_of_bytes(data, known=self.source.known))

    def _time(self, row: Row) -> Span:
        assert self.source is not None
        at = self.source.arrived_at(row.end) if row.place.row == 0 else None
        return Span(f"{clock_of_second(at, self._table_context().zone) if at is not None else NO_TIME}  ", MUTED)

    def _scrollbar(self, y: int, theme: RoleTheme) -> Segment | None:
        """Return the cell of the bar at the right that shows which part of the log is visible; None: a blank."""
        if not self.rows or self.source is None:
            return None
        size, height = self.source.blocks.size, self.size.height
        first, end = self.rows[0].place.offset, self.rows[-1].end
        if first == 0 and end >= size and self.rows[0].place.row == 0:
            return None
        length = max(1, round(height * (end - first) / size))
        # At the end of the log the bar ends exactly at the bottom.
        begin = height - length if end >= size else min(height - length - 1, height * first // size)
        colour = theme.style(MUTED).color
        drawn = Style(bgcolor=colour) if colour is not None else Style(reverse=True)
        return Segment(" ", drawn) if max(0, begin) <= y < max(0, begin) + length else None

    # Keys and the mouse

    def on_click(self, event: events.Click) -> None:
        """Copy the whole line under the right button; go to where the bar at the right is clicked."""
        if event.x == self.size.width - 1 and self.source is not None:
            self.go_to(self.source.blocks.size * event.y // max(1, self.size.height))
        elif event.button == RIGHT and event.y < len(self.rows) and self.source is not None:
            row = self.rows[event.y]
            try:
                data = self.source.blocks.bytes_between(row.place.offset, row.end)
            except NotLoaded:
                return
            self.app.copy_to_clipboard(plain(line_of_bytes(data, known=self.source.known)).strip())
            self.app.notify("copied the line")

    def on_mouse_scroll_down(self) -> None:
        self.action_by(WHEEL_ROWS)

    def on_mouse_scroll_up(self) -> None:
        self.action_by(-WHEEL_ROWS)

    def action_by(self, rows: int) -> None:
        self.follow = False
        self.move(lambda pages: pages.moved(self._top, rows))

    def action_pages(self, pages: int) -> None:
        self.action_by(pages * max(1, self.size.height - 1))

    def action_top(self) -> None:
        self.follow = False
        self.move(lambda _: Place())

    def action_bottom(self) -> None:
        self.follow = True
        self.move(LogPages.last_page)

    def action_sideways(self, step: int) -> None:
        if not self._wraps:
            self._left = max(0, self._left + step * self._text_columns() // 2)
            self.refresh()

    def on_resize(self) -> None:
        self.grown()


def _rounded(number: int) -> str:
    """Return an estimated number with two digits that mean something."""
    return grouped(round(number, 2 - len(str(number))) if number > 99 else number)
