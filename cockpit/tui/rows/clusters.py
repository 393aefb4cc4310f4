"""The row model of the Clusters view."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.model.view import ClusterState
from cockpit.present.cells.clusters import laid_out
from cockpit.present.filters import compile_filter
from cockpit.present.saved import none_saved
from cockpit.present.tables.clusters import CLUSTERS
from cockpit.tui.widgets.table import TableColumn

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cockpit.model.view import ClusterRow
    from cockpit.present.columns import Context
    from cockpit.present.saved import Saved
    from cockpit.present.spans import Line


class ClusterRows:
    """`TableRows` over the last answer of `backend.clusters()`, by name."""

    def __init__(self, context: Callable[[], Context], saved: Saved = none_saved) -> None:
        self._context = context
        self._saved = saved
        self._rows: dict[str, ClusterRow] = {}
        self._order: list[str] = []
        self._filter = compile_filter("", CLUSTERS)

    def take(self, rows: Sequence[ClusterRow]) -> tuple[list[str], bool]:
        """Store an answer; return all names, as every row's age has changed, and whether rows were added, removed or
        moved."""
        before, self._rows = self._order, {row.name: row for row in rows}
        self._arrange()
        return list(self._rows), self._order != before

    def filter_by(self, text: str) -> None:
        """Filter the rows; on `FilterError` the last filter stays in force."""
        self._filter = compile_filter(text, CLUSTERS, saved=self._saved)
        self._arrange()

    def silent(self) -> Sequence[str]:
        """Return the names of clusters that do not answer, also of those that the filter hides."""
        return [row.name for row in self._rows.values() if row.state is ClusterState.SILENT]

    @property
    def order(self) -> Sequence[str]:
        return self._order

    def place(self, name: str) -> int | None:
        return self._order.index(name) if name in self._order else None

    def row(self, name: str) -> ClusterRow | None:
        """Return the row with this id; None where it no longer exists."""
        return self._rows.get(name)

    def columns(self, width: int) -> Sequence[TableColumn]:
        return [TableColumn(column.title, size, column.right) for column, size in laid_out(width)]

    def cells(self, name: str, width: int) -> Sequence[Line]:
        row, context = self._rows[name], self._context()
        return [column.cell(row, context, size) for column, size in laid_out(width)]

    def _arrange(self) -> None:
        self._order = [row.name for row in self._filter.passing(self._rows.values(), self._context())]
