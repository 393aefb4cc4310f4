"""The row model of the Jobs view."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.model.ids import task_of
from cockpit.present.cells.jobs import ARRAY_COLUMNS, LEAST_ID_COLUMNS, Laid, laid_out
from cockpit.present.job.folded_list import OPTIONAL, FoldedList
from cockpit.present.job.list import JobList
from cockpit.present.saved import none_saved
from cockpit.tui.widgets.table import TableColumn

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cockpit.model.ids import JobId
    from cockpit.model.jobrow import JobRow
    from cockpit.present.columns import Context
    from cockpit.present.saved import Saved
    from cockpit.present.spans import Line


class JobRows:
    """`TableRows` over a `JobList`, its arrays folded."""

    def __init__(self, context: Callable[[], Context], saved: Saved = none_saved) -> None:
        self._context = context
        self.list = JobList(context, saved)
        self.folds = FoldedList(self.list)

    @property
    def order(self) -> Sequence[JobId]:
        return self.folds.order

    def place(self, row_id: JobId) -> int | None:
        return self.folds.place(row_id)

    def row(self, job: JobId) -> JobRow | None:
        """Return the job's own row, also if its array is folded; None where it no longer exists."""
        return self.list.row(job)

    def laid(self, width: int) -> Sequence[Laid]:
        """Return the columns that fit, of those in which some job has a value.

        The column of ids is as wide as the largest id, and wider where there are arrays.
        """
        number = len(str(task_of(self.list.largest_id)[0]))
        arrays = ARRAY_COLUMNS if {"array", "component"} & self.folds.used else 0
        return laid_out(width, max(LEAST_ID_COLUMNS, number + arrays), OPTIONAL - self.folds.used)

    def columns(self, width: int) -> Sequence[TableColumn]:
        by = self.list.sort_column
        return [
            TableColumn(column.title, size, column.right, ticks=column.ticks, leads=column.id == by, id=column.id)
            for column, size in self.laid(width)
        ]

    def cells(self, row_id: JobId, width: int) -> Sequence[Line]:
        row, context = self.folds.row(row_id), self._context()
        assert row is not None
        return [laid.column.cell(row, context) for laid in self.laid(width)]
