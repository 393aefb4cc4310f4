"""The main screen: top bar, row of views, one table, the panel, the row of keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.containers import Container, Vertical
from textual.screen import Screen

from cockpit.present.frame import key_at, key_row, note_fits, top_bar, view_at, view_row
from cockpit.present.safe import safe
from cockpit.present.spans import ACCENT, Line, Span, fitted, hung, hung_within, line, line_width
from cockpit.tui.arrangement import Arrangement
from cockpit.tui.entry_line import EntryLine
from cockpit.tui.screens.dialog import is_open
from cockpit.tui.tables import SIDE_FROM, TERMINAL_COLUMNS, Tables
from cockpit.tui.views.all import VIEWS
from cockpit.tui.views.jobs import JOBS
from cockpit.tui.views.priority import PRIORITY
from cockpit.tui.views.view import LEAST_PANEL, MOST_PANEL, ViewContext, connecting
from cockpit.tui.widgets.candidates import CandidateList
from cockpit.tui.widgets.entry import Entry
from cockpit.tui.widgets.lines import Lines
from cockpit.tui.widgets.table import Table, TitleLine
from cockpit.tui.widgets.terminal_pane import ACTION_OF_KEY, LIST, TerminalPane

if TYPE_CHECKING:
    from collections.abc import Iterator

    from textual.app import ComposeResult

    from cockpit.backends.base import ShellSession
    from cockpit.tui.app_state import AppState
    from cockpit.tui.cockpit import Cockpit
    from cockpit.tui.emulator.base import Emulator
    from cockpit.tui.shell_link import ShellLink

VIEW_OF_TITLE = {view.title: view for view in reversed(list(VIEWS.values()))}
"""The view that a title in the row of views stands for: of several tabs the first."""
VIEW_NAMES = tuple((view.key, view.title) for view in VIEWS.values() if VIEW_OF_TITLE[view.title] is view)
"""The keys and titles of the row of views."""
SMALL_HEIGHT = 30
FRAME_LINES = 3
"""Lines of the screen that no view has: the top bar, the row of views and the row of keys."""
TERMINAL_PART, LEAST_TERMINAL = 0.65, 12
"""The terminal pane's part of the height where it stands below the list, and its least number of lines."""
CHART, SMALL_CHART = 14, 8
"""Height in lines of the chart of card-hours, on large and on small screens."""


class MainScreen(Screen[None]):
    """The screen below all pages and dialogs: it draws the application's state and forwards clicks as actions."""

    app: Cockpit
    AUTO_FOCUS: ClassVar[str] = "#jobs"

    entry_line: EntryLine

    def __init__(self, state: AppState) -> None:
        super().__init__()
        self.tables = Tables(state)
        self.arrangement = Arrangement(self.tables, state, self.redraw_rows)

    def compose(self) -> ComposeResult:
        state = self.app.state
        # Here and not in the constructor: the poller and the dispatcher are made after this screen, as they need it.
        self.entry_line = EntryLine(self.tables, state, self.app.poller, self.app.dispatcher, self.draw)
        theme = state.role_theme
        yield Lines(theme, id="top")
        yield Lines(theme, ground="background", id="views")
        with Container(id="body"):
            with Vertical(id="list"):
                yield Lines(theme, ground="background", id="legend")
                yield Lines(theme, ground="background", id="chart")
                yield self.tables.titles
                yield self.tables.switcher
                yield Lines(theme, ground="background", id="empty")
            yield Lines(theme, id="answer")
            yield TerminalPane(theme, id="terminal")
        yield self.entry_line.entry
        yield self.entry_line.candidates
        yield Lines(theme, id="keys")

    # What controllers ask for

    def show_view(self, view: str) -> None:
        """Show the view of this id in place of the present one."""
        self.tables.show(view)
        self._lay_out()
        self.app.poller.wake()
        self.draw()
        # The panel of another view may have another size only then.
        self.call_after_refresh(self.draw_panel)

    def show_jobs(self, filter_text: str) -> None:
        """Show the Jobs view under this filter."""
        # The filter is that of the view that is shown.
        self.show_view(JOBS.id)
        self.entry_line.filter_from_here(filter_text)

    def redraw_rows(self, view: str) -> None:
        """Redraw a view after a change of its rows, its columns or their order.

        An answer may arrive while the application closes: then there is no table to draw.
        """
        if is_open(self) and self.tables.by_view[view].is_attached:
            self.tables.redraw_all(view)
            self.draw()

    def step_back(self) -> None:
        """Undo the first of these that is set: marks; filter; own jobs only, or tried weights."""
        if self.tables.table.clear_marks() or self.entry_line.step_back():
            return
        if self.tables.view is JOBS and self.app.state.job_rows.list.mine:
            self.arrangement.toggle_mine()
        elif self.tables.view is PRIORITY:
            self.app.poller.try_weights(None)

    # The terminal pane

    @property
    def _pane(self) -> TerminalPane:
        return self.query_one(TerminalPane)

    @property
    def terminal_link(self) -> ShellLink | None:
        """The shell in the terminal pane; None: none is open."""
        return self._pane.link if self.is_mounted else None

    @property
    def terminal_title(self) -> str:
        """The job of the shell in the terminal pane."""
        return self._pane.title

    def terminal_size(self) -> tuple[int, int]:
        """Return the columns and rows that a terminal in the pane has."""
        columns, height = self.size
        if columns >= SIDE_FROM:
            return max(TERMINAL_COLUMNS, columns // 2), max(1, height - FRAME_LINES - 1)
        return columns, max(1, self._terminal_lines() - 2)  # without its rule and its title

    def _terminal_lines(self) -> int:
        """Return the height of the pane where it stands below the list."""
        return max(LEAST_TERMINAL, round((self.size.height - FRAME_LINES) * TERMINAL_PART))

    def open_terminal(self, title: str, session: ShellSession, emulator: Emulator, notice: str) -> None:
        """Show this shell in the pane and give it the keys."""
        self.tables.has_terminal = True
        self._lay_out()
        self._pane.open(title, session, emulator, notice)
        self.focus_terminal()
        self.call_after_refresh(self._after_pane_changed)

    async def close_terminal(self) -> int | None:
        """Hang up and hide the pane. Returns the exit code of a shell that has ended; None: it had not."""
        code = await self._pane.close()
        self.tables.has_terminal = False
        if is_open(self):
            self._lay_out()
            self.tables.table.focus()
            self.call_after_refresh(self._after_pane_changed)
        return code

    def _after_pane_changed(self) -> None:
        self.fit_terminal()
        self.tables.titles.refresh()
        self.draw()

    def focus_terminal(self) -> None:
        """Give the keys to the pane."""
        self.set_focus(self._pane.view, scroll_visible=False)

    def fit_terminal(self) -> None:
        """Give the shell in the pane the pane's size again."""
        self._pane.view.fit()

    def draw_terminal(self) -> None:
        """Draw the line above the terminal."""
        self._pane.draw()

    @on(TerminalPane.Asked)
    def _terminal_asked(self, event: TerminalPane.Asked) -> None:
        if event.key == LIST:
            self.tables.table.focus()
        else:
            self.app.dispatcher.perform(ACTION_OF_KEY[event.key])

    @on(TerminalPane.Ended)
    def _terminal_ended(self) -> None:
        self.app.dispatcher.perform("close_terminal")

    # Drawing

    @property
    def _can_draw(self) -> bool:
        """Whether the screen can be drawn: data may arrive before the first frame, or after the last."""
        return self.is_mounted and self.app.is_running

    def draw(self) -> None:
        """Draw everything but the tables, which repaint themselves."""
        if not self._can_draw:
            return
        width, title = self.size.width, self.tables.view.title
        self.query_one("#top", Lines).show([top_bar(self.app.state.top_bar(), self.app.state.overview, width)])
        # Made once: the row of views and the bottom row decide between them where it fits.
        note = tuple(self._note())
        self.query_one("#views", Lines).show([view_row(VIEW_NAMES, title, note, width)])
        self.query_one("#keys", Lines).show([self._bottom_row(note, width)])
        self._draw_above_table(self.tables.columns)
        self._draw_advice()
        self.draw_panel()

    def _view_context(self, columns: int, lines: int = 0) -> ViewContext:
        """Return what the texts of the present view depend on, for a text of this width and height."""
        filter_text = self.entry_line.filter_text
        return ViewContext(self.app.state, self.app.backend.capabilities, columns, lines, filter_text)

    def _note(self) -> Iterator[Span]:
        """Yield the note about the present view: its filter, its order, and what is special to the view."""
        if self.entry_line.filter_text:
            yield Span(f"/ {safe(self.entry_line.filter_text)}", ACCENT)
        yield from self.tables.view.note(self._view_context(self.size.width))

    def _bottom_row(self, note: Line, width: int) -> Line:
        """Return the row of keys, led by the note about filter and order where that does not fit beside the views."""
        if self.entry_line.error:
            return line(Span(f" {self.entry_line.error}", "warning"))
        lead = self._lead(note, width)
        return (*lead, *key_row(self.app.dispatcher.keys_of_view(), width - line_width(lead)))

    def _lead(self, note: Line, width: int) -> Line:
        if not note or note_fits(VIEW_NAMES, self.tables.view.title, note, width):
            return ()
        return (Span(" "), *fitted(note, min(line_width(note), width // 2)), Span("  "))

    def _draw_above_table(self, width: int) -> None:
        """Draw the legend and the chart above the column titles, in the views that have them."""
        view, legend, panel = self.tables.view, self.query_one("#legend", Lines), self.query_one("#chart", Lines)
        legend.display = view.legend is not None
        if view.legend is not None:
            legend.show([view.legend(self._view_context(width))])
        panel.display = view.chart is not None
        if view.chart is not None:
            small = self.size.height < SMALL_HEIGHT
            lines = SMALL_CHART if small else CHART
            panel.styles.height = lines if small else lines + 1  # with its rule
            panel.show(view.chart(self.app.state, width - 2, lines))

    def _draw_advice(self) -> None:
        """Draw the view's advice in place of a table without rows."""
        view, empty = self.tables.view, self.query_one("#empty", Lines)
        is_empty = view.advice is not None and view.is_empty(self.tables.rows[view.id])
        empty.display = is_empty
        self.tables.switcher.styles.display = "none" if is_empty else "block"
        self.tables.titles.display = not is_empty
        if view.advice is not None and is_empty:
            loaded = self.app.state.loaded
            columns = self.tables.columns
            lines = view.advice(self._view_context(columns)) if loaded else connecting(self.app.state)
            empty.show(each for whole in lines for each in hung(whole, columns))
        elif self.focused is None:  # a table that was hidden has lost the keys
            self.tables.table.focus()

    def draw_panel(self) -> None:
        """Draw the panel about the row under the cursor."""
        if not self._can_draw:
            return
        panel, view = self.query_one("#answer", Lines), self.tables.view
        # The row that the panel is about is drawn for the same moment: figures of both stand in one frame.
        if (row_id := self.tables.table.cursor_id) is not None and self.tables.rows[view.id].place(row_id) is not None:
            self.tables.table.rows_changed([row_id], news=False)
        row = self.tables.row_under_cursor(view.id)
        lines = () if row is None else view.panel(row, self._view_context(panel.size.width, panel.size.height))
        panel.show(hung_within(lines, panel.size.width, panel.size.height))

    # What happens

    @on(Table.CursorMoved)
    def _cursor_moved(self) -> None:
        self.app.poller.wake()
        self.draw()

    @on(Table.CopyAsked)
    def _copy_asked(self) -> None:
        self.app.dispatcher.perform("copy")

    @on(Table.Opened)
    def _opened(self) -> None:
        self.app.dispatcher.perform(self.tables.view.opens)

    @on(Entry.Changed)
    def _typed(self, event: Entry.Changed) -> None:
        self.entry_line.typed(event.value)

    @on(Entry.Submitted)
    def _submitted(self, event: Entry.Submitted) -> None:
        self.entry_line.submitted(event.value)

    @on(CandidateList.Chosen)
    def _candidate_chosen(self, event: CandidateList.Chosen) -> None:
        self.entry_line.entry.take(event.place)

    @on(Entry.Escaped)
    def _escaped(self, event: Entry.Escaped) -> None:
        self.entry_line.escaped(event.kind)

    @on(Lines.Clicked, "#views")
    def _view_clicked(self, event: Lines.Clicked) -> None:
        title = view_at(VIEW_NAMES, event.column, self.size.width, self.tables.view.title, tuple(self._note()))
        if title:
            self.app.dispatcher.perform(VIEW_OF_TITLE[title].action)

    @on(Lines.Clicked, "#keys")
    def _key_clicked(self, event: Lines.Clicked) -> None:
        # The keys begin behind the note where this row shows it.
        column = event.column - line_width(self._lead(tuple(self._note()), self.size.width))
        if column >= 0 and (action := key_at(self.app.dispatcher.keys_of_view(), column)):
            self.app.dispatcher.perform(action)

    @on(TitleLine.Clicked)
    def _title_clicked(self, event: TitleLine.Clicked) -> None:
        """Sort by the clicked column; if the list is sorted by it already, reverse the order."""
        sortable = self.arrangement.sortable()
        if event.column in sortable:
            self.arrangement.sort_by(event.column)
        else:
            self.app.notify("This view is always in the same order." if not sortable else "Nothing sorts by this.")

    def on_resize(self) -> None:
        self._lay_out()
        self.tables.titles.refresh()
        # Only then the widgets have their new sizes, which the lines are made for.
        self.call_after_refresh(self.draw)

    def _lay_out(self) -> None:
        """Put the panel below the table or beside it, as the size of the screen and the view want it."""
        height, side = self.size.height, self.tables.side_panel_columns
        self.set_class(height < SMALL_HEIGHT, "small")
        self.set_class(side > 0, "side")
        # A fifth of the screen for the panel, within its bounds; one line more for its border.
        below = 1 + min(MOST_PANEL, max(LEAST_PANEL, height // 5 - 1))
        panel = self.query_one("#answer").styles
        panel.height, panel.width = ("100%", side) if side else (below, "100%")
        has_terminal = self.tables.has_terminal
        self.query_one("#answer").display, self._pane.display = not has_terminal, has_terminal
        pane = self._pane.styles
        pane.height, pane.width = ("100%", side) if side else (self._terminal_lines(), "100%")
