"""Folding, sorting and colouring of the main screen's tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from cockpit.tui.action import ACCOUNTS, JOBS, PRIORITY
from cockpit.tui.screens.lists import Lists
from cockpit.tui.widgets.table import TitleLine

if TYPE_CHECKING:
    from collections.abc import Sequence


class Arranging(Lists):
    """The part of the main screen that folds, sorts and colours rows."""

    def fold_all(self) -> None:
        """Fold all accounts below the top ones, or unfold all."""
        self.app.state.account_rows.tree.fold_all()
        self._refolded()

    def _fold_account(self) -> None:
        """Fold or unfold the account under the cursor; for a user, fold the user's account."""
        tree, row_id = self.app.state.account_rows.tree, cast("Any", self.accounts.cursor_id)
        if row_id is None:
            return
        if not tree.fold(row_id) and tree.above(row_id):
            row_id = tree.above(row_id)[-1]
            tree.fold(row_id)
        self._refolded()
        self.accounts.move_to(row_id)

    def _refolded(self) -> None:
        self.accounts.order_changed()
        self.accounts.redraw()
        self.draw()

    def turn_colours(self) -> None:
        """Switch the colours of the cards between one for each user and one for each job."""
        self.app.state.card_rows.by_user = not self.app.state.card_rows.by_user
        self.cards.redraw()
        self.draw()

    def toggle_mine(self) -> None:
        """Show only the user's own jobs, or all jobs."""
        jobs = self.app.state.job_rows.list
        jobs.show_mine(not jobs.mine)
        self._reordered()

    def unfold(self) -> bool:
        """Unfold the array under the cursor; return whether it was folded."""
        row_id: Any = self.jobs.cursor_id
        folded = row_id is not None and self.app.state.job_rows.folds.is_folded(row_id)
        if folded:
            self.toggle_fold()
        return folded

    def toggle_fold(self) -> None:
        """Fold or unfold the account, or the array, under the cursor.

        A marked row marks its tasks when it unfolds; tasks mark their row if all of them were marked.
        """
        if self.view == ACCOUNTS:
            self._fold_account()
            return
        folds, cursor_id = self.app.state.job_rows.folds, cast("Any", self.jobs.cursor_id)
        tasks = set(folds.tasks(cursor_id)) if cursor_id is not None else set()
        if not tasks:
            return
        was_folded = folds.is_folded(cursor_id)
        marked = cursor_id in self.jobs.marked if was_folded else tasks <= self.jobs.marked
        row_id = folds.toggle(cursor_id)
        self.jobs.marked -= {*tasks, row_id}
        if marked:
            self.jobs.marked |= tasks if was_folded else {row_id}
        self._reordered()
        self.jobs.redraw()
        if row_id is not None:
            self.jobs.move_to(row_id)

    def sort_by_neighbour(self, step: int) -> None:
        """Sort by the shown column that is `step` places to the right of the present one."""
        if self.view == PRIORITY:
            self._ranks.sort_by_neighbour(step)
            self.draw()
            return
        jobs = self.app.state.job_rows.list
        ids = [column.id for column, _ in self.app.state.shown_columns(self.size.width)]
        place = ids.index(jobs.sort_column) if jobs.sort_column in ids else (-1 if step > 0 else 0)
        jobs.sort_by(ids[(place + step) % len(ids)], descending=False)
        self._reordered()

    def sortable(self) -> Sequence[str]:
        """Return the ids of the shown columns by which this view can be sorted; none: its order is fixed."""
        if self.view == PRIORITY:
            return self._ranks.sortable()
        return [column.id for column, _ in self.app.state.shown_columns(self.size.width)] if self.view == JOBS else []

    def sort_by(self, column: str) -> None:
        """Sort by this column; if the list is sorted by it already, reverse the order."""
        if self.view == PRIORITY:
            self._ranks.sort_by(column)
            self.draw()
            return
        jobs = self.app.state.job_rows.list
        jobs.sort_by(column, descending=column == jobs.sort_column and not jobs.descending)
        self._reordered()

    def reverse_sort(self) -> None:
        """Reverse the order."""
        if self.view == PRIORITY:
            self._ranks.reverse_sort()
            self.draw()
            return
        jobs = self.app.state.job_rows.list
        jobs.sort_by(jobs.sort_column or "id", descending=not jobs.descending)
        self._reordered()

    def _reordered(self) -> None:
        self.jobs.order_changed()
        self.query_one(TitleLine).refresh()
        self.draw()
