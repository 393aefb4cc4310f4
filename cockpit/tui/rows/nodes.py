"""The row model of the Nodes view."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.present.cells.nodes import laid_out
from cockpit.present.filters import compile_filter
from cockpit.present.saved import none_saved
from cockpit.present.tables.nodes import NODES
from cockpit.tui.widgets.table import TableColumn

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cockpit.model.ids import NodeName
    from cockpit.model.spec import NodeSpec
    from cockpit.model.view import NodeRow
    from cockpit.present.columns import Context
    from cockpit.present.saved import Saved
    from cockpit.present.spans import Line


class NodeRows:
    """`TableRows` over the last answer of `backend.nodes()`. `chosen` returns the spec for idle or tight."""

    def __init__(
        self, context: Callable[[], Context], chosen: Callable[[], NodeSpec | None], saved: Saved = none_saved
    ) -> None:
        self._context = context
        self._chosen = chosen
        self._saved = saved
        self._rows: dict[NodeName, NodeRow] = {}
        self._order: list[NodeName] = []
        self._filter = compile_filter("", NODES)

    def take(self, rows: Sequence[NodeRow]) -> tuple[list[NodeName], bool]:
        """Store an answer; return the names of changed nodes, and whether nodes were added or removed."""
        fresh = {row.node.name: row for row in rows}
        changed = [name for name, row in fresh.items() if self._rows.get(name) != row]
        before, self._rows = self._order, fresh
        self._arrange()
        return changed, self._order != before

    def filter_by(self, text: str) -> None:
        """Filter the rows; on `FilterError` the last filter stays in force."""
        self._filter = compile_filter(text, NODES, saved=self._saved)
        self._arrange()

    @property
    def order(self) -> Sequence[NodeName]:
        return self._order

    def rows(self) -> Sequence[NodeRow]:
        """Return all rows, also those that the filter hides."""
        return list(self._rows.values())

    def place(self, row_id: NodeName) -> int | None:
        return self._order.index(row_id) if row_id in self._order else None

    def row(self, row_id: NodeName) -> NodeRow | None:
        """Return the row with this id; None where it no longer exists."""
        return self._rows.get(row_id)

    def columns(self, width: int) -> Sequence[TableColumn]:
        return [TableColumn(column.title, size) for column, size in laid_out(width)]

    def cells(self, row_id: NodeName, width: int) -> Sequence[Line]:
        chosen = self._chosen()
        return [column.cell(self._rows[row_id], chosen) for column, _ in laid_out(width)]

    def _arrange(self) -> None:
        passing = self._filter.passing(self._rows.values(), self._context())
        self._order = [row.node.name for row in passing]
