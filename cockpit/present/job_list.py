"""The model behind the Jobs view: rows by id, and which of them are shown in what order."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from cockpit.present.filters import compile_filter
from cockpit.present.tables.jobs import JOBS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from cockpit.model.ids import JobId
    from cockpit.model.view import JobRow
    from cockpit.present.columns import Context


class Changes(NamedTuple):
    """What a delta did to what is shown."""

    changed: list[JobId]
    order_changed: bool


class JobList:
    """`context` gives the moment that filters and derived columns are judged at."""

    def __init__(self, context: Callable[[], Context]) -> None:
        self._context = context
        self._rows: dict[JobId, JobRow] = {}
        self._places: dict[JobId, int] = {}
        self._filter = ""
        self.order: list[JobId] = []
        self.sort_column = ""
        self.descending = False
        self.mine = False

    def apply(self, changed: Iterable[JobRow], removed: Iterable[JobId]) -> Changes:
        """Take over rows that are new or different, and forget those that are gone."""
        touched = []
        for row in changed:
            self._rows[row.id] = row
            touched.append(row.id)
        for job in removed:
            self._rows.pop(job, None)
        return Changes(touched, self._arrange())

    def replace_all(self, rows: Iterable[JobRow]) -> Changes:
        """Start over with these."""
        self._rows = {row.id: row for row in rows}
        return Changes(list(self._rows), self._arrange())

    def row(self, job: JobId) -> JobRow | None:
        return self._rows.get(job)

    def rows(self) -> Iterable[JobRow]:
        """All of them, shown or not."""
        return self._rows.values()

    def place(self, job: JobId) -> int | None:
        """Where it is shown; None when it is not."""
        return self._places.get(job)

    def filter_by(self, text: str) -> None:
        """Show what matches. Raises `FilterError`, and then nothing has changed."""
        compile_filter(text, JOBS)
        self._filter = text
        self._arrange()

    def show_mine(self, mine: bool) -> None:
        self.mine = mine
        self._arrange()

    def sort_by(self, column: str, *, descending: bool) -> None:
        self.sort_column, self.descending = column, descending
        self._arrange()

    def _arrange(self) -> bool:
        before = self.order
        rows = list(self._matching())
        column = JOBS.find(self.sort_column) if self.sort_column else None
        if column is not None:
            facts = dict(zip((row.id for row in rows), column.facts(rows, self._context()), strict=True))
            rows.sort(key=lambda row: _key(facts[row.id]), reverse=self.descending)
        self.order = [row.id for row in rows]
        self._places = {job: place for place, job in enumerate(self.order)}
        return self.order != before

    def _matching(self) -> Iterable[JobRow]:
        context = self._context()
        rows: Iterable[JobRow] = self._rows.values()
        if self.mine:
            rows = [row for row in rows if row.user == context.user]
        if self._filter:
            matches = compile_filter(self._filter, JOBS)
            rows = [row for row in rows if matches(row, context)]
        return rows


def _key(fact: object) -> tuple[bool, object]:
    """What is not known stands last."""
    return (fact is None, "" if fact is None else fact)
