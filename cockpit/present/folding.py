"""Folded rows: one row for the tasks of an array (`4700_[0-9%2]`) or the components of a heterogeneous job
(`4700+[0-2]`), with the number of them in each state.

Another scheduler may already list equal queued tasks as one row (`JobRow.tasks`); such a row counts as all of its
tasks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import asdict, replace

from cockpit.model.ids import JobId, index_ranges, job_words, member_of, task_id
from cockpit.model.job import ENDED, JobState
from cockpit.model.jobrow import JobRow, JobRows

if TYPE_CHECKING:
    from collections.abc import Callable

_SPEAKER_ORDER: tuple[Callable[[JobRow], bool], ...] = (
    lambda row: row.queued,
    lambda row: row.holds,
    lambda row: row.held_until is not None,
    lambda _: True,
)
"""Conditions, in order of precedence, on the task whose values the folded row shows: queued, holding resources, held
container, any other."""


class FoldedRow(JobRow, frozen=True, array_like=True, gc=False):
    """One row for several tasks of an array, or several components of a heterogeneous job. Its id is the array's, or
    the first component's; sizes are the sums of those that have not ended (of all when all have), and all other values
    are those of one of them."""

    speaker: JobId = JobId(0)
    """Id of the task whose values the row shows."""
    indices: tuple[int, ...] = ()
    """Indices of all tasks, in order."""
    states: tuple[tuple[JobState, int], ...] = ()
    """Number of tasks in each state, in the states' own order."""
    gone: int = 0
    """Number of further tasks, which have ended and are no longer listed."""


def folded(tasks: Sequence[JobRow], gone: int = 0) -> FoldedRow:
    """Return one row for the tasks of an array or the components of a heterogeneous job.

    1. Choose the task whose reason, state and moments the row shows.
    2. Choose the tasks whose sizes are added up.
    3. Count the tasks in each state.
    4. Put the row together.

    `gone`: number of further tasks of which only the end is known.
    """
    # Step 1
    speaker = next(row for wanted in _SPEAKER_ORDER for row in tasks if wanted(row))
    # Step 2
    # Ended tasks hold nothing any more: the sizes are what the others hold or request.
    counting = [row for row in tasks if row.ended_at is None] or tasks
    # Step 3
    # By jobs, not by rows: Slurm lists equal waiting tasks as one row.
    counts: Counter[JobState] = Counter()
    for row in tasks:
        counts[row.state] += task_count(row)
    # Step 4
    whole = group_of(speaker)
    assert whole is not None
    # What cannot be summed is taken from one task, so that the values belong together.
    own = asdict(speaker) | {
        "id": whole,
        # The largest, so that a change of any task makes the row a changed one.
        "version": max(row.version for row in tasks),
        "nodes": sum(row.nodes * task_count(row) for row in counting),
        "cpus": sum(row.cpus * task_count(row) for row in counting),
        "memory_mib": sum(row.memory_mib * task_count(row) for row in counting),
        "card_milli": sum(row.card_milli * task_count(row) for row in counting),
        # The best one: it decides when the next task starts.
        "priority": max((row.priority for row in tasks if row.priority is not None), default=None),
        "tasks": (),
    }
    return FoldedRow(
        **own,
        speaker=speaker.id,
        indices=tuple(sorted(index for row in tasks for index in _indices(row))),
        states=tuple((state, counts[state]) for state in JobState if counts[state]),
        gone=gone,
    )


def speaker_of(row: JobRow) -> JobId:
    """Return the id of the job whose state and start the row shows: the array's task with the shown values, or the job
    itself."""
    return row.speaker if isinstance(row, FoldedRow) else row.id


def folds(tasks: Sequence[JobRow], gone: int = 0) -> bool:
    """Return whether the tasks are shown as one folded row: several tasks, one row for several, or the rest of
    a batch."""
    first = tasks[0].array
    return len(tasks) > 1 or bool(tasks[0].tasks) or (gone > 0 and first is not None and first.batch)


def group_of(row: JobRow) -> JobId | None:
    """Return the id of the task's array, or of the first component of its heterogeneous job; None: a single job."""
    if row.array is not None:
        return row.array.array
    return JobId(row.component[0]) if row.component is not None else None


def expanded(row: JobRow) -> list[JobRow]:
    """Return one row for each task that the row represents, or the row itself."""
    if row.array is None or not row.tasks:
        return [row]
    tasks = (replace(row.array, index=index) for index in row.tasks)
    return [replace(row, id=task_id(own.array, own.index), array=own, tasks=()) for own in tasks]


def standing(rows: Sequence[JobRow]) -> Sequence[JobRow]:
    """Return the rows with the total sizes in each row that represents several tasks. The ids stay: the array's id
    would include its other tasks."""
    if isinstance(rows, JobRows) or not any(row.tasks for row in rows):
        return rows
    return [replace(folded([row]), id=row.id) if row.tasks else row for row in rows]


def fold(rows: Iterable[JobRow], *, all_that_live: bool = False) -> list[JobRow]:
    """Return the rows with each array that has several tasks folded into one row, at the place of its first task.
    `all_that_live`: the rows hold every job that has not ended, so that missing tasks of an array have ended."""
    # A single job may have the number that is also the id of an array: a tuple keeps both apart.
    groups: dict[object, list[JobRow]] = {}
    for row in rows:
        whole = group_of(row)
        groups.setdefault((whole,) if whole is not None else row.id, []).append(row)
    counted = [(group, _missing(group) if all_that_live else 0) for group in groups.values()]
    return [folded(group, gone) if folds(group, gone) else group[0] for group, gone in counted]


def own_ids(rows: Iterable[JobRow]) -> list[JobRow]:
    """Return rows of several clusters with the ids that each job has on its own cluster."""
    return [_own(row) for row in rows]


def _own(row: JobRow) -> JobRow:
    array = replace(row.array, array=member_of(row.array.array)[1]) if row.array is not None else None
    component = (member_of(row.component[0])[1], row.component[1]) if row.component is not None else None
    return replace(row, id=member_of(row.id)[1], array=array, component=component)


def id_text(row: JobRow) -> str:
    """Return the id as users read it: `4711`; `4700_3` for a task; `4700_[0-2,5%2]` for several, with the largest
    number that may run at once."""
    mark = "_" if row.array is not None else "+"
    if (whole := group_of(row)) is None:
        return job_words(row.id)
    if isinstance(row, FoldedRow) or row.tasks:
        at_once = f"%{row.array.at_once}" if row.array is not None and row.array.at_once else ""
        indices = row.indices if isinstance(row, FoldedRow) else row.tasks
        return f"{job_words(whole)}{mark}[{index_ranges(indices)}{at_once}]"
    (index,) = _indices(row)
    return f"{job_words(whole)}{mark}{index}"


def command_id(row: JobRow) -> str:
    """Return the id for a command line. It has no brackets, which a shell would expand: several tasks have their
    array's id."""
    return job_words(row.id) if isinstance(row, FoldedRow) or row.tasks else id_text(row)


def task_count(row: JobRow) -> int:
    """Return the number of jobs that the row represents."""
    return len(row.indices) if isinstance(row, FoldedRow) else len(row.tasks) or 1


def progress(row: JobRow) -> tuple[int, int] | None:
    """Return the number of ended tasks and of all tasks; None: the row is a single job."""
    if not isinstance(row, FoldedRow):
        return None
    ended = sum(count for state, count in row.states if state in ENDED)
    return ended + row.gone, len(row.indices) + row.gone


def _missing(tasks: Sequence[JobRow]) -> int:
    """Return the number of the array's tasks that are not among the given ones."""
    first = tasks[0].array
    # At least 0: an array of Slurm has no count of its own beyond its listed tasks.
    return 0 if first is None else max(0, first.count - sum(map(task_count, tasks)))


def _indices(row: JobRow) -> tuple[int, ...]:
    """Return the indices of the tasks that the row represents, or of its component."""
    if isinstance(row, FoldedRow):
        return row.indices
    if row.array is not None:
        return row.tasks or (row.array.index,)
    return () if row.component is None else (row.component[1],)
