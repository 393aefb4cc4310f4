"""When something is due by itself: each job has at most one next moment, derived from its record."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

from cockpit.model.cluster import PriorityKind
from cockpit.model.ids import Millis
from cockpit.model.job import ENDED, QUEUED, RUNNING, STARTING, SUSPENDED, JobState

if TYPE_CHECKING:
    from cockpit.engine.state import ClusterState
    from cockpit.model.ids import JobId
    from cockpit.model.job import Job

KEEP_ENDED_MS = 3_600_000
"""How long an ended job stays in the live state before accounting alone remembers it."""

_GETTING_READY = frozenset({JobState.PRECHECKING, JobState.STAGING})
"""A time limit bounds the run, not what is done before it."""


def latest_end(job: Job) -> Millis | None:
    """When its time limit ends it, if it runs. Standing still does not count; while it does, nobody knows."""
    begin = began_at(job)
    if job.attempt is None or begin is None or job.state in ENDED or job.state is SUSPENDED:
        return None
    return Millis(begin + job.attempt.suspended_ms + job.spec.time_limit_seconds * 1000)


def began_at(job: Job) -> Millis | None:
    """From when on its last attempt's time counts: its first replica's start, else when it went to start, else
    placement; None: it has none."""
    attempt = job.attempt
    if attempt is None:
        return None
    begin: Millis | None = None
    for each in attempt.replicas:
        if each.started_at is not None and (begin is None or each.started_at < begin):
            begin = each.started_at
    if begin is None:
        return job.state_since if job.state in {STARTING, JobState.RESUMING} else attempt.placed_at
    return begin


def next_due(job: Job) -> Millis | None:
    """The next moment at which `due.due` has something to say about this job; None: never."""
    if job.state is QUEUED:
        return _next_of_queued(job)
    if job.held_until is not None:
        return job.held_until
    if job.ended_at is not None and job.state in ENDED:
        return Millis(job.ended_at + KEEP_ENDED_MS)
    if job.ending is not None:
        return None if job.ending.killed else job.ending.kill_at
    if job.leaving and (kill_at := recalled_until(job)) is not None:
        return min(kill_at, latest_end(job) or kill_at)
    own_time = None if job.state in _GETTING_READY else early_signal_at(job) or latest_end(job)
    return given_up_at(job) or own_time


def early_signal_at(job: Job) -> Millis | None:
    """When its batch script is to get the signal that it wants before its time limit; None: never, or it got it."""
    script, attempt = job.spec.script, job.attempt
    if script is None or script.early_signal is None or attempt is None or attempt.warned or job.state is not RUNNING:
        return None
    end = latest_end(job)
    return None if end is None else Millis(end - 1000 * script.early_signal.seconds)


def recalled_until(job: Job) -> Millis | None:
    """When the first worker that was recalled from a job that goes on is killed; None: each was, or there is none."""
    return min((each.kill_at for each in job.leaving if not each.killed), default=None)


def given_up_at(job: Job) -> Millis | None:
    """When a placement that clusters of a fleet have no room for is given up; None: all have, or there is no fleet."""
    attempt = job.attempt
    if attempt is None or not attempt.awaits:
        return None
    return Millis(attempt.placed_at + 1000 * job.spec.failover.toleration_seconds)


def latest_start(job: Job) -> Millis | None:
    """The last moment at which it can start and end by its deadline; None: it has none."""
    if job.spec.deadline_at is None:
        return None
    return Millis(job.spec.deadline_at - 1000 * job.spec.time_limit_seconds)


def _next_of_queued(job: Job) -> Millis | None:
    """Its begin time, where that is all that keeps its age from counting, just after its latest start, or the end of
    its suspension."""
    latest = latest_start(job)
    begin = job.spec.begin_at if job.accrues_from is None and not (job.held_by or job.waits_for) else None
    late = None if latest is None else Millis(latest + 1)
    return min((each for each in (begin, late, job.waits_until) if each is not None), default=None)


def next_decay(state: ClusterState, *, busy: bool) -> Millis | None:
    """When usage decays next and ages move on; None while nothing waits or runs (`busy`) and nothing was used."""
    priority = state.cluster.priority
    if priority.kind is not PriorityKind.MULTIFACTOR or not (busy or state.usage):
        return None
    return Millis(state.usage_at + 1000 * priority.calc_period_seconds)


def next_reservation_end(state: ClusterState) -> Millis | None:
    """When the first reservation is over."""
    return min((Millis(each.end_at) for each in state.reservations.values()), default=None)


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
