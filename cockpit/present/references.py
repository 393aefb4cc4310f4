"""References to jobs as users type them: `123`, `123_4` (task), `34_[0-1]` (tasks, as a list shows them), `123+1`
(component of a heterogeneous job), `123/2` (replica), `123#2` (attempt), `lab:123` (cluster), or the job's name."""

from __future__ import annotations

import re

from cockpit.model.ids import JobId, JobRef, job_words
from cockpit.model.names import name_error
from cockpit.present.columns import NOTHING
from cockpit.present.safe import safe

REFERENCE = re.compile(
    r"(?:(?P<cluster>[^:\s/#]+):)?(?P<job>\d{1,18})(?:_(?P<task>\d{1,9}|\[[^\]]*\])|\+(?P<component>\d{1,4}))?"
    r"(?:/(?P<rank>\d{1,9}))?(?:#(?P<attempt>\d{1,9}))?",
    re.ASCII,
)

_RANGE = re.compile(r"(?P<first>\d{1,9})(?:-(?P<last>\d{1,9})(?::(?P<step>\d{1,9}))?)?", re.ASCII)
MOST_TASKS = 10_000
"""Largest number of tasks that one reference may name."""


def job_text(ref: JobRef) -> str:
    """Return the job or task as users type it: `123`, `123_4`, or the name where it has no id yet."""
    if ref.name:
        return safe(ref.name)
    return str(ref.job) if ref.task is None else f"{ref.job}_{ref.task}"


def parse_reference(text: str) -> JobRef | None:
    """Parse an id of any form, or a name with an optional replica (`train/2`); None when the text can be neither."""
    match = REFERENCE.fullmatch(text)
    if match is None:
        return _named_job(text)
    tasks: tuple[int, ...] = ()
    # Folded rows are shown as `34_[0-3]`, and users copy what a list shows.
    if (task := match["task"]) and task.startswith("["):
        if not (tasks := _indices(task[1:-1])):
            return None
        task = None
    rank, attempt = (int(part) if part else None for part in match.group("rank", "attempt"))
    job = int(match["job"]) + int(match["component"] or 0)  # Slurm numbers the components of a job one by one
    return JobRef(JobId(job), int(task) if task else None, rank, attempt, match["cluster"] or "", tasks=tasks)


def _named_job(text: str) -> JobRef | None:
    name, slash, rank = text.partition("/")
    if name_error(name) is not None or (slash and not (rank.isascii() and rank.isdigit() and len(rank) < 10)):
        return None
    return JobRef(JobId(0), rank=int(rank) if slash else None, name=name)


def _indices(text: str) -> tuple[int, ...]:
    """Return the task indices of a list such as `0-3,7,10-20:5%2`, in Slurm's syntax, in order; empty where the text is
    no such list or names more than `MOST_TASKS`."""
    indices: set[int] = set()
    # Behind the percent sign is how many may run at once, which names no task.
    for part in text.partition("%")[0].split(","):
        if (matched := _RANGE.fullmatch(part)) is None:
            return ()
        first, last = int(matched["first"]), int(matched["last"] or matched["first"])
        # Before the range is made: `0-999999999` would take the memory of the machine.
        if last - first >= MOST_TASKS:
            return ()
        indices.update(range(first, last + 1, int(matched["step"] or 1) or 1))
    return tuple(sorted(indices)) if len(indices) <= MOST_TASKS else ()


def job_cell(job: int | None) -> str:
    """Return a job's id for a table's cell: `4711`, `4700_3`; a dash without a job, or where the job is hidden."""
    return job_words(job) if job else NOTHING


def job_shown(job: int) -> str:
    """Return the id of a job in a sentence, or `-` for a job that the user may not see."""
    return job_words(job) if job else "-"
