"""The row model of a list: it stores the last answer, filters it, and draws it as its `TableView` says.

Lists that need more than that derive from `ListRows`, or use `titles` and `cells` alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

from cockpit.model.ids import task_of
from cockpit.model.view import ClusterRow, ClusterState, QueueRow
from cockpit.present.columns import laid_out
from cockpit.present.filters import compile_filter
from cockpit.present.job.folded_list import ARRAYS, FoldedList
from cockpit.present.job.list import JobList
from cockpit.present.saved import none_saved
from cockpit.present.tables.accounts import ACCOUNTS, AccountTree
from cockpit.present.tables.jobs import ARRAY_COLUMNS, LEAST_ID_COLUMNS, OPTIONAL, laid_out_jobs
from cockpit.present.tables.queues import QUEUES, Bounds, bounds_of
from cockpit.tui.widgets.table import TableColumn

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cockpit.model.accounts import AssocKey
    from cockpit.model.ids import JobId
    from cockpit.model.jobrow import JobRow
    from cockpit.present.columns import Column, Context, TableView
    from cockpit.present.saved import Saved
    from cockpit.present.spans import Line

Id = TypeVar("Id")
Row = TypeVar("Row")


def titles(layout: Sequence[tuple[Column, int]]) -> list[TableColumn]:
    """Return the columns as the table widget needs them."""
    return [TableColumn(each.heading, width, each.leans_right, ticks=each.screen.ticks) for each, width in layout]


def cells(layout: Sequence[tuple[Column, int]], row: object, scene: Any) -> list[Line]:  # noqa: ANN401 - as in `Cell`
    """Return the cells of a row."""
    return [column.drawn(row, scene, width) for column, width in layout]


class ListRows(Generic[Id, Row]):
    """`TableRows` over the last answer of the backend. `view.key` gives the rows' ids."""

    def __init__(self, view: TableView, context: Callable[[], Context], saved: Saved = none_saved) -> None:
        assert view.key is not None
        self.view = view
        self._key = view.key
        self._context = context
        self._saved = saved
        self._rows: dict[Id, Row] = {}
        self._order: list[Id] = []
        self._places: dict[Id, int] = {}
        self._filter = compile_filter("", view)
        self._layout: tuple[int, list[tuple[Column, int]]] = (-1, [])
        """The last layout with its width: it is asked for once for each visible row."""

    def take(self, rows: Sequence[Row]) -> tuple[list[Id], bool]:
        """Store an answer; return the ids of changed rows, and whether rows were added, removed or moved."""
        fresh = {self._key(row): row for row in rows}
        # By value: backends make new rows for each answer, most of which are equal to the last ones.
        changed = [row_id for row_id, row in fresh.items() if self._rows.get(row_id) != row]
        before, self._rows = self._order, fresh
        self._arrange()
        return changed, self._order != before

    def filter_by(self, text: str) -> None:
        """Filter the rows; on `FilterError` the last filter stays in force."""
        self._filter = compile_filter(text, self.view, saved=self._saved)
        self._arrange()

    @property
    def order(self) -> Sequence[Id]:
        return self._order

    def rows(self) -> Sequence[Row]:
        """Return all rows, also those that the filter hides."""
        return list(self._rows.values())

    def place(self, row_id: Id) -> int | None:
        return self._places.get(row_id)

    def row(self, row_id: Id) -> Row | None:
        """Return the row with this id; None where it no longer exists."""
        return self._rows.get(row_id)

    def columns(self, width: int) -> Sequence[TableColumn]:
        return titles(self._laid_out(width))

    def cells(self, row_id: Id, width: int) -> Sequence[Line]:
        return cells(self._laid_out(width), self._rows[row_id], self.scene(row_id))

    def scene(self, row_id: Id) -> Any:  # noqa: ANN401, ARG002 - each list has its own kind, of its own rows
        """Return what the row's cells depend on besides the row."""
        return self._context()

    def _laid_out(self, width: int) -> list[tuple[Column, int]]:
        if self._layout[0] != width:
            self._layout = width, laid_out(self.view.screen, width)
        return self._layout[1]

    def _arrange(self) -> None:
        passing = self._filter.passing(self._rows.values(), self._context())
        self._order = list(map(self._key, passing))
        self._places = {row_id: place for place, row_id in enumerate(self._order)}


class ClusterRows(ListRows[str, ClusterRow]):
    """The row model of the Clusters view."""

    def take(self, rows: Sequence[ClusterRow]) -> tuple[list[str], bool]:
        """Store an answer; every row counts as changed, since its age has."""
        _, moved = super().take(rows)
        return list(self._rows), moved

    def silent(self) -> Sequence[str]:
        """Return the names of clusters that do not answer, also of those that the filter hides."""
        return [row.name for row in self._rows.values() if row.state is ClusterState.SILENT]


class QueueRows(ListRows[str, QueueRow]):
    """The row model of the Queues view, whose bars also depend on the bounds of the queues above."""

    def __init__(self, context: Callable[[], Context], saved: Saved = none_saved) -> None:
        super().__init__(QUEUES, context, saved)
        self._bounds: dict[str, Bounds] = {}

    def take(self, rows: Sequence[QueueRow]) -> tuple[list[str], bool]:
        """Store an answer; a row with a new bound counts as changed too."""
        # Before the rows: a redraw that they cause draws bars within the new bounds.
        before, self._bounds = self._bounds, bounds_of(list(rows))
        changed, moved = super().take(rows)
        bounded = [row_id for row_id, bounds in self._bounds.items() if before.get(row_id) != bounds]
        return list(dict.fromkeys([*changed, *bounded])), moved

    def below(self, row: QueueRow) -> Sequence[QueueRow]:
        """Return the queue and all queues below it in the tree."""
        # With a slash at both ends: `nlp` is not above `nlp-large`.
        mine = f"{row.path}/"
        return [each for each in self._rows.values() if each.kind is row.kind and f"{each.path}/".startswith(mine)]

    def scene(self, row_id: str) -> Bounds:
        return self._bounds[row_id]


class AccountRows(AccountTree):
    """The row model of the tree of accounts."""

    def columns(self, width: int) -> Sequence[TableColumn]:
        return titles(laid_out(ACCOUNTS.screen, width))

    def cells(self, row_id: AssocKey, width: int) -> Sequence[Line]:
        return cells(laid_out(ACCOUNTS.screen, width), self.row(row_id), self)


class JobRows:
    """`TableRows` over a `JobList`, its arrays folded."""

    def __init__(self, context: Callable[[], Context], saved: Saved = none_saved) -> None:
        self._context = context
        self.list = JobList(context, saved)
        self.folds = FoldedList(self.list)

    @property
    def order(self) -> Sequence[JobId]:
        return self.folds.order

    def place(self, row_id: JobId) -> int | None:
        return self.folds.place(row_id)

    def filter_by(self, text: str) -> None:
        """Filter the rows; on `FilterError` the last filter stays in force."""
        self.list.filter_by(text)

    @property
    def sort_column(self) -> str:
        return self.list.sort_column

    @property
    def descending(self) -> bool:
        return self.list.descending

    def sortable(self, width: int) -> list[str]:
        """Return the ids of the shown columns: the rows can be sorted by each of them."""
        return [column.id for column, _ in self.layout(width)]

    def sort_by(self, column: str, *, descending: bool | None = None) -> None:
        """Sort by this column; None: in ascending order, as is usual for each of them."""
        self.list.sort_by(column, descending=bool(descending))

    def row(self, job: JobId) -> JobRow | None:
        """Return the job's own row, also if its array is folded; None where it no longer exists."""
        return self.list.row(job)

    def layout(self, width: int) -> Sequence[tuple[Column, int]]:
        """Return the columns that fit, of those in which some job has a value.

        The column of ids is as wide as the largest id, and wider where there are arrays.
        """
        number = len(str(task_of(self.list.largest_id)[0]))
        arrays = ARRAY_COLUMNS if ARRAYS & self.folds.used else 0
        return laid_out_jobs(width, max(LEAST_ID_COLUMNS, number + arrays), OPTIONAL - self.folds.used)

    def columns(self, width: int) -> Sequence[TableColumn]:
        by = self.list.sort_column
        laid = self.layout(width)
        columns = zip(titles(laid), laid, strict=True)
        return [each._replace(leads=column.id == by, id=column.id) for each, (column, _) in columns]

    def cells(self, row_id: JobId, width: int) -> Sequence[Line]:
        row = self.folds.row(row_id)
        assert row is not None
        return cells(self.layout(width), row, self._context())
