"""Looks up jobs, also ended ones out of accounting, and lists the jobs that ended within a time."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from msgspec.structs import replace

from cockpit.backends.slurm.mapping.accounting import Past, with_amounts
from cockpit.backends.slurm.mapping.jobs import LookedUpJob, find_job
from cockpit.backends.slurm.mapping.values import job_id, slurm_id
from cockpit.backends.slurm.rows import past_row
from cockpit.engine.views.spending import ended_job
from cockpit.errors import RequestRefused
from cockpit.model.ids import JobId, Millis, task_of
from cockpit.model.refusal import Refusal, RefusalKind

if TYPE_CHECKING:
    from cockpit.backends.slurm.reading import Reading
    from cockpit.model.accounting import EndedJob
    from cockpit.model.job import Job
    from cockpit.model.usage import ReplicaTotals

HISTORY = "now-1days"
"""Beginning of the list that also shows ended jobs (`jobs --all`)."""
RECENTLY = "now-8hours"
"""Beginning of the ended jobs that a screen shows: those of a working day."""


async def look_up(reading: Reading, job: JobId, task: int | None = None) -> LookedUpJob:
    """Return a job of squeue's list, or from accounting; an array's own id means its first task.

    Raises `RequestRefused` for an unknown job.
    """
    wanted = job if task is None else job_id(job, task)
    known = find_job(await reading.jobs(), wanted)
    if known is not None:
        return known
    past, _ = await reading.sacct.accounted(slurm_id(wanted))
    # Accounting first: a job that the list lacks has mostly ended long ago.
    if past is None and await reading.jobs_now(wanted):  # it was submitted after the list was read
        reading.forget({"squeue"})
        known = find_job(await reading.jobs(), wanted)
        if known is not None:
            return known
    if past is None:
        raise RequestRefused(Refusal(RefusalKind.NOT_FOUND, f"There is no job {slurm_id(job, task)}."))
    return LookedUpJob(_with_use(past.job, past.used), None, past.fields)


async def look_up_waiting(reading: Reading, job: JobId, task: int | None = None) -> LookedUpJob:
    """Return a job like `look_up`, but for an array's own id the record of its pending tasks, if it has any."""
    if task is None and task_of(job)[1] is None:
        for each in await reading.jobs():
            if each.waits and each.array is not None and each.array.array == job:
                return LookedUpJob(each.job, each)
    return await look_up(reading, job, task)


async def ended_jobs(reading: Reading, since: Millis | None, until: Millis | None, user: str) -> list[EndedJob]:
    """Return the jobs that ended from `since` on and before `until`, the newest first."""
    # sacct's times are whole seconds, so the bounds are compared once more.
    past = await reading.sacct.ended(_slurm_time(since), _slurm_time(until, "now"), user=user)
    done = map(_ended_job, past)
    wanted = (each for each in done if _within(each.row.ended_at or 0, since, until))
    return sorted(wanted, key=lambda each: -(each.row.ended_at or 0))


def _ended_job(past: Past) -> EndedJob:
    done = ended_job(_with_use(with_amounts(past.job), past.used))
    return replace(done, row=past_row(past))


async def jobs_between(reading: Reading, since: Millis, until: Millis) -> list[Job]:
    """Return the jobs of that time, with the cards that they had."""
    return [
        with_amounts(each.job)
        for each in await reading.sacct.ended(_slurm_time(since), _slurm_time(until), during=True)
    ]


def _with_use(job: Job, used: ReplicaTotals) -> Job:
    """Return the job with its measured use, which accounting has for the whole job, at its first replica."""
    if job.attempt is None or not job.attempt.replicas:
        return job
    first, *others = job.attempt.replicas
    return replace(job, attempt=replace(job.attempt, replicas=(replace(first, used=used), *others)))


def _within(at: int, since: Millis | None, until: Millis | None) -> bool:
    return (since is None or at >= since) and (until is None or at < until)


def _slurm_time(at: Millis | None, otherwise: str = HISTORY) -> str:
    """Return a time in sacct's form, in UTC, since commands that read run with TZ=UTC."""
    return otherwise if at is None else datetime.fromtimestamp(at / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S")
