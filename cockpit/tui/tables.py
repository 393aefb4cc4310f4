"""The tables of the main screen, one for each view, and the row under the cursor of each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from textual.widgets import ContentSwitcher

from cockpit.tui.views.all import VIEWS
from cockpit.tui.views.jobs import JOBS
from cockpit.tui.widgets.table import TitleLine

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping

    from cockpit.tui.app_state import AppState
    from cockpit.tui.views.view import SortedRows, View, ViewRows
    from cockpit.tui.widgets.table import Table


SIDE_FROM = 160
"""Width of the screen in columns from which the panel stands at the right of the tables, in its full height."""
TERMINAL_COLUMNS = 80
"""Least columns of a terminal that stands there, for the rule to its left not counted."""
LEAST_SIDE, MOST_SIDE, SIDE_PART = 54, 80, 0.32
"""Bounds of the width of that panel, and its part of the screen."""


class Tables:
    """The part of the main screen that holds the tables, of which it shows one."""

    def __init__(self, state: AppState) -> None:
        self.view: View = JOBS
        """The present view."""
        self.has_terminal = False
        """Whether a shell is open beside or below the tables, in place of the panel."""
        # Row models and tables are made once and stay: a view that is shown again has its filter, order, cursor and
        # marks.
        self.rows: Mapping[str, ViewRows] = {view.id: view.rows(state) for view in VIEWS.values()}
        """The row model of each view, by its id."""
        self.by_view: Mapping[str, Table] = {
            view.id: view.widget(self.rows[view.id], state.role_theme, id=view.id) for view in VIEWS.values()
        }
        """The table of each view, by its id."""
        self.titles = TitleLine(self.jobs, id="titles")
        self.switcher = ContentSwitcher(*self.by_view.values(), initial=JOBS.id, id="rows")
        """The widget that holds all tables and shows the present one."""

    @property
    def table(self) -> Table:
        """The table of the present view."""
        return self.by_view[self.view.id]

    @property
    def jobs(self) -> Table:
        """The table of the Jobs view."""
        return self.by_view[JOBS.id]

    @property
    def columns(self) -> int:
        """The width of the tables in columns. They have no size of their own while they are hidden, as in a view
        without rows."""
        return self.table.screen.size.width - self.side_panel_columns

    @property
    def side_panel_columns(self) -> int:
        """The width of the panel, or of the terminal, at the right of the present table; 0: it stands below it."""
        screen = self.table.screen.size.width
        if self.has_terminal:
            return max(TERMINAL_COLUMNS, screen // 2) + 1 if screen >= SIDE_FROM else 0
        if not self.view.panel_beside or screen < SIDE_FROM:
            return 0
        return min(MOST_SIDE, max(LEAST_SIDE, round(screen * SIDE_PART)))

    def show(self, view: str) -> None:
        """Show the table of this view in place of the present one."""
        # First the table becomes visible, then it gets the keys: Textual focuses no hidden widget.
        self.switcher.current = view
        self.view = VIEWS[view]
        self.titles.table = self.table
        self.titles.refresh()
        self.titles.call_after_refresh(self.titles.refresh)  # a table that was never shown has its size only then
        self.table.focus()

    def row_under_cursor(self, view: str) -> Any:  # noqa: ANN401 - each view has its own kind of rows
        """Return the row under the cursor of this view's table; None in an empty one."""
        row_id = self.by_view[view].cursor_id
        return None if row_id is None else VIEWS[view].row(self.rows[view], row_id)

    def sorted_rows(self) -> SortedRows | None:
        """Return the row model of the present view; None where the user cannot sort it."""
        return cast("SortedRows", self.rows[self.view.id]) if self.view.is_sorted else None

    def take(self, view: str, answer: Any) -> None:  # noqa: ANN401 - each view has its own kind of answer
        """Store an answer in the row model of this view, and redraw what changed."""
        rows: Any = self.rows[view]
        self.redraw(view, *rows.take(answer))

    def redraw(self, view: str, changed: Iterable[Hashable], moved: bool) -> None:
        """Redraw these rows of a view; `moved`: rows were added, removed or moved."""
        table = self.by_view[view]
        if moved:
            table.order_changed()  # first, as the rows that are visible, and so repainted, follow from the new order
        table.rows_changed(changed)

    def redraw_all(self, view: str) -> None:
        """Draw all rows of a view anew, after a change of its order or its columns."""
        table = self.by_view[view]
        table.order_changed()
        table.redraw()
        if table is self.table:
            self.titles.refresh()
