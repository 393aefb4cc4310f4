"""Computes when events are due by time alone. Each job has at most one next moment, derived from its record."""

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
"""States before the run, to which the time limit does not apply."""


def latest_end(job: Job) -> Millis | None:
    """Return when the job's time limit ends it; None: it does not run, or is suspended.

    Suspensions do not count to the time limit, so that the end of a suspended job is unknown.
    """
    # Checks and staging do not use up the limit: it counts from the first command on, as soon as one has started.
    begin = began_at(job)
    if job.attempt is None or begin is None or job.state in ENDED or job.state is SUSPENDED:
        return None
    return Millis(begin + job.attempt.suspended_ms + job.spec.time_limit_seconds * 1000)


def began_at(job: Job) -> Millis | None:
    """Return since when the job's last attempt counts to its time limit; None: it has no attempt.

    This is the first of these that is known: the start of the first replica, the change to state `starting`, the
    placement.
    """
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
    """Return the next moment at which `due.due` has an event for this job; None: never."""
    if job.state is QUEUED:
        return _next_of_queued(job)
    # before the rule for ended jobs: one whose container is held must stay in the state until the hold ends
    if job.held_until is not None:
        return job.held_until
    if job.ended_at is not None and job.state in ENDED:
        return Millis(job.ended_at + KEEP_ENDED_MS)
    # once killed, the job waits for its processes to end, which is reported and not due at a moment
    if job.ending is not None:
        return None if job.ending.killed else job.ending.kill_at
    # the time limit may come before the kill of a recalled worker
    if job.leaving and (kill_at := recalled_until(job)) is not None:
        return min(kill_at, latest_end(job) or kill_at)
    own_time = None if job.state in _GETTING_READY else early_signal_at(job) or latest_end(job)
    # where a fleet's clusters have not all placed the job, no command runs, so its time limit does not count yet
    return given_up_at(job) or own_time


def early_signal_at(job: Job) -> Millis | None:
    """Return when the batch script gets the signal that it wants before its time limit; None: never, or it got it."""
    script, attempt = job.spec.script, job.attempt
    if script is None or script.early_signal is None or attempt is None or attempt.warned or job.state is not RUNNING:
        return None
    end = latest_end(job)
    return None if end is None else Millis(end - 1000 * script.early_signal.seconds)


def recalled_until(job: Job) -> Millis | None:
    """Return when the first recalled worker of the job is killed; None: none was recalled, or all have been killed."""
    return min((each.kill_at for each in job.leaving if not each.killed), default=None)


def given_up_at(job: Job) -> Millis | None:
    """Return when a placement is given up that some clusters of a fleet have not made; None: all have, or no fleet.

    None, too, while members over links have been told to give their parts back and have not all answered: a part may
    run there, so the job must not start anywhere else.
    """
    attempt = job.attempt
    if attempt is None or not attempt.awaits:
        return None
    if attempt.is_recalled and all(each.is_recalled for each in attempt.remote if each.is_released):
        return None
    return Millis(attempt.placed_at + 1000 * job.spec.failover.toleration_seconds)


def _next_of_queued(job: Job) -> Millis | None:
    """Return the next moment of a queued job; None: never. It is the earliest of these:

    1. its begin time, if only that keeps its age from counting,
    2. the millisecond after its latest start by its deadline,
    3. the end of its wait for resources for its least number of workers.
    """
    latest = job.spec.latest_start_at
    begin = job.spec.begin_at if job.accrues_from is None and not (job.held_by or job.waits_for) else None
    # At the latest start itself the job may still start.
    late = None if latest is None else Millis(latest + 1)
    return min((each for each in (begin, late, job.waits_until) if each is not None), default=None)


def next_decay(state: ClusterState, *, busy: bool) -> Millis | None:
    """Return when usage is decayed next and ages advance; None: there is no usage, and no job waits or runs."""
    priority = state.cluster.priority
    if priority.kind is not PriorityKind.MULTIFACTOR or not (busy or state.usage):
        return None
    return Millis(state.usage_at + 1000 * priority.calc_period_seconds)


def next_reservation_end(state: ClusterState) -> Millis | None:
    """Return when the first reservation ends; None: there is none."""
    return min((Millis(each.end_at) for each in state.reservations.values()), default=None)


def next_readmission(state: ClusterState) -> Millis | None:
    """Return when the first exclusion of a node for a job ends; None: there is none."""
    return min((until for each in state.failed_prechecks.values() for until in each.values()), default=None)


class Timers:
    """A priority queue of the jobs' next moments.

    A changed moment is pushed as a new entry. The old one stays in the heap until it comes first, and is
    dropped then, since its moment is not the job's present one.
    """

    def __init__(self) -> None:
        self._heap: list[tuple[Millis, JobId]] = []
        self._due: dict[JobId, Millis] = {}

    def update(self, job: Job) -> None:
        """Take over the next moment of this version of the job."""
        due = next_due(job)
        if due == self._due.get(job.id):
            return
        if due is None:
            # There is a moment to delete, since it differs from None.
            del self._due[job.id]
        else:
            self._due[job.id] = due
            heapq.heappush(self._heap, (due, job.id))

    def forget(self, job: JobId) -> None:
        """Remove a job that has left the state."""
        self._due.pop(job, None)

    def next_at(self) -> Millis | None:
        """Return the earliest moment; None: there is none."""
        while self._heap and self._due.get(self._heap[0][1]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def due(self, now: Millis) -> list[JobId]:
        """Return the jobs that are due at `now`, earliest first. They stay due until an event changes their moments."""
        entries = []
        while (at := self.next_at()) is not None and at <= now:
            entries.append(heapq.heappop(self._heap))
        # pushed back: if the caller cannot store its events, the jobs are due again at the next look
        for entry in entries:
            heapq.heappush(self._heap, entry)
        return [job for _, job in entries]
