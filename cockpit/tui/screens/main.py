"""The cockpit's frame: top bar, row of views, one table, the answer panel, the row of keys."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, ClassVar

from textual.screen import Screen
from textual.strip import Strip
from textual.suggester import SuggestFromList
from textual.widget import Widget
from textual.widgets import ContentSwitcher, Input

from cockpit.present.answer import answer
from cockpit.present.filters import FilterError
from cockpit.present.frame import key_row, top_bar, view_row
from cockpit.present.spans import ACCENT, MUTED, STRONG, Line, Span, line
from cockpit.tui.widgets.lines import Lines
from cockpit.tui.widgets.table import Table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from textual import events
    from textual.app import ComposeResult

    from cockpit.tui.face import Face

VIEWS = (("1", "Jobs"), ("2", "Nodes"))
SMALL_HEIGHT = 30
JOBS, NODES = "jobs", "nodes"
FILTER, COMMAND = "filter", "command"


class Titles(Widget):
    """The column titles of the table that is shown."""

    def __init__(self, table: Table, *, id: str) -> None:  # noqa: A002 - Textual's word
        super().__init__(id=id)
        self.table = table

    def render_line(self, y: int) -> Strip:
        return self.table.header() if y == 0 else Strip.blank(self.size.width)


class MainScreen(Screen[None]):
    """Draws what the app knows; asks it to act."""

    app: Face
    AUTO_FOCUS: ClassVar[str] = "#jobs"

    def __init__(self) -> None:
        super().__init__()
        self._entry_kind = FILTER
        self._filter_text = ""

    def compose(self) -> ComposeResult:
        theme = self.app.role_theme
        self.jobs = Table(self.app.job_rows, theme, id=JOBS)
        self.nodes = Table(self.app.node_rows, theme, id=NODES)
        yield Lines(theme, id="top")
        yield Lines(theme, ground="background", id="views")
        yield Titles(self.jobs, id="titles")
        with ContentSwitcher(initial=JOBS, id="rows"):
            yield self.jobs
            yield self.nodes
        yield Lines(theme, ground="background", id="empty")
        yield Lines(theme, id="answer")
        entry = Input(id="entry", compact=True)
        entry.cursor_blink = False
        yield entry
        yield Lines(theme, id="keys")

    @property
    def view(self) -> str:
        """`jobs` or `nodes`."""
        return str(self.query_one(ContentSwitcher).current)

    @property
    def table(self) -> Table:
        """The one that is shown."""
        return self.jobs if self.view == JOBS else self.nodes

    def show_view(self, view: str) -> None:
        """Another table in the same frame."""
        self.query_one(ContentSwitcher).current = view
        titles = self.query_one(Titles)
        titles.table = self.table
        titles.refresh()
        self.table.focus()
        self.app.wake()
        self.draw()

    def draw(self) -> None:
        """Everything but the rows: they repaint themselves."""
        if not self.is_mounted:
            return
        width = self.size.width
        self.query_one("#top", Lines).show([top_bar(self.app.standing(), self.app.overview, width)])
        self.query_one("#views", Lines).show([view_row(VIEWS, self.view.capitalize(), self._note(), width)])
        self.query_one("#keys", Lines).show([key_row(self.app.keys_of_view(), width)])
        self._draw_emptiness()
        self.draw_answer()

    def draw_answer(self) -> None:
        """The panel about the job under the cursor."""
        panel = self.query_one("#answer", Lines)
        panel.show(self._node_answer() if self.view == NODES else self._job_answer())

    def _job_answer(self) -> Iterator[Line]:
        row = self.app.job_under_cursor()
        if row is not None:
            yield from answer(row, self.app.detail_of(row.id), self.app.context())

    def _node_answer(self) -> Iterator[Line]:
        row = self.app.node_rows.row(self.nodes.cursor_id) if self.nodes.cursor_id is not None else None  # type: ignore[arg-type]  # ids of nodes
        if row is not None:
            yield from self.app.node_lines(row)

    def _note(self) -> str:
        if self.view == NODES:
            return ""
        jobs = self.app.job_rows.list
        parts = [f"/ {self._filter_text}"] if self._filter_text else []
        parts += ["mine"] if jobs.mine else []
        parts += [f"by {jobs.sort_column}{' ↓' if jobs.descending else ''}"] if jobs.sort_column else []
        return "   ".join(parts)

    def _draw_emptiness(self) -> None:
        nothing = self.view == JOBS and not self.app.job_rows.order
        empty = self.query_one("#empty", Lines)
        empty.display = nothing
        self.query_one("#rows").styles.display = "none" if nothing else "block"
        if nothing:
            empty.show(self._empty_lines())
        elif self.focused is None:  # a table that was hidden has lost the keys
            self.table.focus()

    def _empty_lines(self) -> Iterator[Line]:
        yield line()
        if not self.app.loaded:
            yield line(Span("   connecting …", MUTED))
        elif self._filter_text or self.app.job_rows.list.mine:
            yield line(Span("   No job matches. ", STRONG), Span("Esc", ACCENT), Span(" shows them all.", MUTED))
        else:
            yield line(Span(f"   {self.app.capacity_words()} No jobs yet.", STRONG))
            yield line()
            yield line(Span("   n", ACCENT), "  submit one       ", Span("?", ACCENT), "  help")

    # The entry line: a filter or a command

    def ask_filter(self) -> None:
        """`/`: filters while one types."""
        self._ask(FILTER, self._filter_text, "state:queued user:me cards>=4 name~bert")
        self.run_worker(self._prepare_search(), name="search", group="search", exclusive=True)

    async def _prepare_search(self) -> None:
        """While the person thinks of a word. Rows that changed meanwhile are read when they are searched."""
        for _ in self.app.job_rows.list.prepare_search():
            await asyncio.sleep(0)

    def ask_command(self) -> None:
        """`:`: an action by its name."""
        self._ask(COMMAND, "", "an action, a view, or q; Tab completes")

    def _ask(self, kind: str, value: str, hint: str) -> None:
        self._entry_kind = kind
        entry = self.query_one("#entry", Input)
        names = list(self.app.action_names()) if kind == COMMAND else []
        entry.suggester = SuggestFromList(names) if names else None
        entry.placeholder = hint
        entry.value = value
        entry.display = True
        entry.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        if self._entry_kind == FILTER and event.input.display:
            self._filter(event.value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self._close_entry()
        if self._entry_kind == COMMAND:
            self.app.run_command(event.value)

    def on_key(self, event: events.Key) -> None:
        entry = self.query_one("#entry", Input)
        if not entry.has_focus:
            return
        if event.key == "escape":
            if self._entry_kind == FILTER:
                self._filter("")
            self._close_entry()
            event.stop()
        elif event.key == "tab":
            entry.action_cursor_right()
            entry.action_end()
            event.prevent_default()
            event.stop()

    def _close_entry(self) -> None:
        self.query_one("#entry").display = False
        self.table.focus()
        self.draw()

    def _filter(self, text: str) -> None:
        try:
            self.app.job_rows.list.filter_by(text)
        except FilterError as error:
            self.query_one("#views", Lines).show([line(Span(f" {error}", "warning"))])
            return
        self._filter_text = text
        self.jobs.order_changed()
        self.draw()

    def toggle_mine(self) -> None:
        """Only one's own jobs, or everybody's."""
        jobs = self.app.job_rows.list
        jobs.show_mine(not jobs.mine)
        self.jobs.order_changed()
        self.draw()

    def sort_by_neighbour(self, step: int) -> None:
        """By the next of the columns that are shown."""
        jobs = self.app.job_rows.list
        ids = [laid.column.id for laid in self.app.shown_columns(self.size.width)]
        place = ids.index(jobs.sort_column) if jobs.sort_column in ids else (-1 if step > 0 else 0)
        jobs.sort_by(ids[(place + step) % len(ids)], descending=False)
        self.jobs.order_changed()
        self.draw()

    def reverse_sort(self) -> None:
        """The other way round."""
        jobs = self.app.job_rows.list
        jobs.sort_by(jobs.sort_column or "id", descending=not jobs.descending)
        self.jobs.order_changed()
        self.draw()

    def step_back(self) -> None:
        """Out of the marks, then out of the filter."""
        if not self.table.clear_marks():
            self._filter("")
        self.draw()

    def on_table_cursor_moved(self, _: Table.CursorMoved) -> None:
        self.app.wake()
        self.draw()

    def on_table_opened(self, event: Table.Opened) -> None:
        if event.table is self.jobs:
            self.app.perform("open")

    def on_resize(self) -> None:
        self.set_class(self.size.height < SMALL_HEIGHT, "small")
        self.query_one(Titles).refresh()
        self.call_after_refresh(self.draw)
