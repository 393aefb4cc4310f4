"""Explains why a queued job does not start: the first rule that stopped it in the last cycle, with its figures."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from cockpit.model.ids import JobId
from cockpit.model.job import Job
from cockpit.model.reasons import (
    Explanation,
    NoAlternative,
    NoEligibleNode,
    NotEvaluated,
    PartitionRefuses,
    Reason,
    never_starts,
)
from cockpit.sched.equivalence import partitions_of
from cockpit.sched.faults import described
from cockpit.sched.plan import Plan
from cockpit.sched.snapshot import Snapshot

_MOST_AHEAD = 10
NEVER = 1 << 62
"""A moment later than all known ones."""


def reason_of(plan: Plan, job: Job) -> Reason:
    """Return the reason of one job, by a few look-ups, for tables of many jobs. A job that came since the cycle is
    judged like the others of its class. A defect is noted in the plan and shown for this job alone."""
    faults = plan.scheduling_pass.faults
    try:
        reason = _reason_of(plan, job)
    except Exception as error:  # noqa: BLE001 - the rows of all other jobs are made all the same
        faults.setdefault(job.id, error)
        return NotEvaluated(described(error))
    return NotEvaluated(described(faults[job.id])) if job.id in faults else reason


def _reason_of(plan: Plan, job: Job) -> Reason:
    reasons = [(plan.refusals.reason(job, partition), partition) for partition in partitions_of(job)]
    each = [(reason, partition) for reason, partition in reasons if reason is not None]
    # in the partition without a reason the job may start, so a reason that never passes elsewhere would mislead
    if not each or (len(each) < len(reasons) and all(never_starts(reason) for reason, _ in each)):
        return NotEvaluated()
    return each[0][0] if len(each) == 1 else _first_to_start(plan, job, each)


def _first_to_start(plan: Plan, job: Job, each: Sequence[tuple[Reason, str]]) -> Reason:
    """Return the reason in the partition where the job can start first: reasons that pass come before those that an
    administrator has to end, and these before those that never end. Of reasons that pass, the one that passes soonest.
    """
    passing = [pair for pair in each if not (never_starts(pair[0]) or _is_down(pair[0]))]
    # different reasons that pass: only now is it worth computing when each of them does
    if len({reason for reason, _ in passing}) > 1:
        moments = [plan.refusals.soonest(job, partition, reason) for reason, partition in passing]
        known = [at if at is not None else NEVER for at in moments]
        return passing[known.index(min(known))][0]
    ranked = passing or [pair for pair in each if not never_starts(pair[0])] or each
    return ranked[0][0]


def _is_down(reason: Reason) -> bool:
    """Return whether the job waits for a partition or nodes to come back into service."""
    reasons = reason.specs if isinstance(reason, NoAlternative) else (reason,)
    return all(isinstance(one, PartitionRefuses | NoEligibleNode) for one in reasons)


def reasons_of(plan: Plan, job: Job) -> list[Reason]:
    """Return the reasons in all partitions of the job, the one that is shown first."""
    reasons = [reason_of(plan, job)]
    reasons += filter(None, (plan.refusals.reason(job, partition) for partition in partitions_of(job)))
    return [*dict.fromkeys(reasons)]


def explain(snapshot: Snapshot, plan: Plan, job_id: JobId) -> Explanation | None:
    """Return the full explanation for one queued job of the snapshot; None when it is not queued or starts by this
    plan."""
    starting = {start.job for start in plan.starts}
    waiting = {job.id: job for job in snapshot.queue if job.id not in starting}
    job = waiting.get(job_id)
    if job is None:
        return None
    # jobs that are held, or never start, are ahead in the table and not in time (SC-13)
    before = _jobs_ahead(plan, job_id, [*waiting])
    ahead = [other for other in before if other in waiting and _may_go_first(plan, waiting[other])]
    reserved_at = next((each.reserved_at for each in plan.reservations if each.job == job_id), None)
    return Explanation(
        job=job_id,
        reason=reason_of(plan, job),
        position=len(ahead) + 1,
        ahead=tuple(islice(ahead, _MOST_AHEAD)),
        reserved_at=reserved_at,
    )


def _may_go_first(plan: Plan, job: Job) -> bool:
    """Return whether the job may start at some time if nothing but resources changes; a job that cannot be judged
    may."""
    if job.held_by:
        return False
    try:
        return not plan.refusals.never(job)
    except Exception as error:  # noqa: BLE001 - the answers of all others are given
        plan.scheduling_pass.faults.setdefault(job.id, error)
        return True


def queue_front(plan: Plan, job_id: JobId, most: int) -> tuple[JobId, ...]:
    """Return the first jobs of the queue that were before a job in this plan, at most `most`, those included that the
    plan starts. Only the front of the queue is walked, so that this costs the same in a long queue."""
    front: dict[JobId, None] = {}
    for job, _ in islice(plan.priorities.order, 4 * most):
        if job.id == job_id or len(front) == most:
            break
        if _may_go_first(plan, job):
            front[job.id] = None
    return tuple(front)


def _jobs_ahead(plan: Plan, job_id: JobId, queue: list[JobId]) -> list[JobId]:
    """Return the jobs before it in the queue, nominated ones first. A job that came since the cycle is behind all
    others."""
    # nominated jobs come first in a pass, wherever the queue has them
    order = [*dict.fromkeys((*plan.refusals.nominated, *plan.order))]
    if job_id not in order:
        order += [each for each in queue if each not in set(order)]
    return order[: order.index(job_id)]
