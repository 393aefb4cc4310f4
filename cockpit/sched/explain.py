"""Why a queued job does not start: the first rule that stopped it in the cycle just ended, with data."""

from __future__ import annotations

from itertools import islice

from cockpit.model.ids import JobId
from cockpit.model.job import Job
from cockpit.model.reasons import Explanation, Held, NotEvaluated, Reason
from cockpit.sched.plan import Plan
from cockpit.sched.snapshot import Snapshot

_MOST_AHEAD = 10


def reason_of(plan: Plan, job: Job) -> Reason:
    """One lookup, for rows of many jobs. A job that came since the cycle is judged as the others of its shape."""
    if job.held_by:
        return Held(job.held_by, job.held_since if job.held_since is not None else job.submitted_at)
    return plan.refusals.get(plan.index.book.of(job)) or NotEvaluated()


def explain(snapshot: Snapshot, plan: Plan, job_id: JobId) -> Explanation | None:
    """The whole answer for one queued job of the snapshot; None when it is not queued or starts by this plan."""
    starting = {start.job for start in plan.starts}
    waiting = [job for job in snapshot.queue if job.id not in starting]
    job = next((job for job in waiting if job.id == job_id), None)
    if job is None:
        return None
    before = waiting[: waiting.index(job)]
    ahead = [other.id for other in before if not other.held_by]
    reserved_at = next((each.reserved_at for each in plan.reservations if each.job == job_id), None)
    return Explanation(
        job=job_id,
        reason=reason_of(plan, job),
        position=len(ahead) + 1,
        ahead=tuple(islice(ahead, _MOST_AHEAD)),
        reserved_at=reserved_at,
    )
