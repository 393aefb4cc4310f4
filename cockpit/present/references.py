"""References to jobs as users type them: `123`, `123_4` (task), `34_[0-1]` (tasks, as a list shows them), `123+1`
(component of a heterogeneous job), `123/2` (replica), `123#2` (attempt), `lab:123` (cluster), or the job's name, with
its project or namespace before it where several have one of the name: `team-a/train`."""

from __future__ import annotations

import re

from cockpit.model.ids import JobId, JobRef, job_words, named_id_of
from cockpit.model.names import name_error
from cockpit.present.columns import NOTHING
from cockpit.present.safe import safe

REFERENCE = re.compile(
    r"(?:(?P<cluster>[^:\s/#]+):)?(?P<job>\d{1,18}|k[0-9a-z]{10})(?:_(?P<task>\d{1,9}|\[[^\]]*\])|\+(?P<component>\d{1,4}))?"
    r"(?:/(?P<rank>\d{1,9}))?(?:#(?P<attempt>\d{1,9}))?",
    re.ASCII,
)

_RANK = re.compile(r"\d{1,9}", re.ASCII)
_RANGE = re.compile(r"(?P<first>\d{1,9})(?:-(?P<last>\d{1,9})(?::(?P<step>\d{1,9}))?)?", re.ASCII)
MOST_TASKS = 10_000
"""Largest number of tasks that one reference may name."""


def job_text(ref: JobRef) -> str:
    """Return the job or task as users type it: `123`, `123_4`, or the name where it has no id yet."""
    if ref.name:
        return safe(ref.name)
    return job_words(ref.job) if ref.task is None else f"{ref.job}_{ref.task}"


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
    if (number := _number(match["job"])) is None:
        return _named_job(text)
    job = number + int(match["component"] or 0)  # Slurm numbers the components of a job one by one
    return JobRef(JobId(job), int(task) if task else None, rank, attempt, match["cluster"] or "", tasks=tasks)


def _number(words: str) -> JobId | None:
    """Return the id that the words stand for; None for a name that only looks like one."""
    return JobId(int(words)) if words[0] != "k" else named_id_of(words)


def _named_job(text: str) -> JobRef | None:
    """Parse `name`, `name/rank`, `project/name` and `project/name/rank`."""
    parts = text.split("/")
    rank = parts.pop() if len(parts) > 1 and _RANK.fullmatch(parts[-1]) else None
    if len(parts) > 2 or any(name_error(each) is not None for each in parts):
        return None
    return JobRef(JobId(0), rank=int(rank) if rank is not None else None, name="/".join(parts))


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
