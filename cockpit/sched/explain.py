"""Why a queued job does not start: the first rule that stopped it in the cycle just ended, with data."""

from __future__ import annotations

from itertools import islice

from cockpit.model.ids import JobId
from cockpit.model.job import Job
from cockpit.model.reasons import (
    BehindHead,
    Explanation,
    NodesReserved,
    NotEvaluated,
    Reason,
    WouldDelay,
)
from cockpit.sched.alternatives import is_of_room
from cockpit.sched.entries import partitions_of
from cockpit.sched.faults import described
from cockpit.sched.plan import Plan
from cockpit.sched.snapshot import Snapshot

_MOST_AHEAD = 10
_OF_OTHERS = (WouldDelay, NodesReserved, BehindHead)


def reason_of(plan: Plan, job: Job) -> Reason:
    """Some lookups, for rows of many jobs. A job that came since the cycle is judged as the others of its request. A
    defect met here is noted in the plan and told of this job alone."""
    faults = plan.round.faults
    try:
        reason = _reason_of(plan, job)
    except Exception as error:  # noqa: BLE001 - the rows of all other jobs are made all the same
        faults.setdefault(job.id, error)
        return NotEvaluated(described(error))
    return NotEvaluated(described(faults[job.id])) if job.id in faults else reason


def _reason_of(plan: Plan, job: Job) -> Reason:
    told = (plan.refusals.reason(job, partition) for partition in partitions_of(job))
    reasons = [reason for reason in told if reason is not None]
    return next((each for each in reasons if _passes(each)), next(iter(reasons), NotEvaluated()))


def _passes(reason: Reason) -> bool:
    """When others make room: of several partitions, one where this is all is the one that counts."""
    return isinstance(reason, _OF_OTHERS) or is_of_room(reason)


def explain(snapshot: Snapshot, plan: Plan, job_id: JobId) -> Explanation | None:
    """The whole answer for one queued job of the snapshot; None when it is not queued or starts by this plan."""
    starting = {start.job for start in plan.starts}
    waiting = {job.id: job for job in snapshot.queue if job.id not in starting}
    job = waiting.get(job_id)
    if job is None:
        return None
    before = _before(plan, job_id, [*waiting])
    ahead = [other for other in before if other in waiting and not waiting[other].held_by]
    reserved_at = next((each.reserved_at for each in plan.reservations if each.job == job_id), None)
    return Explanation(
        job=job_id,
        reason=reason_of(plan, job),
        position=len(ahead) + 1,
        ahead=tuple(islice(ahead, _MOST_AHEAD)),
        reserved_at=reserved_at,
    )


def _before(plan: Plan, job_id: JobId, queue: list[JobId]) -> list[JobId]:
    """The jobs served before it, first those that were promised room; one that came since the cycle is behind all those
    that were there."""
    order = [*dict.fromkeys((*plan.refusals.promised, *plan.order))]
    if job_id not in order:
        order += [each for each in queue if each not in set(order)]
    return order[: order.index(job_id)]
