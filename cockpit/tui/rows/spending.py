"""The row model of the card-hours of the last days, for the table and the chart."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from cockpit.present.accounting import By, Held, days_until, held_by
from cockpit.present.cells.spending import Shown, laid_out, spending_title
from cockpit.present.filters import compile_filter
from cockpit.present.saved import none_saved
from cockpit.present.spans import MUTED, Span, line
from cockpit.present.spending_chart import chart, in_cards, sign_of
from cockpit.present.tables.accounting import HOURS
from cockpit.tui.widgets.table import TableColumn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from cockpit.model.accounting import Spending
    from cockpit.model.ids import Millis
    from cockpit.present.columns import Context
    from cockpit.present.saved import Saved
    from cockpit.present.spans import Line

RANGES = (7, 30)
"""The numbers of days that the view can show."""


class SpendingRows:
    """`TableRows` over the last answer of `backend.spending()`."""

    def __init__(self, context: Callable[[], Context], letters: Callable[[], bool], saved: Saved = none_saved) -> None:
        self._context = context
        self._letters = letters
        self._saved = saved
        self.by = By.ACCOUNT
        self.days = RANGES[0]
        self.spending: Spending | None = None
        """The last answer; None: not fetched yet."""
        self._rows: dict[str, Held] = {}
        self._places: dict[str, int] = {}
        self._order: list[str] = []
        self._filter = compile_filter("", HOURS)

    def edges(self) -> list[Millis]:
        """Return the begins of the shown days and the present moment."""
        context = self._context()
        return days_until(context.now, self.days, context.zone)

    def take(self, spending: Spending) -> tuple[list[str], bool]:
        """Store an answer; return the names with changed figures, and whether rows were added, removed or moved."""
        self.spending = spending
        return self._count(spending)

    def turn_by(self) -> None:
        """Group by the next of account, user, project and QOS."""
        every = list(By)
        self.by = every[(every.index(self.by) + 1) % len(every)]
        if self.spending is not None:
            self._count(self.spending)

    def turn_days(self) -> None:
        """Switch between few and many days, and forget the last answer, which is of other days."""
        self.days = RANGES[(RANGES.index(self.days) + 1) % len(RANGES)]
        self.spending = None

    def filter_by(self, text: str) -> None:
        """Filter the rows; on `FilterError` the last filter stays in force."""
        self._filter = compile_filter(text, HOURS, saved=self._saved)
        self._arrange()

    def rows(self) -> Sequence[Held]:
        """Return all rows, the largest first."""
        return list(self._rows.values())

    def chart(self, columns: int, lines: int) -> Iterable[Line]:
        """Return the lines of the chart of the shown rows, of this width and height."""
        if self.spending is None:
            return ()
        shown, zone = [self._rows[name] for name in self._order], self._context().zone
        title = line(Span(f" {spending_title(self.by, self.days, shown)}", MUTED))
        drawn = chart(shown, self.spending.edges, columns - 1, lines - 1, zone, letters=self._letters())
        return [title, *((Span(" "), *each) for each in drawn)]

    def begins(self) -> list[datetime]:
        """Return the moment at which each day begins."""
        edges = self.spending.edges[:-1] if self.spending is not None else ()
        return [datetime.fromtimestamp(edge / 1000, self._context().zone) for edge in edges]

    @property
    def cards(self) -> bool:
        """Whether card-hours are shown rather than CPU-hours, as some job held a card."""
        return in_cards(list(self._rows.values()))

    @property
    def order(self) -> Sequence[str]:
        return self._order

    def place(self, row_id: str) -> int | None:
        return self._places.get(row_id)

    def row(self, row_id: str) -> Held | None:
        """Return the row with this id; None where it no longer exists."""
        return self._rows.get(row_id)

    def columns(self, width: int) -> Sequence[TableColumn]:
        return [TableColumn(column.title, size, column.right) for column, size in laid_out(width)]

    def cells(self, row_id: str, width: int) -> Sequence[Line]:
        shown = Shown(self._rows[row_id], sign_of(self._places[row_id]), self.cards, self._letters())
        return [column.cell(shown, size) for column, size in laid_out(width)]

    def _count(self, spending: Spending) -> tuple[list[str], bool]:
        fresh = {row.name: row for row in held_by(spending, self.by)}
        changed = [name for name, row in fresh.items() if self._rows.get(name) != row]
        before, self._rows = self._order, fresh
        self._arrange()
        return changed, self._order != before

    def _arrange(self) -> None:
        self._order = [row.name for row in self._filter.passing(self._rows.values(), self._context())]
        self._places = {name: place for place, name in enumerate(self._order)}
