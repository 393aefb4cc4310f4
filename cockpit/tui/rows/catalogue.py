"""The row model of the Catalogue view."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.present.cells.catalogue import laid_out
from cockpit.present.filters import compile_filter
from cockpit.present.saved import none_saved
from cockpit.present.tables.catalogue import CATALOGUE
from cockpit.tui.widgets.table import TableColumn

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cockpit.model.catalogue import CatalogueShown, EntryKey, EntryRow
    from cockpit.present.columns import Context
    from cockpit.present.saved import Saved
    from cockpit.present.spans import Line


class CatalogueRows:
    """`TableRows` over the last answer of `backend.catalogue()`."""

    def __init__(self, context: Callable[[], Context], saved: Saved = none_saved) -> None:
        self.shown: CatalogueShown | None = None
        """The last answer; None: not fetched yet."""
        self._context = context
        self._saved = saved
        self._rows: dict[EntryKey, EntryRow] = {}
        self._order: list[EntryKey] = []
        self._filter = compile_filter("", CATALOGUE)

    def take(self, shown: CatalogueShown) -> tuple[list[EntryKey], bool]:
        """Store an answer; return the ids of changed rows, and whether rows were added, removed or moved."""
        fresh = {row.entry.key: row for row in shown.rows}
        changed = [key for key, row in fresh.items() if self._rows.get(key) != row]
        before, self._rows, self.shown = self._order, fresh, shown
        self._arrange()
        return changed, self._order != before

    def filter_by(self, text: str) -> None:
        """Filter the rows; on `FilterError` the last filter stays in force."""
        self._filter = compile_filter(text, CATALOGUE, saved=self._saved)
        self._arrange()

    @property
    def order(self) -> Sequence[EntryKey]:
        return self._order

    def place(self, row_id: EntryKey) -> int | None:
        return self._order.index(row_id) if row_id in self._order else None

    def row(self, row_id: EntryKey) -> EntryRow | None:
        """Return the row with this id; None where it no longer exists."""
        return self._rows.get(row_id)

    def columns(self, width: int) -> Sequence[TableColumn]:
        return [TableColumn(column.title, size, column.right) for column, size in laid_out(width)]

    def cells(self, row_id: EntryKey, width: int) -> Sequence[Line]:
        return [column.cell(self._rows[row_id]) for column, _ in laid_out(width)]

    def _arrange(self) -> None:
        self._order = [row.entry.key for row in self._filter.passing(self._rows.values(), self._context())]
