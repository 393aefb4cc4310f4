"""Folding, sorting and colouring of the main screen's tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cockpit.tui.views.accounts import ACCOUNTS
from cockpit.tui.views.cards import CARDS
from cockpit.tui.views.jobs import JOBS
from cockpit.tui.widgets.table import MARGIN

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cockpit.tui.app_state import AppState
    from cockpit.tui.tables import Tables
    from cockpit.tui.views.view import SortedRows


class Arrangement:
    """The part of the main screen that folds, sorts and colours rows."""

    def __init__(self, tables: Tables, state: AppState, redraw_rows: Callable[[str], None]) -> None:
        """Make the part; `redraw_rows` redraws the view of an id, and what the screen says about it."""
        self._tables = tables
        self._state = state
        self._redraw_rows = redraw_rows

    def fold_all(self) -> None:
        """Fold all accounts below the top ones, or unfold all."""
        self._state.account_rows.fold_all()
        self._redraw_rows(ACCOUNTS.id)

    def toggle_colours(self) -> None:
        """Switch the colours of the cards between one for each user and one for each job."""
        self._state.card_rows.by_user = not self._state.card_rows.by_user
        self._redraw_rows(CARDS.id)

    def toggle_mine(self) -> None:
        """Show only the user's own jobs, or all jobs."""
        jobs = self._state.job_rows.list
        jobs.show_mine(not jobs.mine)
        self._redraw_rows(JOBS.id)

    def unfold(self) -> bool:
        """Unfold the array under the cursor; return whether it was folded."""
        row_id: Any = self._tables.jobs.cursor_id
        folded = row_id is not None and self._state.job_rows.folds.is_folded(row_id)
        if folded:
            self.toggle_fold()
        return folded

    def toggle_fold(self) -> None:
        """Fold or unfold the account, or the array, under the cursor."""
        if self._tables.view is ACCOUNTS:
            self._fold_account()
        else:
            self._fold_array()

    def _fold_account(self) -> None:
        """Fold or unfold the account under the cursor; for a user, fold the user's account."""
        tree, table = self._state.account_rows, self._tables.by_view[ACCOUNTS.id]
        row_id: Any = table.cursor_id
        if row_id is None:
            return
        # A user has nothing below: fold the account around, and put the cursor on it, as the row of the user vanishes.
        if not tree.fold(row_id) and tree.above(row_id):
            row_id = tree.above(row_id)[-1]
            tree.fold(row_id)
        self._redraw_rows(ACCOUNTS.id)
        table.move_to(row_id)

    def _fold_array(self) -> None:
        """Fold or unfold the array under the cursor.

        A marked row marks its tasks when it unfolds; tasks mark their row if all of them were marked.
        """
        folds, table = self._state.job_rows.folds, self._tables.jobs
        cursor_id: Any = table.cursor_id
        tasks = set(folds.tasks(cursor_id)) if cursor_id is not None else set()
        if not tasks:
            return
        was_folded = folds.is_folded(cursor_id)
        marked = cursor_id in table.marked if was_folded else tasks <= table.marked
        row_id = folds.toggle(cursor_id)
        # An action applies to all marks, also to those of rows that are not shown: none of the form that vanishes may
        # stay.
        table.marked -= {*tasks, row_id}
        if marked:
            table.marked |= tasks if was_folded else {row_id}
        self._redraw_rows(JOBS.id)
        if row_id is not None:
            table.move_to(row_id)

    def sortable(self) -> Sequence[str]:
        """Return the ids of the shown columns by which the present view can be sorted; none: its order is fixed."""
        rows = self._tables.sorted_rows()
        return [] if rows is None else rows.sortable(self._tables.columns - MARGIN)

    def sort_by_neighbour(self, step: int) -> None:
        """Sort by the shown column that is `step` places to the right of the present one.

        A column that is not shown counts as between the shown ones before and after it in the table's order.
        """
        if (rows := self._tables.sorted_rows()) is not None:
            ids, column = self.sortable(), rows.sort_column
            # From a hidden column a step to the right goes to the first shown one behind it: hence the one less.
            place = ids.index(column) if column in ids else self._shown_before(column, ids) - (step > 0)
            self._sort(rows, ids[(place + step) % len(ids)])

    def _shown_before(self, column: str, shown: Sequence[str]) -> int:
        """Return how many shown columns come before this one in the table's order; 0 where the table lacks it."""
        every = [each.id for each in self._tables.view.table.columns]
        before = every[: every.index(column)] if column in every else []
        return sum(each in before for each in shown)

    def sort_by(self, column: str) -> None:
        """Sort by this column; if the rows are sorted by it already, reverse the order."""
        if (rows := self._tables.sorted_rows()) is not None:
            self._sort(rows, column, descending=not rows.descending if column == rows.sort_column else None)

    def reverse_sort(self) -> None:
        """Reverse the order."""
        if (rows := self._tables.sorted_rows()) is not None:
            self._sort(rows, rows.sort_column or "id", descending=not rows.descending)

    def _sort(self, rows: SortedRows, column: str, *, descending: bool | None = None) -> None:
        rows.sort_by(column, descending=descending)
        self._redraw_rows(self._tables.view.id)
