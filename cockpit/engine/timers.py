"""When something is due by itself: each job has at most one next moment, derived from its record."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

from cockpit.model.ids import Millis

if TYPE_CHECKING:
    from cockpit.model.ids import JobId
    from cockpit.model.job import Job

KEEP_ENDED_MS = 3_600_000
"""How long an ended job stays in the live state before accounting alone remembers it."""


def latest_end(job: Job) -> Millis | None:
    """When its time limit ends it, if it occupies resources: from its first replica's start, else placement."""
    if job.attempt is None or job.ended:
        return None
    starts = [each.started_at for each in job.attempt.replicas if each.started_at is not None]
    begin = min(starts, default=job.attempt.placed_at)
    return Millis(begin + job.spec.time_limit_seconds * 1000)


def next_due(job: Job) -> Millis | None:
    """The next moment at which `decide.due` has something to say about this job; None: never."""
    if job.held_until is not None:
        return job.held_until
    if job.ended_at is not None and job.ended:
        return Millis(job.ended_at + KEEP_ENDED_MS)
    if job.ending is not None:
        return None if job.ending.killed else job.ending.kill_at
    return latest_end(job)


class Timers:
    """The earliest due moments first. Stale entries are recognised by their moment and skipped."""

    def __init__(self) -> None:
        self._heap: list[tuple[Millis, JobId]] = []
        self._due: dict[JobId, Millis] = {}

    def update(self, job: Job) -> None:
        """Take over what this version of the job says."""
        due = next_due(job)
        if due == self._due.get(job.id):
            return
        if due is None:
            del self._due[job.id]
        else:
            self._due[job.id] = due
            heapq.heappush(self._heap, (due, job.id))

    def forget(self, job: JobId) -> None:
        self._due.pop(job, None)

    def next_at(self) -> Millis | None:
        """The earliest due moment."""
        while self._heap and self._due.get(self._heap[0][1]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def due(self, now: Millis) -> list[JobId]:
        """The jobs that are due at `now`, earliest first. They stay due until an event moves them on."""
        found = []
        while (at := self.next_at()) is not None and at <= now:
            found.append(heapq.heappop(self._heap))
        for entry in found:
            heapq.heappush(self._heap, entry)
        return [job for _, job in found]
