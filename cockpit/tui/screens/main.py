"""The main screen: top bar, row of views, one table, the answer panel, the row of keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual import on

from cockpit.present.frame import key_at, key_row, note_fits, top_bar, view_at, view_row
from cockpit.present.spans import Line, Span, fitted, hung, line, line_width
from cockpit.tui.action import ACCOUNTS, CARDS, CATALOGUE, CLUSTERS, JOBS, NODES, PRIORITY, QOS, QUEUES, SPENDING
from cockpit.tui.screens.panels import LEAST_PANEL, Panels
from cockpit.tui.widgets.entry import Entry
from cockpit.tui.widgets.lines import Lines
from cockpit.tui.widgets.table import Table, TitleLine

if TYPE_CHECKING:
    from textual.app import ComposeResult

VIEWS = (
    ("1", "Jobs"),
    ("2", "Nodes"),
    ("3", "Cards"),
    ("4", "Accounts"),
    ("5", "Priority"),
    ("6", "Queues"),
    ("7", "Catalogue"),
    ("8", "Clusters"),
)
SHOW_ACTIONS = {"priority": "priorities"}
"""Ids of the actions that show a view, where they differ from the view's name."""
SMALL_HEIGHT = 30
CHART, SMALL_CHART = 14, 8
"""Height in lines of the chart of card-hours, on large and on small screens."""
MOST_PANEL = 9
"""Height in lines of the answer panel on large screens."""
TITLES = {JOBS: "Jobs", NODES: "Nodes", CARDS: "Cards", PRIORITY: "Priority", QUEUES: "Queues"}
TITLES |= {CATALOGUE: "Catalogue", CLUSTERS: "Clusters", ACCOUNTS: "Accounts", QOS: "Accounts", SPENDING: "Accounts"}
"""The name in the row of views under which each view is shown."""


class MainScreen(Panels):
    """The screen below all pages and dialogs: it draws the application's state and forwards clicks as actions."""

    AUTO_FOCUS: ClassVar[str] = "#jobs"

    def compose(self) -> ComposeResult:
        theme = self.app.state.role_theme
        yield Lines(theme, id="top")
        yield Lines(theme, ground="background", id="views")
        yield Lines(theme, ground="background", id="legend")
        yield Lines(theme, ground="background", id="chart")
        yield from self.compose_lists()
        yield Lines(theme, ground="background", id="empty")
        yield Lines(theme, id="answer")
        yield Entry(id="entry")
        yield Lines(theme, id="keys")

    # Drawing

    def draw(self) -> None:
        """Draw everything but the tables, which repaint themselves."""
        if not self.is_there:
            return
        width = self.size.width
        self.query_one("#top", Lines).show([top_bar(self.app.state.top_bar(), self.app.state.overview, width)])
        note = tuple(self._note())
        self.query_one("#views", Lines).show([view_row(VIEWS, TITLES[self.view], note, width)])
        self.query_one("#keys", Lines).show([self._bottom_row(note, width)])
        self._ranks.draw_legend(self.query_one("#legend", Lines), width, shown=self.view == PRIORITY)
        self._draw_chart(width)
        self._draw_emptiness()
        self.draw_answer()

    def _bottom_row(self, note: Line, width: int) -> Line:
        """Return the row of keys, led by the note about filter and order where that does not fit beside the views."""
        if self._wrong:
            return line(Span(f" {self._wrong}", "warning"))
        lead = self._lead(note, width)
        return (*lead, *key_row(self.app.dispatcher.keys_of_view(), width - line_width(lead)))

    def _lead(self, note: Line, width: int) -> Line:
        if not note or note_fits(VIEWS, TITLES[self.view], note, width):
            return ()
        return (Span(" "), *fitted(note, min(line_width(note), width // 2)), Span("  "))

    def _draw_chart(self, width: int) -> None:
        """Draw the chart of card-hours above the column titles, in its view only."""
        panel = self.query_one("#chart", Lines)
        panel.display = self.view == SPENDING
        if panel.display:
            small = self.size.height < SMALL_HEIGHT
            lines = SMALL_CHART if small else CHART
            panel.styles.height = lines if small else lines + 1  # with its rule
            panel.show(self.app.state.spending_rows.chart(width - 2, lines))

    def _draw_emptiness(self) -> None:
        nothing = self._is_empty
        empty = self.query_one("#empty", Lines)
        empty.display = nothing
        self.query_one("#rows").styles.display = "none" if nothing else "block"
        self.query_one(TitleLine).display = not nothing
        if nothing:
            empty.show(each for whole in self._empty_lines() for each in hung(whole, self.size.width))
        elif self.focused is None:  # a table that was hidden has lost the keys
            self.table.focus()

    # What happens

    @on(Table.CursorMoved)
    def _moved(self) -> None:
        self.app.poller.wake()
        self.draw()

    @on(Table.CopyAsked)
    def _copy_asked(self) -> None:
        self.app.dispatcher.perform("copy")

    @on(Table.Opened)
    def _opened(self) -> None:
        opens = {
            NODES: "open_node",
            QUEUES: "queue_jobs",
            CATALOGUE: "set_entry",
            CLUSTERS: "open_cluster",
            ACCOUNTS: "unfold",
            QOS: "modify",
            SPENDING: "held_jobs",
        }
        self.app.dispatcher.perform(opens.get(self.view, "open"))

    @on(Lines.Clicked, "#views")
    def _view_clicked(self, event: Lines.Clicked) -> None:
        if name := view_at(VIEWS, event.column, self.size.width, TITLES[self.view], tuple(self._note())):
            self.app.dispatcher.perform(SHOW_ACTIONS.get(name.lower(), name.lower()))

    @on(Lines.Clicked, "#keys")
    def _key_clicked(self, event: Lines.Clicked) -> None:
        column = event.column - line_width(self._lead(tuple(self._note()), self.size.width))
        if column >= 0 and (action := key_at(self.app.dispatcher.keys_of_view(), column)):
            self.app.dispatcher.perform(action)

    @on(TitleLine.Clicked)
    def _title_clicked(self, event: TitleLine.Clicked) -> None:
        """Sort by the clicked column; if the list is sorted by it already, reverse the order."""
        if event.column in self.sortable():
            self.sort_by(event.column)
        else:
            self.app.notify(
                "This view is always in the same order." if not self.sortable() else "Nothing sorts by this."
            )

    def on_resize(self) -> None:
        height = self.size.height
        self.set_class(height < SMALL_HEIGHT, "small")
        self.query_one("#answer").styles.height = 1 + min(MOST_PANEL, max(LEAST_PANEL, height // 5 - 1))
        self.query_one(TitleLine).refresh()
        self.call_after_refresh(self.draw)
