"""How the lists of the main screen are arranged: folded, sorted, coloured."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from cockpit.tui.action import ACCOUNTS, JOBS, PRIORITY
from cockpit.tui.screens.lists import Lists
from cockpit.tui.widgets.titles import Titles

if TYPE_CHECKING:
    from collections.abc import Sequence


class Arranging(Lists):
    """The screen as far as its rows can be put in another order, or out of sight."""

    def fold_all(self) -> None:
        """Accounts below the topmost ones, or everything again."""
        self.app.account_rows.tree.fold_all()
        self._refolded()

    def _fold_account(self) -> None:
        """Where the cursor is on a user: what that user belongs to."""
        tree, here = self.app.account_rows.tree, cast("Any", self.accounts.cursor_id)
        if here is None:
            return
        if not tree.fold(here) and tree.above(here):
            here = tree.above(here)[-1]
            tree.fold(here)
        self._refolded()
        self.accounts.move_to(here)

    def _refolded(self) -> None:
        self.accounts.order_changed()
        self.accounts.redraw()
        self.draw()

    def turn_colours(self) -> None:
        """The cards by user, or by job."""
        self.app.card_rows.by_user = not self.app.card_rows.by_user
        self.cards.redraw()
        self.draw()

    def toggle_mine(self) -> None:
        """Only one's own jobs, or everybody's."""
        jobs = self.app.job_rows.list
        jobs.show_mine(not jobs.mine)
        self._reordered()

    def unfold(self) -> bool:
        """Show the tasks of the array under the cursor; whether it was folded."""
        here: Any = self.jobs.cursor_id
        folded = here is not None and self.app.job_rows.folds.is_folded(here)
        if folded:
            self.toggle_fold()
        return folded

    def toggle_fold(self) -> None:
        """The tasks of the array under the cursor, or one row for them; marks stay with all of them or go."""
        if self.view == ACCOUNTS:
            self._fold_account()
            return
        folds, here = self.app.job_rows.folds, cast("Any", self.jobs.cursor_id)
        tasks = set(folds.tasks(here)) if here is not None else set()
        if not tasks:
            return
        was_folded = folds.is_folded(here)
        marked = here in self.jobs.marked if was_folded else tasks <= self.jobs.marked
        row_id = folds.toggle(here)
        self.jobs.marked -= {*tasks, row_id}
        if marked:
            self.jobs.marked |= tasks if was_folded else {row_id}
        self._reordered()
        self.jobs.redraw()
        if row_id is not None:
            self.jobs.move_to(row_id)

    def sort_by_neighbour(self, step: int) -> None:
        """By the next of the columns that are shown."""
        if self.view == PRIORITY:
            self._ranks.sort_by_neighbour(step)
            self.draw()
            return
        jobs = self.app.job_rows.list
        ids = [laid.column.id for laid in self.app.shown_columns(self.size.width)]
        place = ids.index(jobs.sort_column) if jobs.sort_column in ids else (-1 if step > 0 else 0)
        jobs.sort_by(ids[(place + step) % len(ids)], descending=False)
        self._reordered()

    def sortable(self) -> Sequence[str]:
        """Ids of the shown columns that this view can be sorted by; none: its order is fixed."""
        if self.view == PRIORITY:
            return self._ranks.sortable()
        return [laid.column.id for laid in self.app.shown_columns(self.size.width)] if self.view == JOBS else []

    def sort_by(self, column: str) -> None:
        """By this column; where it leads already, the other way round."""
        if self.view == PRIORITY:
            self._ranks.sort_by(column)
            self.draw()
            return
        jobs = self.app.job_rows.list
        jobs.sort_by(column, descending=column == jobs.sort_column and not jobs.descending)
        self._reordered()

    def reverse_sort(self) -> None:
        """The other way round."""
        if self.view == PRIORITY:
            self._ranks.reverse_sort()
            self.draw()
            return
        jobs = self.app.job_rows.list
        jobs.sort_by(jobs.sort_column or "id", descending=not jobs.descending)
        self._reordered()

    def _reordered(self) -> None:
        self.jobs.order_changed()
        self.query_one(Titles).refresh()
        self.draw()
