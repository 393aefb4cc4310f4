"""Jobs that the command line names by their names, or several tasks by one id, become ids before the verb runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from cockpit.errors import RequestRefused
from cockpit.model.ids import JobId, JobRef, job_words
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.present.folding import group_of
from cockpit.present.safe import safe

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from cockpit.headless.services import Call
    from cockpit.model.jobrow import JobRow

MOST_NAMED = 5
"""Ids that a sentence lists."""


async def resolve_jobs(call: Call) -> None:
    """Put ids in the place of names and of folded ids (`34_[0-1]`) in the arguments `job` and `jobs`.

    Raises `RequestRefused` where no job, or more than one, has the name.
    """
    args = vars(call.args)
    one, several = args.get("job"), args.get("jobs")
    refs = [each for each in [one, *(several if isinstance(several, list) else [])] if isinstance(each, JobRef)]
    if not any(each.name or each.tasks for each in refs):
        return
    rows = await call.backend.jobs(ended=True) if any(each.name for each in refs) else []
    if isinstance(one, JobRef):
        call.args.job = _by_id(one, rows)
    if isinstance(several, list):
        call.args.jobs = [task for each in several for task in _tasks(_by_id(each, rows))]


def _by_id(ref: JobRef, rows: Sequence[JobRow]) -> JobRef:
    return replace(ref, job=job_of_name(ref.name, rows), name="") if ref.name else ref


def _tasks(ref: JobRef) -> Iterator[JobRef]:
    """Each task that it names."""
    if not ref.tasks:
        yield ref
    for task in ref.tasks:
        yield replace(ref, task=task, tasks=())


def job_of_name(name: str, rows: Iterable[JobRow]) -> JobId:
    """The job of that name that has not ended, else the one that has. The tasks of an array are one job.

    Raises `RequestRefused` where there is none, or more than one.
    """
    named = [row for row in rows if row.name == name]
    live = {group_of(row) or row.id for row in named if row.ended_at is None}
    found = sorted(live or {group_of(row) or row.id for row in named})
    if len(found) == 1:
        return found[0]
    if not found:
        raise RequestRefused(Refusal(RefusalKind.NOT_FOUND, f"No job is named {safe(name)}. See: cockpit jobs --all"))
    ids = ", ".join(job_words(each) for each in found[:MOST_NAMED]) + (", …" if len(found) > MOST_NAMED else "")
    raise RequestRefused(
        Refusal(RefusalKind.INVALID, f"{len(found)} jobs are named {safe(name)}: {ids}. Name the job by its id.")
    )
