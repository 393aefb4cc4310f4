"""What a person types for a job: `123`, `123_4` (task), `123/2` (replica), `123#2` (attempt), `lab:123` (cluster)."""

from __future__ import annotations

import re

from cockpit.model.ids import JobId, JobRef, job_words
from cockpit.present.columns import NOTHING

REFERENCE = re.compile(
    r"(?:(?P<cluster>[^:\s/#]+):)?(?P<job>\d{1,18})(?:_(?P<task>\d{1,9}))?(?:/(?P<rank>\d{1,9}))?(?:#(?P<attempt>\d{1,9}))?",
    re.ASCII,
)


def job_text(ref: JobRef) -> str:
    """The job or task, as a person types it: `123`, `123_4`."""
    return str(ref.job) if ref.task is None else f"{ref.job}_{ref.task}"


def parse_reference(text: str) -> JobRef | None:
    """None when it is not one."""
    found = REFERENCE.fullmatch(text)
    if found is None:
        return None
    task, rank, attempt = (int(part) if part else None for part in found.group("task", "rank", "attempt"))
    return JobRef(JobId(int(found["job"])), task, rank, attempt, found["cluster"] or "")


def job_cell(job: int | None) -> str:
    """Of a table's column of jobs: `4711`, `4700_3`; a dash where nobody has it, or one who is hidden."""
    return job_words(job) if job else NOTHING


def job_shown(job: int) -> str:
    """A job that a sentence names: its id, or `-` for one that the asker may not see."""
    return job_words(job) if job else "-"
