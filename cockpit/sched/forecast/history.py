"""How long jobs really ran, by user, and what came in the last day: what predictions know beyond the cluster's state.

Bounded: what is oldest goes. An explicit value; whoever keeps it tells it of every submission and every end.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
from msgspec.structs import replace

from cockpit.model.ids import JobId, Millis
from cockpit.model.job import Job, JobState
from cockpit.model.spec import NodeSpec

MOST_RUNS = 50
"""Remembered of each user."""
MOST_USERS = 10_000
MOST_ARRIVALS = 500
DAY_MS = 86_400_000
REPEATED_DAYS = 7


class Run(msgspec.Struct, frozen=True):
    """One job that has ended."""

    ran_ms: int
    limit_seconds: int
    nodes: int
    specs: tuple[NodeSpec, ...]


class History:
    """Runs by user, and the latest submissions."""

    def __init__(self) -> None:
        self._runs: dict[str, tuple[Run, ...]] = {}
        self._arrivals: list[Job] = []

    def copy(self) -> History:
        """One that stays as it is now."""
        copied = History()
        copied._runs, copied._arrivals = self._runs.copy(), self._arrivals.copy()
        return copied

    def submitted(self, job: Job) -> None:
        """The job came."""
        self._arrivals.append(job)
        if len(self._arrivals) > 2 * MOST_ARRIVALS:
            del self._arrivals[:-MOST_ARRIVALS]

    def ended(self, job: Job) -> None:
        """The job has ended; one that never ran tells nothing."""
        if job.attempt is None or job.ended_at is None:
            return
        user, spec = job.submitter.name, job.spec
        run = Run(
            job.ended_at - job.attempt.placed_at - job.attempt.suspended_ms,
            spec.time_limit_seconds,
            spec.nodes,
            spec.specs,
        )
        self._runs[user] = (*self._runs.pop(user, ()), run)[-MOST_RUNS:]
        if len(self._runs) > MOST_USERS:
            del self._runs[next(iter(self._runs))]  # whose last job ended longest ago

    def runs_of(self, user: str) -> Sequence[Run]:
        """Oldest first."""
        return self._runs.get(user, ())

    def arrivals(self, now: Millis) -> Sequence[Job]:
        """The jobs of the day before `now`, oldest first."""
        return [job for job in self._arrivals[-MOST_ARRIVALS:] if now - DAY_MS < job.submitted_at < now]


def history_of(jobs: Iterable[Job]) -> History:
    """From jobs that are live or have ended, in any order."""
    found, jobs = History(), list(jobs)
    for job in sorted(jobs, key=lambda each: (each.submitted_at, each.id)):
        found.submitted(job)
    for job in sorted(jobs, key=lambda each: (each.ended_at or 0, each.id)):
        found.ended(job)
    return found


def coming(history: History, now: Millis, first_id: JobId) -> list[Job]:
    """What would come if the next days were as the last one: its submissions again, day after day."""
    day = history.arrivals(now)
    shifts = [days * DAY_MS for days in range(1, REPEATED_DAYS + 1)]
    each = ((job, Millis(job.submitted_at + shift)) for shift in shifts for job in day)
    return [_again(job, JobId(first_id + number), at) for number, (job, at) in enumerate(each)]


def _again(job: Job, number: JobId, at: Millis) -> Job:
    """A new job that asks for the same, and waits for nobody."""
    fresh = replace(job, id=number, submitted_at=at, state=JobState.QUEUED, state_since=at, held_by="", ended_at=None)
    return replace(fresh, attempt=None, waits_for=(), array=None, never=None, accrues_from=at)
