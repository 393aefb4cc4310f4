"""One row for the tasks of an array: `4700_[0-9%2]`, with how many of them are in which state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from msgspec.structs import asdict

from cockpit.model.ids import JobId
from cockpit.model.job import ENDED, JobState
from cockpit.model.jobrow import JobRow

if TYPE_CHECKING:
    from collections.abc import Callable

_FIRST_OF: tuple[Callable[[JobRow], bool], ...] = (
    lambda row: row.queued,
    lambda row: row.holds,
    lambda row: row.held_until is not None,
    lambda _: True,
)
"""Which task speaks for all: one that waits before one that runs before one that is kept."""


class FoldedRow(JobRow, frozen=True, array_like=True, gc=False):
    """Stands for several tasks of an array. Its id is the array's; sizes are those of all that have not ended (or of
    all when all have), and everything else is as one task says."""

    speaker: JobId = JobId(0)
    """The task that speaks for all."""
    indices: tuple[int, ...] = ()
    """Of all tasks, in order."""
    states: tuple[tuple[JobState, int], ...] = ()
    """How many are in which state, in the states' own order."""
    gone: int = 0
    """Further tasks, which have ended and are not listed any more."""


def folded(tasks: Sequence[JobRow], gone: int = 0) -> FoldedRow:
    """One row for these tasks of one array; `gone`: of how many more nothing is known but that they have ended."""
    speaker = next(row for wanted in _FIRST_OF for row in tasks if wanted(row))
    counting = [row for row in tasks if row.ended_at is None] or tasks
    counts = Counter(row.state for row in tasks)
    assert speaker.array is not None
    own = asdict(speaker) | {
        "id": speaker.array.array,
        "version": max(row.version for row in tasks),
        "nodes": sum(row.nodes for row in counting),
        "cpus": sum(row.cpus for row in counting),
        "memory_mib": sum(row.memory_mib for row in counting),
        "card_milli": sum(row.card_milli for row in counting),
        "priority": max((row.priority for row in tasks if row.priority is not None), default=None),
    }
    return FoldedRow(
        **own,
        speaker=speaker.id,
        indices=tuple(sorted(row.array.index for row in tasks if row.array is not None)),
        states=tuple((state, counts[state]) for state in JobState if counts[state]),
        gone=gone,
    )


def folds(tasks: Sequence[JobRow], gone: int = 0) -> bool:
    """Whether these are one row: several tasks, or what is left of a batch."""
    first = tasks[0].array
    return len(tasks) > 1 or (gone > 0 and first is not None and first.batch)


def fold(rows: Iterable[JobRow], *, all_that_live: bool = False) -> list[JobRow]:
    """The same with one row for each array of which there are several tasks, where the first of them stood.
    `all_that_live`: the rows hold every job that has not ended, so that what is missing of an array has."""
    groups: dict[object, list[JobRow]] = {}
    for row in rows:
        groups.setdefault((row.array.array,) if row.array is not None else row.id, []).append(row)
    counted = [(group, _missing(group) if all_that_live else 0) for group in groups.values()]
    return [folded(group, gone) if folds(group, gone) else group[0] for group, gone in counted]


def id_text(row: JobRow) -> str:
    """`4711`; `4700_3` for a task; `4700_[0-2,5%2]` for several, with how many may run at once."""
    if row.array is None:
        return str(row.id)
    if isinstance(row, FoldedRow):
        at_once = f"%{row.array.at_once}" if row.array.at_once else ""
        return f"{row.id}_[{','.join(_ranges(row.indices))}{at_once}]"
    return f"{row.array.array}_{row.array.index}"


def task_count(row: JobRow) -> int:
    """How many jobs a row stands for."""
    return len(row.indices) if isinstance(row, FoldedRow) else 1


def progress(row: JobRow) -> tuple[int, int] | None:
    """Of several tasks how many have ended, of how many; None: it is one job."""
    if not isinstance(row, FoldedRow):
        return None
    ended = sum(count for state, count in row.states if state in ENDED)
    return ended + row.gone, len(row.indices) + row.gone


def _missing(tasks: Sequence[JobRow]) -> int:
    """Of the whole array."""
    first = tasks[0].array
    return 0 if first is None else first.count - len(tasks)


def _ranges(indices: Sequence[int]) -> Iterator[str]:
    """`0-2`, `5`."""
    for _, run in groupby(enumerate(indices), key=lambda pair: pair[1] - pair[0]):
        (_, first), *rest = run
        yield f"{first}-{rest[-1][1]}" if rest else f"{first}"
