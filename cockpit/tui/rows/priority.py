"""The row model of the Priority view: the queue in order, filtered, sorted, and under other weights while these are
tried."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from cockpit.model.cluster import PriorityKind
from cockpit.present.filters import compile_filter
from cockpit.present.priority_columns import CellContext, Figures, Shape, id_text, laid_out_priorities
from cockpit.present.priority_parts import SIGNS, counting_factors, longest, of_jobs, weight_of
from cockpit.present.saved import none_saved
from cockpit.present.sorting import sorted_rows
from cockpit.present.tables.priority import PLACE, PRIORITY, SEARCHED
from cockpit.present.units import grouped
from cockpit.tui.rows.lists import cells, titles

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from cockpit.model.cluster import Weights
    from cockpit.model.priority import FactorName, WeightChanges
    from cockpit.model.view import Priorities, PriorityRow
    from cockpit.present.columns import Column, Context
    from cockpit.present.saved import Saved
    from cockpit.present.spans import Line
    from cockpit.tui.widgets.table import TableColumn

LEAST_PLACE, LEAST_ID, LEAST_TOTAL, LEAST_FIGURE = 3, 4, 6, 6
EDGE = 1
"""Width of the blank column to the right of figures."""
UPWARD = frozenset({PLACE, "id", "name", "user", "account", "partition"})
"""Columns that are sorted in ascending order first."""

RowId = tuple[int, object, str]
"""The id of a row: job and partition; of a job that is not visible, its place in the queue."""


class PriorityRows:
    """`TableRows` over the last answer of `backend.priorities()`."""

    def __init__(self, context: Callable[[], Context], letters: Callable[[], bool], saved: Saved = none_saved) -> None:
        self._context = context
        self.letters = letters
        """A function that says whether bars are made of letters, as the terminal shows no colours."""
        self._saved = saved
        self._rows: dict[RowId, PriorityRow] = {}
        self._order: list[RowId] = []
        self._places: dict[RowId, int] = {}
        self._filter = compile_filter("", SEARCHED)
        self._longest_bar = 0.0
        self._widths = (LEAST_ID, LEAST_PLACE, LEAST_TOTAL)
        self._queues = False
        self.priorities: Priorities | None = None
        self.own: Weights | None = None
        """The cluster's weights, as last fetched."""
        self.kind = PriorityKind.BASIC
        """The kind of priority that the cluster uses."""
        self.tried: WeightChanges | None = None
        """The weights that are tried; None: the order is the cluster's."""
        self.shown_tried = False
        """Whether the shown rows are under other weights; `tried` may be newer than the rows."""
        self.factors: tuple[FactorName, ...] = ()
        self.chosen: FactorName | None = None
        """The factor whose weight `+` and `-` change."""
        self.sort_column, self.descending = PLACE, False
        self.figures = Figures.CONTRIBUTION

    # What is known

    def take(self, priorities: Priorities) -> bool:
        """Store the answer for `tried`; return whether rows were added, removed or moved."""
        self.priorities = priorities = replace(priorities, rows=of_jobs(priorities.rows))
        # The feed drops an answer that is not for `tried`, so that this is what the rows are for.
        self.shown_tried = self.tried is not None
        if self.tried is None:
            self.own, self.kind = priorities.weights, priorities.kind
        self._rows = {_row_id(row): row for row in priorities.rows}
        self.factors = counting_factors(priorities.weights, priorities.rows)
        if self.own is not None:
            weights = self.own
            # A factor that only the cluster's own weights count stays in the legend while it is tried without it.
            own = (name for name in SIGNS if weight_of(weights, name))
            self.factors = tuple(name for name in SIGNS if name in {*own, *self.factors})
        self._measure(priorities.rows)
        before = self._order
        self._arrange()
        return self._order != before

    def _measure(self, rows: Sequence[PriorityRow]) -> None:
        self._longest_bar = longest(rows)
        self._queues = len({row.partition for row in rows}) > 1
        totals = (row.breakdown.total for row in rows if row.breakdown is not None)
        self._widths = (
            max([LEAST_ID, *(len(id_text(row)) for row in rows)]),
            max(LEAST_PLACE, len(str(len(rows)))),
            max(LEAST_TOTAL, len(grouped(max(totals, default=0)))),
        )

    @property
    def weights(self) -> Weights | None:
        """The weights under which the rows are computed, or will be with the next answer."""
        if self.tried is not None and self.own is not None:
            return self.tried.on(self.own)
        return self.priorities.weights if self.priorities is not None else None

    @property
    def queue(self) -> Sequence[PriorityRow]:
        """All rows in the order of the cluster, or of the tried weights."""
        return self.priorities.rows if self.priorities is not None else ()

    @property
    def hidden(self) -> int:
        """The number of rows that the filter hides."""
        return len(self._rows) - len(self._order)

    def row(self, row_id: Hashable) -> PriorityRow | None:
        """Return the row with this id; None where it no longer exists."""
        return self._rows.get(row_id)  # type: ignore[call-overload,no-any-return]  # whatever a table knows rows by

    # What is shown of it

    def filter_by(self, text: str) -> None:
        """Filter the rows; on `FilterError` the last filter stays in force."""
        self._filter = compile_filter(text, SEARCHED, saved=self._saved)
        self._arrange()

    def sort_by(self, column: str, *, descending: bool | None = None) -> None:
        """Sort by a column of the table `priority`, by default in the column's usual direction."""
        self.sort_column = column
        # Most columns are amounts, of which the largest are of interest.
        self.descending = column not in UPWARD if descending is None else descending
        self.chosen = next((name for name in self.factors if SIGNS[name].column == column), self.chosen)
        self._arrange()

    def choose(self, step: int) -> None:
        """Choose the factor `step` places to the right, whose weight `+` and `-` change."""
        at = self.factors.index(self.chosen) + step if self.chosen in self.factors else 0
        self.chosen = self.factors[at % len(self.factors)] if self.factors else None

    def next_figures(self) -> None:
        """Switch the columns of factors between what each adds, its raw value and its weight."""
        self.figures = self.figures.next

    def sortable(self, width: int) -> list[str]:
        """Return the shown columns by which the rows can be sorted."""
        known = {column.id for column in PRIORITY.columns}
        return [column.id for column, _ in self._laid(width) if column.id in known]

    @property
    def order(self) -> Sequence[RowId]:
        return self._order

    def place(self, row_id: RowId) -> int | None:
        return self._places.get(row_id)

    def columns(self, width: int) -> Sequence[TableColumn]:
        laid = self._laid(width)
        columns = zip(titles(laid), laid, strict=True)
        return [
            # Ages and shares change all the time: only a new place in the queue is worth being bright.
            each._replace(ticks=column.id != PLACE, leads=self._leads(column), id=column.id)
            for each, (column, _) in columns
        ]

    def cells(self, row_id: RowId, width: int) -> Sequence[Line]:
        return cells(
            self._laid(width), self._rows[row_id], CellContext(self._longest_bar, self.letters(), self.figures)
        )

    def _leads(self, column: Column) -> bool:
        """Return whether the column is marked: the one of the chosen factor while weights are tried, else the sort
        column."""
        if self.shown_tried and self.chosen is not None:
            return column.id == SIGNS[self.chosen].column
        return column.id == self.sort_column

    def _laid(self, width: int) -> Sequence[tuple[Column, int]]:
        """Return the shown columns with their widths, which depend on the rows and on what is tried or sorted by."""
        sorted_by = next((name for name in SIGNS if SIGNS[name].column == self.sort_column), None)
        first = self.chosen if self.shown_tried else sorted_by
        id_columns, place_columns, total_columns = self._widths
        figures = max(LEAST_FIGURE, total_columns - 1)
        shape = Shape(
            factors=self._heaviest(),
            first=first,
            id_columns=id_columns,
            place_columns=place_columns,
            total_columns=total_columns,
            figure_columns=figures,
            tried=self.shown_tried,
            queues=self._queues,
        )
        return laid_out_priorities(width - EDGE, shape)

    def _heaviest(self) -> tuple[FactorName, ...]:
        weights = self.priorities.weights if self.priorities is not None else None
        return tuple(sorted(self.factors, key=lambda name: -weight_of(weights, name))) if weights is not None else ()

    def _arrange(self) -> None:
        context = self._context()
        passing = self._filter.passing(self._rows.values(), context)
        column = PRIORITY.find(self.sort_column)
        assert column is not None
        # The rows come in the queue's own order already.
        if self.sort_column != PLACE or self.descending:
            passing = sorted_rows(passing, [(column, self.descending)], context)
        self._order = list(map(_row_id, passing))
        self._places = {row_id: place for place, row_id in enumerate(self._order)}


def _row_id(row: PriorityRow) -> RowId:
    # A job that is submitted to several partitions has a row in each. Hidden jobs all have the id 0.
    return (row.job, None if row.job else row.position, row.partition)
