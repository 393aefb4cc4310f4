"""The row model of the card-hours of the last days, for the table and the chart."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from cockpit.present.accounting import GroupBy, Held, days_until, held_by
from cockpit.present.saved import none_saved
from cockpit.present.spans import MUTED, Span, line
from cockpit.present.spending_chart import chart, in_cards, sign_of
from cockpit.present.tables.accounting import HOURS, AmountFormat, spending_title
from cockpit.tui.rows.lists import ListRows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from cockpit.model.accounting import Spending
    from cockpit.model.ids import Millis
    from cockpit.present.columns import Context
    from cockpit.present.saved import Saved
    from cockpit.present.spans import Line

RANGES = (7, 30)
"""The numbers of days that the view can show."""


class SpendingRows(ListRows[str, Held]):
    """The row model of the card-hours, over the last answer of `backend.spending()`."""

    def __init__(self, context: Callable[[], Context], letters: Callable[[], bool], saved: Saved = none_saved) -> None:
        super().__init__(HOURS, context, saved)
        self._letters = letters
        self.by = GroupBy.ACCOUNT
        self.days = RANGES[0]
        self.spending: Spending | None = None
        """The last answer; None: not fetched yet."""
        self.fetch_at = 0.0
        """When they are to be fetched again, by the event loop's clock."""

    def edges(self) -> list[Millis]:
        """Return the begins of the shown days and the present moment."""
        context = self._context()
        return days_until(context.now, self.days, context.zone)

    def count(self, spending: Spending) -> tuple[list[str], bool]:
        """Store an answer; return the names with changed figures, and whether rows were added, removed or moved."""
        self.spending = spending
        return self.take(held_by(spending, self.by))

    def next_grouping(self) -> None:
        """Group by the next of account, user, project and QOS."""
        every = list(GroupBy)
        self.by = every[(every.index(self.by) + 1) % len(every)]
        if self.spending is not None:
            self.count(self.spending)

    def toggle_days(self) -> None:
        """Switch between few and many days, and forget the last answer, which is of other days."""
        # Without an answer for the new days nothing is shown: old bars under new dates would be wrong.
        self.days = RANGES[(RANGES.index(self.days) + 1) % len(RANGES)]
        self.spending = None

    def chart(self, columns: int, lines: int) -> Iterable[Line]:
        """Return the lines of the chart of the shown rows, of this width and height."""
        if self.spending is None:
            return ()
        # The rows that pass the filter, in the order of the table, so that signs and colours agree.
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

    def scene(self, row_id: str) -> AmountFormat:
        return AmountFormat(sign_of(self._places[row_id]), self.cards, self._letters())
