"""The row models of the Accounts view's tree and of its QOS."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.present.account_tree import AccountTree
from cockpit.present.cells.accounts import laid_out, qos_laid_out
from cockpit.present.filters import compile_filter
from cockpit.present.saved import none_saved
from cockpit.present.tables.accounts import QOS
from cockpit.tui.widgets.table import TableColumn

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cockpit.model.accounts import AssocKey, Qos
    from cockpit.model.view import AccountRow
    from cockpit.present.columns import Context
    from cockpit.present.saved import Saved
    from cockpit.present.spans import Line


class AccountRows:
    """`TableRows` over an `AccountTree`."""

    def __init__(self, context: Callable[[], Context], saved: Saved = none_saved) -> None:
        self.tree = AccountTree(context, saved)

    @property
    def order(self) -> Sequence[AssocKey]:
        return self.tree.order

    def place(self, row_id: AssocKey) -> int | None:
        return self.tree.place(row_id)

    def row(self, row_id: AssocKey) -> AccountRow | None:
        """Return the row with this id; None where it no longer exists."""
        return self.tree.row(row_id)

    def columns(self, width: int) -> Sequence[TableColumn]:
        return [TableColumn(column.title, size, column.right) for column, size in laid_out(width)]

    def cells(self, row_id: AssocKey, width: int) -> Sequence[Line]:
        row = self.tree.row(row_id)
        assert row is not None
        return [column.cell(row, self.tree) for column, _ in laid_out(width)]


class QosRows:
    """`TableRows` over the QOS, the highest priority first."""

    def __init__(self, context: Callable[[], Context], saved: Saved = none_saved) -> None:
        self._context = context
        self._saved = saved
        self._rows: dict[str, Qos] = {}
        self._order: list[str] = []
        self._filter = compile_filter("", QOS)

    def take(self, rows: Sequence[Qos]) -> tuple[list[str], bool]:
        """Store an answer; return the ids of changed rows, and whether rows were added, removed or moved."""
        fresh = {qos.name: qos for qos in sorted(rows, key=lambda qos: (-qos.priority, qos.name))}
        changed = [name for name, qos in fresh.items() if self._rows.get(name) != qos]
        before, self._rows = self._order, fresh
        self._arrange()
        return changed, self._order != before

    def filter_by(self, text: str) -> None:
        """Filter the rows; on `FilterError` the last filter stays in force."""
        self._filter = compile_filter(text, QOS, saved=self._saved)
        self._arrange()

    @property
    def order(self) -> Sequence[str]:
        return self._order

    def place(self, row_id: str) -> int | None:
        return self._order.index(row_id) if row_id in self._order else None

    def row(self, row_id: str) -> Qos | None:
        """Return the row with this id; None where it no longer exists."""
        return self._rows.get(row_id)

    def columns(self, width: int) -> Sequence[TableColumn]:
        return [TableColumn(column.title, size, column.right) for column, size in qos_laid_out(width)]

    def cells(self, row_id: str, width: int) -> Sequence[Line]:
        return [column.cell(self._rows[row_id]) for column, _ in qos_laid_out(width)]

    def _arrange(self) -> None:
        self._order = [qos.name for qos in self._filter.passing(self._rows.values(), self._context())]
