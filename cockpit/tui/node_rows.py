"""The nodes as the table wants them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.present.node_cells import laid_out
from cockpit.tui.widgets.table import TableColumn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cockpit.model.ids import NodeName
    from cockpit.model.view import NodeRow
    from cockpit.present.spans import Line


class NodeRows:
    """`TableRows` over the last answer of `backend.nodes()`."""

    def __init__(self) -> None:
        self._rows: dict[NodeName, NodeRow] = {}
        self._order: list[NodeName] = []

    def take(self, rows: Sequence[NodeRow]) -> tuple[list[NodeName], bool]:
        """The nodes whose rows differ, and whether nodes came or went."""
        fresh = {row.node.name: row for row in rows}
        changed = [name for name, row in fresh.items() if self._rows.get(name) != row]
        moved = list(fresh) != self._order
        self._rows, self._order = fresh, list(fresh)
        return changed, moved

    @property
    def order(self) -> Sequence[NodeName]:
        return self._order

    def place(self, row_id: NodeName) -> int | None:
        return self._order.index(row_id) if row_id in self._rows else None

    def row(self, row_id: NodeName) -> NodeRow | None:
        """None when it has gone."""
        return self._rows.get(row_id)

    def columns(self, width: int) -> Sequence[TableColumn]:
        return [TableColumn(column.title, size) for column, size in laid_out(width)]

    def cells(self, row_id: NodeName, width: int) -> Sequence[Line]:
        return [column.cell(self._rows[row_id]) for column, _ in laid_out(width)]
