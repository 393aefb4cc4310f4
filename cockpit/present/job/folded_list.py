"""A job list with one row for each array or heterogeneous job, until the user unfolds it."""

from __future__ import annotations

from collections import Counter
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from cockpit.model.ids import seniority
from cockpit.present.folding import FoldedRow, expanded, folded, folds, group_of
from cockpit.present.job.list import Changes, JobList
from cockpit.present.tables.jobs import OPTIONAL

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cockpit.model.ids import JobId
    from cockpit.model.jobrow import JobRow

ARRAYS: Final = frozenset({"array", "component"})
_NOTED: Final = OPTIONAL | ARRAYS
"""Attributes that jobs have on some clusters only."""
_NOTHING: Final[frozenset[object]] = frozenset({(), None})
_NO_CARDS: Final[frozenset[object]] = frozenset({0})


class FoldedList:
    """The rows that `jobs` shows, folded. A folded row has its array's id, which is that of its first task; so a cursor
    on it stays in place when the array is unfolded. An array with only one task shown is not folded."""

    def __init__(self, jobs: JobList) -> None:
        self.jobs = jobs
        self.used: frozenset[str] = frozenset()
        """The attributes of `_NOTED` that some job has had."""
        self._array_of: dict[JobId, JobId] = {}
        self._unfolded: set[JobId] = set()
        self._bundles: dict[JobId, JobRow] = {}
        """Rows for several tasks, by the array's id; while the array is unfolded each task has its own row in
        `jobs`."""
        self._folded_order: tuple[Sequence[JobId], int] = ((), -1)
        """The order that was folded last, and its length then, as it may have grown since."""
        self._order: list[JobId] = []
        self._groups: dict[JobId, list[JobId]] = {}
        """Ids of the shown tasks, by the array's id."""
        self._task_counts: Counter[JobId] = Counter()
        """Number of listed tasks of each array, hidden ones included."""
        self._places: dict[JobId, int] | None = None

    @property
    def order(self) -> Sequence[JobId]:
        """Ids of the shown rows, in order."""
        # Without arrays the list is shown as it is: no folding is computed for a hundred thousand single jobs.
        if not self._array_of:
            return self.jobs.order
        self._refresh()
        return self._order

    def place(self, row_id: JobId) -> int | None:
        """Return the row's place in the shown order; None when it is not shown."""
        if not self._array_of:
            return self.jobs.place(row_id)
        self._refresh()
        if self._places is None:
            self._places = {each: place for place, each in enumerate(self._order)}
        return self._places.get(row_id)

    def row(self, row_id: JobId) -> JobRow | None:
        """Return the row that is shown under this id, or the job's own row."""
        if self.is_folded(row_id):
            return folded(self.behind(row_id), self._unlisted_tasks(row_id))
        return self.jobs.row(row_id)

    def tasks(self, job: JobId) -> list[JobId]:
        """Return the shown tasks of the array with this id or this task; empty: the job is in no array, or
        alone there."""
        if not self._array_of:
            return []
        self._refresh()
        tasks = self._groups.get(self._array_of.get(job, job), [])
        return tasks if self._may_fold(self._array_of.get(job, job)) else []

    def action_targets(self, row_id: JobId) -> list[JobRow]:
        """Return the jobs to which an action on the row applies. For an array: the tasks that have not ended, or all
        where all have. For a heterogeneous job: the first component, as actions on it apply to all."""
        rows = self.behind(row_id)
        # Ended tasks would refuse most actions for all the others.
        live = [row for row in rows if row.ended_at is None] or rows
        return live[:1] if live and live[0].component is not None else live

    def behind(self, row_id: JobId) -> list[JobRow]:
        """Return the jobs that a row represents: one job, or the shown tasks of an array; empty for an unknown id."""
        ids = self._groups[row_id] if self.is_folded(row_id) else (row_id,)
        return [row for each in ids if (row := self.jobs.row(each)) is not None]

    def speaker(self, row_id: JobId) -> JobRow | None:
        """Return the row of the job whose values the row shows: its own, or that of a task of its array."""
        row = self.row(row_id)
        return self.jobs.row(row.speaker) if isinstance(row, FoldedRow) else row

    def is_folded(self, row_id: JobId) -> bool:
        """Return whether the array of this id is shown as one row."""
        if not self._array_of:
            return False
        self._refresh()
        return row_id not in self._unfolded and self._may_fold(row_id)

    def _may_fold(self, array: JobId) -> bool:
        """Return whether the array's shown tasks can be one row."""
        return self._rows_fold(self._groups.get(array, []), array)

    def _rows_fold(self, tasks: Sequence[JobId], array: JobId) -> bool:
        # An array of which one task is left has its own row, unless tasks that ended are only no longer listed.
        if len(tasks) != 1:
            return len(tasks) > 1
        row = self.jobs.row(tasks[0])
        return row is not None and folds([row], self._unlisted_tasks(array))

    def _unlisted_tasks(self, array: JobId) -> int:
        """Return the number of the array's tasks that ended so long ago that they are not listed; 0 where a filter
        hides others too."""
        tasks = self._groups[array]
        # While a filter hides listed tasks, these cannot be distinguished from tasks that are no longer listed.
        row = self.jobs.row(tasks[0]) if len(tasks) == self._task_counts[array] else None
        if row is None or row.array is None or array in self._bundles:
            return 0
        return max(0, row.array.count - len(tasks))

    def shown_as(self, job: JobId) -> JobId:
        """Return the id of the row in which the job is shown: its own, or its array's."""
        array = self._array_of.get(job)
        return array if array is not None and self.is_folded(array) else job

    def toggle(self, row_id: JobId) -> JobId | None:
        """Unfold or fold the row's array, and return the id of the row for the cursor; None: the row belongs to no
        array."""
        self._refresh()
        array = self._array_of.get(row_id, row_id if row_id in self._groups else None)
        if array is None:
            return None
        # A row that stands for several waiting tasks (Slurm) is replaced by one row for each, or these by it.
        self._unfolded ^= {array}
        if (bundle := self._bundles.get(array)) is not None:
            added, removed = [bundle], [row.id for row in expanded(bundle)]
            if array in self._unfolded:
                added, removed = expanded(bundle), [bundle.id]
            self._note(added)
            self.jobs.apply(added, removed)
        # The order of `jobs` may be the same as before, while what is folded is not.
        self._folded_order = ((), -1)
        self._refresh()
        return self._groups[array][0] if array in self._unfolded and array in self._groups else self.shown_as(row_id)

    def apply(self, changed: Iterable[JobRow], removed: Iterable[JobId]) -> Changes:
        """Apply a change of rows like `JobList.apply`; a change of a folded task changes its array's row."""
        rows, gone = self._spread(list(changed), list(removed))
        self._note(rows)
        for job in gone:
            self._array_of.pop(job, None)
        return self._folded_changes(self.jobs.apply(rows, gone))

    def replace_all(self, rows: Iterable[JobRow]) -> Changes:
        """Replace all rows; unfolded arrays stay unfolded."""
        self._array_of, self._bundles = {}, {}
        listed, _ = self._spread(list(rows), [])
        self._note(listed)
        return self._folded_changes(self.jobs.replace_all(listed))

    def _spread(self, rows: list[JobRow], gone: list[JobId]) -> tuple[list[JobRow], list[JobId]]:
        """Return the changed and removed rows with each row for several tasks split into a row per task where its array
        is unfolded. Tasks that such a row no longer represents are added to the removed ones."""
        if not self._bundles and not any(row.tasks for row in rows):
            return rows, gone
        shown, before = [], {each.id: array for array, each in self._bundles.items()}
        # A row for several tasks that is removed or replaced may have represented tasks that no row has now. While
        # its array is unfolded these have rows in `jobs`, which must be removed too.
        lost = [self._bundles.pop(before[job]) for job in gone if job in before]
        for row in rows:
            whole = group_of(row) if row.tasks else None
            if whole is None:
                shown.append(row)
                continue
            lost += [self._bundles[whole]] if whole in self._bundles else []
            self._bundles[whole] = row
            shown += expanded(row) if whole in self._unfolded else [row]
        shown_ids = {row.id for row in shown}
        tasks = (task.id for bundle in lost for task in expanded(bundle))
        return shown, [*(job for job in gone if job not in shown_ids), *(job for job in tasks if job not in shown_ids)]

    def _note(self, rows: Sequence[JobRow]) -> None:
        for name in _NOTED - self.used:
            # A priority of 0 is one: that of a held job.
            if set(map(attrgetter(name), rows)) - (_NO_CARDS if name == "card_milli" else _NOTHING):
                self.used |= {name}
        if ARRAYS & self.used:
            self._array_of |= {row.id: whole for row in rows if (whole := group_of(row)) is not None}

    def _folded_changes(self, changes: Changes) -> Changes:
        if not self._array_of:
            return changes
        return Changes(list(dict.fromkeys(map(self.shown_as, changes.changed))), changes.order_changed)

    def _refresh(self) -> None:
        """Compute the folded order again where the order of `jobs` has changed since."""
        jobs = self.jobs.order
        # `Ordered.move` appends new last ids to the same list, so the length must be compared too.
        if self._folded_order[0] is jobs and self._folded_order[1] == len(jobs):
            return
        self._folded_order, self._places, self._groups = (jobs, len(jobs)), None, {}
        array_of, groups = self._array_of, self._groups
        for job in jobs:
            if (array := array_of.get(job)) is not None:
                groups.setdefault(array, []).append(job)
        # Also of tasks that the filter hides.
        self._task_counts = Counter(array_of.values())
        folds = {array for array, tasks in groups.items() if self._rows_fold(tasks, array)} - self._unfolded
        # An array is shown at the place of its first shown task, folded with the array as id. Its tasks stand together
        # where the list is in its usual order, which has a running task far from those that wait.
        together = not self.jobs.sort_column
        shown = {tasks[0]: [array] if array in folds else tasks for array, tasks in groups.items()}
        for tasks in groups.values() if together else ():
            tasks.sort(key=seniority)
        self._order = []
        for job in jobs:
            array = array_of.get(job)
            if array is None or (array not in folds and not together):
                self._order.append(job)
            elif job in shown:
                self._order += shown[job]
