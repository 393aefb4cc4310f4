"""The jobs that an act is about: in words, and as the cluster's operations name them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.present.folding import id_text, task_count
from cockpit.present.units import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cockpit.model.jobrow import JobRow


def named(rows: Sequence[JobRow]) -> str:
    """Return the jobs in words: `job 7 bert`, or `3 jobs`."""
    count = sum(map(task_count, rows))
    return f"job {id_text(rows[0])} {rows[0].name}" if count == 1 else counted(count, "job")


def task_of(row: JobRow) -> int | None:
    """Return the row's index in its array, without which the id of the first task would mean the whole array.

    None: the job is no task, or the row stands for several waiting tasks, whose id means just those.
    """
    return None if row.array is None or row.tasks else row.array.index
