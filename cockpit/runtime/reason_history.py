"""Record why each job was pending, since when, and behind which jobs; a job's page shows it over its waiting time.

The journal records what happened, not why a job did not start. So after a scheduling pass the reasons of a part of the
queue are read, each part in turn, and a job's reason is recorded when it has changed. Everything is limited: the jobs
per pass, the changes per job; and only jobs that the engine still knows are remembered.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from cockpit.model.reasons import LimitReached, NoAlternative, NotEnoughFree, SchedulerReason, Waited
from cockpit.sched.explain import queue_front, reason_of

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    from cockpit.model.ids import JobId, Millis
    from cockpit.model.job import Job
    from cockpit.model.reasons import Reason
    from cockpit.sched.plan import Plan

LOOKED_AT = 200
"""Jobs whose reasons are recorded after one pass; it takes some milliseconds."""
PAUSE_MS = 1_000
"""Shortest interval between two recordings."""
CHANGES_KEPT = 40
"""Most changes recorded for one job; then the oldest is dropped."""
AHEAD_KEPT = 5
"""Most jobs that are recorded as ahead of one."""
SPARE = 1_000
"""Number of ended jobs that may be remembered before they are all removed."""


class ReasonHistory:
    """The pending reasons of queued jobs, since the engine process started."""

    def __init__(self) -> None:
        self._reasons: dict[JobId, list[Waited]] = {}
        self._next = 0
        self._looked_at: Millis | None = None

    def look(self, plan: Plan, queue: Mapping[JobId, Job], jobs: Mapping[JobId, Job], now: Millis) -> None:
        """Record, after a pass, the reasons of the next part of the queue. `jobs`: all jobs that the engine knows."""
        if self._looked_at is not None and now - self._looked_at < PAUSE_MS:
            return
        self._looked_at = now
        # Beginning again at the front, also when the queue has become shorter meanwhile.
        self._next = self._next if self._next < len(queue) else 0
        for job in islice(queue.values(), self._next, self._next + LOOKED_AT):
            self.note(plan, job, now)
        self._next += LOOKED_AT
        # Only when many have ended, since it copies the whole table.
        if len(self._reasons) > len(jobs) + SPARE:
            self._reasons = {job: waited for job, waited in self._reasons.items() if job in jobs}

    def note(self, plan: Plan, job: Job, now: Millis) -> None:
        """Record why the queued job does not start according to this plan, if the reason has changed."""
        reason = reason_of(plan, job)
        waited = self._reasons.setdefault(job.id, [])
        if not waited or reason_kind(waited[-1].reason) != reason_kind(reason):
            waited.append(Waited(now, reason, queue_front(plan, job.id, AHEAD_KEPT)))
            del waited[:-CHANGES_KEPT]

    def of(self, job: JobId) -> tuple[Waited, ...]:
        """Return a job's recorded reasons, oldest first."""
        return tuple(self._reasons.get(job, ()))


def reason_kind(reason: Reason | None) -> Hashable:
    """Return what identifies a reason. Its figures, such as usage, may change without a new record."""
    match reason:
        case LimitReached():
            return type(reason), reason.holder, reason.limit
        case NotEnoughFree():
            return type(reason), reason.resource
        case SchedulerReason():
            return type(reason), reason.code
        case None:
            return None
        case NoAlternative():
            return tuple(reason_kind(one) for one in reason.specs)
        case _:
            return type(reason)
