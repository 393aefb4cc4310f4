"""The row model of the Queues view."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.present.cells.queues import Bounds, bounds_of, laid_out, row_id
from cockpit.present.filters import compile_filter
from cockpit.present.saved import none_saved
from cockpit.present.tables.queues import QUEUES
from cockpit.tui.widgets.table import TableColumn

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cockpit.model.view import QueueRow
    from cockpit.present.columns import Context
    from cockpit.present.saved import Saved
    from cockpit.present.spans import Line


class QueueRows:
    """`TableRows` over the last answer of `backend.queues()`."""

    def __init__(self, context: Callable[[], Context], saved: Saved = none_saved) -> None:
        self._context = context
        self._saved = saved
        self._rows: dict[str, QueueRow] = {}
        self._bounds: dict[str, Bounds] = {}
        self._order: list[str] = []
        self._filter = compile_filter("", QUEUES)

    def take(self, rows: Sequence[QueueRow]) -> tuple[list[str], bool]:
        """Store an answer; return the ids of changed rows, and whether rows were added, removed or moved."""
        fresh = {row_id(row): row for row in rows}
        bounds = bounds_of(list(rows))
        changed = [
            key for key, row in fresh.items() if (self._rows.get(key), self._bounds.get(key)) != (row, bounds[key])
        ]
        before, self._rows, self._bounds = self._order, fresh, bounds
        self._arrange()
        return changed, self._order != before

    def filter_by(self, text: str) -> None:
        """Filter the rows; on `FilterError` the last filter stays in force."""
        self._filter = compile_filter(text, QUEUES, saved=self._saved)
        self._arrange()

    @property
    def order(self) -> Sequence[str]:
        return self._order

    def rows(self) -> Sequence[QueueRow]:
        """Return all rows, also those that the filter hides."""
        return list(self._rows.values())

    def place(self, row_id: str) -> int | None:
        return self._order.index(row_id) if row_id in self._order else None

    def row(self, row_id: str) -> QueueRow | None:
        """Return the row with this id; None where it no longer exists."""
        return self._rows.get(row_id)

    def below(self, row: QueueRow) -> Sequence[QueueRow]:
        """Return the queue and all queues below it in the tree."""
        mine = f"{row.path}/"
        return [each for each in self._rows.values() if each.kind is row.kind and f"{each.path}/".startswith(mine)]

    def columns(self, width: int) -> Sequence[TableColumn]:
        return [TableColumn(column.title, size, column.right) for column, size in laid_out(width)]

    def cells(self, row_id: str, width: int) -> Sequence[Line]:
        row, bounds = self._rows[row_id], self._bounds[row_id]
        return [column.cell(row, bounds, size) for column, size in laid_out(width)]

    def _arrange(self) -> None:
        self._order = [row_id(row) for row in self._filter.passing(self._rows.values(), self._context())]
