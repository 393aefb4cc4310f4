"""Remembers how long the jobs of each user ran, and the submissions of the last day; predictions are made from these.

Its size is bounded: the oldest entries are dropped. It is an explicit value; the owner reports every submission and
every end to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
from msgspec.structs import replace

from cockpit.model.ids import JobId, Millis
from cockpit.model.job import Job, JobState
from cockpit.model.spec import NodeSpec

MOST_RUNS = 50
"""The number of runs remembered for each user."""
MOST_USERS = 10_000
MOST_ARRIVALS = 500
DAY_MS = 86_400_000
REPEATED_DAYS = 7


class Run(msgspec.Struct, frozen=True):
    """The run of one job that has ended."""

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
        """Return a copy that later reports do not change."""
        copied = History()
        # a user's runs are a tuple, which no later report changes
        copied._runs, copied._arrivals = self._runs.copy(), self._arrivals.copy()
        return copied

    def submitted(self, job: Job) -> None:
        """Note that the job was submitted."""
        self._arrivals.append(job)
        # trimmed only at twice the length, so that most submissions cost one append
        if len(self._arrivals) > 2 * MOST_ARRIVALS:
            del self._arrivals[:-MOST_ARRIVALS]

    def ended(self, job: Job) -> None:
        """Note that the job has ended; a job that never ran is left out."""
        if job.attempt is None or job.ended_at is None:
            return
        user, spec = job.submitter.name, job.spec
        run = Run(
            job.ended_at - job.attempt.placed_at - job.attempt.suspended_ms,
            spec.time_limit_seconds,
            spec.nodes,
            spec.specs,
        )
        # popped and set again, so that the user moves to the end of the dict and the first one is the longest idle
        self._runs[user] = (*self._runs.pop(user, ()), run)[-MOST_RUNS:]
        if len(self._runs) > MOST_USERS:
            del self._runs[next(iter(self._runs))]  # whose last job ended longest ago

    def runs_of(self, user: str) -> Sequence[Run]:
        """Return the runs of the user, oldest first."""
        return self._runs.get(user, ())

    def arrivals(self, now: Millis) -> Sequence[Job]:
        """Return the jobs of the day before `now`, oldest first."""
        return [job for job in self._arrivals[-MOST_ARRIVALS:] if now - DAY_MS < job.submitted_at < now]


def history_of(jobs: Iterable[Job]) -> History:
    """Return the history of these live and ended jobs, given in any order."""
    history, jobs = History(), list(jobs)
    for job in sorted(jobs, key=lambda each: (each.submitted_at, each.id)):
        history.submitted(job)
    # by end, not by submission: the latest runs are those that ended last
    for job in sorted(jobs, key=lambda each: (each.ended_at or 0, each.id)):
        history.ended(job)
    return history


def expected_arrivals(history: History, now: Millis, first_id: JobId) -> list[Job]:
    """Return the submissions to expect if each of the next days is like the last one."""
    day = history.arrivals(now)
    shifts = [days * DAY_MS for days in range(1, REPEATED_DAYS + 1)]
    each = ((job, Millis(job.submitted_at + shift)) for shift in shifts for job in day)
    return [_again(job, JobId(first_id + number), at) for number, (job, at) in enumerate(each)]


def _again(job: Job, number: JobId, at: Millis) -> Job:
    """Return a new job with the same spec and no dependencies."""
    fresh = replace(job, id=number, submitted_at=at, state=JobState.QUEUED, state_since=at, held_by="", ended_at=None)
    return replace(fresh, attempt=None, waits_for=(), array=None, never=None, accrues_from=at)
