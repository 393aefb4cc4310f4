"""Which reasons a job has waited for, and since when: what the strip over its waiting time is made of.

The journal has what happened, not why something did not. So after a scheduling pass some of the queue is looked at, in
turns, and a job's reason is noted when it is another than before. Bounded in every direction: how many jobs a pass is
looked at for, how many changes are kept of a job, and only of jobs that the engine still knows.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from cockpit.model.reasons import LimitReached, NoAlternative, NotEnoughFree, Told, Waited
from cockpit.sched.explain import reason_of

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    from cockpit.model.ids import JobId, Millis
    from cockpit.model.job import Job
    from cockpit.model.reasons import Reason
    from cockpit.sched.plan import Plan

LOOKED_AT = 200
"""Jobs a time: some milliseconds."""
PAUSE_MS = 1_000
"""Between one look and the next."""
CHANGES_KEPT = 40
"""Of one job; then the oldest goes."""
SPARE = 1_000
"""Jobs that may be remembered beyond those that are there, before it is looked who has gone."""


class ReasonHistory:
    """Since the engine began."""

    def __init__(self) -> None:
        self._of: dict[JobId, list[Waited]] = {}
        self._next = 0
        self._looked_at: Millis | None = None

    def look(self, plan: Plan, queue: Mapping[JobId, Job], jobs: Mapping[JobId, Job], now: Millis) -> None:
        """After a pass: the next of the queue in turn; `jobs` are all that the engine knows."""
        if self._looked_at is not None and now - self._looked_at < PAUSE_MS:
            return
        self._looked_at = now
        self._next = self._next if self._next < len(queue) else 0
        for job in islice(queue.values(), self._next, self._next + LOOKED_AT):
            self.note(plan, job, now)
        self._next += LOOKED_AT
        if len(self._of) > len(jobs) + SPARE:
            self._of = {job: waited for job, waited in self._of.items() if job in jobs}

    def note(self, plan: Plan, job: Job, now: Millis) -> None:
        """What stops the queued job by this plan, where that is something else than before."""
        reason = reason_of(plan, job)
        waited = self._of.setdefault(job.id, [])
        if not waited or reason_kind(waited[-1].reason) != reason_kind(reason):
            waited.append(Waited(now, reason))
            del waited[:-CHANGES_KEPT]

    def of(self, job: JobId) -> tuple[Waited, ...]:
        """The oldest first; nothing where nobody has looked."""
        return tuple(self._of.get(job, ()))


def reason_kind(reason: Reason | None) -> Hashable:
    """Other nodes that come nearest, or another figure of use, are the same reason still."""
    match reason:
        case LimitReached():
            return type(reason), reason.holder, reason.limit
        case NotEnoughFree():
            return type(reason), reason.resource
        case Told():
            return type(reason), reason.code
        case None:
            return None
        case NoAlternative():
            return tuple(reason_kind(one) for one in reason.specs)
        case _:
            return type(reason)
