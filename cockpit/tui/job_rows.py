"""The job list as the table wants it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.present.job_cells import LEAST_ID_COLUMNS, Laid, laid_out
from cockpit.present.job_list import JobList
from cockpit.present.saved import none_saved
from cockpit.tui.widgets.table import TableColumn

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cockpit.model.ids import JobId
    from cockpit.model.view import JobRow
    from cockpit.present.columns import Context
    from cockpit.present.saved import Saved
    from cockpit.present.spans import Line


class JobRows:
    """`TableRows` over a `JobList`."""

    def __init__(self, context: Callable[[], Context], saved: Saved = none_saved) -> None:
        self._context = context
        self.list = JobList(context, saved)

    @property
    def order(self) -> Sequence[JobId]:
        return self.list.order

    def place(self, row_id: JobId) -> int | None:
        return self.list.place(row_id)

    def row(self, row_id: JobId) -> JobRow | None:
        """None when it has gone."""
        return self.list.row(row_id)

    def laid(self, width: int) -> Sequence[Laid]:
        """What fits; the ids' column is as wide as the largest of them."""
        return laid_out(width, max(LEAST_ID_COLUMNS, len(str(self.list.largest_id))))

    def columns(self, width: int) -> Sequence[TableColumn]:
        by = self.list.sort_column
        return [
            TableColumn(column.title, size, column.right, ticks=column.ticks, leads=column.id == by)
            for column, size in self.laid(width)
        ]

    def cells(self, row_id: JobId, width: int) -> Sequence[Line]:
        row, context = self.list.row(row_id), self._context()
        assert row is not None
        return [laid.column.cell(row, context) for laid in self.laid(width)]
