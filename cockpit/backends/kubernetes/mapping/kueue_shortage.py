"""Which quotas of Kueue are short for a job, by how much, and who uses them."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from cockpit.model.pod_reasons import FlavorObstacle, FlavorTried, QueueWaits, QuotaBorrower, QuotaInUse
from cockpit.sched.admission.forecast import AdmissionState
from cockpit.sched.admission.workloads import AdmissionWorkload, Cause, FlavorAttempt, Mode, Preempts, Shortage, Verdict

CODES = {Cause.QUOTA: "WaitingForQuota", Cause.NEVER: "ExceedsMaxQuota", Cause.NO_FLAVOR: "NoMatchingFlavor"}
"""Kueue's word for each cause."""
_GIB = 1024**3


def shortages(verdict: Verdict) -> tuple[Shortage, ...]:
    """Return the quotas that are short, each once."""
    return tuple({each.cell: each for attempt in verdict.attempts for each in attempt.shortages}.values())


def quotas_in_use(state: AdmissionState, workload: AdmissionWorkload, verdict: Verdict) -> tuple[QuotaInUse, ...]:
    """Return what is used of the quotas that are short, and by which queues beyond their own."""
    return tuple(
        QuotaInUse(
            queue=workload.queue,
            flavor=short.cell.flavor,
            resource=short.cell.resource,
            asked=shown(short.cell.resource, short.asked),
            free=shown(short.cell.resource, short.available),
            used=shown(short.cell.resource, state.quotas.used(workload.queue, short.cell)),
            nominal=shown(short.cell.resource, state.quotas.quota(workload.queue, short.cell).nominal),
            borrowers=tuple(_borrowers(state, workload, short)),
        )
        for short in shortages(verdict)
    )


def holders(state: AdmissionState, workload: AdmissionWorkload, verdict: Verdict) -> list[str]:
    """Return the keys of the jobs that use a quota that is short: those that may be preempted first, the lowest
    priority first, those of other queues that borrow before those of the own queue."""
    cells = {each.cell for each in shortages(verdict)}
    lenders = {workload.queue, *cohort_queues(state, workload.queue)}
    found = [each for each in state.admitted.values() if cells & each.usage.keys() and each.queue in lenders]
    victims = set(verdict.victims)

    def borrows(each: AdmissionWorkload) -> bool:
        return any(state.quotas.would_borrow(each.queue, cell, 0) for cell in cells)

    found.sort(key=lambda each: (each.key not in victims, not borrows(each), each.priority, each.key))
    return [each.key for each in found]


def predicted_reason(manager: str, queue: str, verdict: Verdict) -> QueueWaits | None:
    """Return the reason for which the queue would not admit the job now; None: it would."""
    if verdict.mode is Mode.FIT:
        return None
    if verdict.victims:
        count = len(verdict.victims)
        words = f"{count} job{'' if count == 1 else 's'} would be preempted for it"
        return QueueWaits(manager, queue, "WaitingForPreemptedWorkloads", words)
    assert verdict.cause is not None
    never = verdict.cause is not Cause.QUOTA
    return QueueWaits(manager, queue, CODES[verdict.cause], never=never, flavors=tuple(_flavors(verdict)))


def shown(resource: str, milli: int) -> str:
    """Return an amount as users write it: cards and CPUs as numbers, memory in GiB."""
    value = Fraction(milli, 1000)
    if resource == "memory" or resource.startswith("ephemeral-storage"):
        return f"{_number(value / _GIB)}Gi"
    return _number(value)


def _number(value: Fraction) -> str:
    return str(value.numerator) if value.denominator == 1 else f"{float(value):.2f}".rstrip("0").rstrip(".")


def _flavors(verdict: Verdict) -> Iterator[FlavorTried]:
    if verdict.undeclared:
        yield FlavorTried("", FlavorObstacle.NO_QUOTA, verdict.undeclared)
    for attempt in verdict.attempts:
        yield from _tried(attempt)


def _tried(attempt: FlavorAttempt) -> Iterator[FlavorTried]:
    if attempt.excluded:
        yield FlavorTried(attempt.flavor, FlavorObstacle.EXCLUDED, about=attempt.excluded)
    for short in attempt.shortages:
        resource = short.cell.resource
        if short.is_never:
            most = shown(resource, short.potential)
            yield FlavorTried(attempt.flavor, FlavorObstacle.TOO_LARGE, resource, most=most)
        else:
            missing = shown(resource, short.missing)
            yield FlavorTried(attempt.flavor, FlavorObstacle.SHORT, resource, missing=missing)


def cohort_queues(state: AdmissionState, queue: str) -> Iterator[str]:
    """Yield the other queues that share quota with this one."""
    root = [queue, *state.quotas.ancestors(queue)][-1]
    yield from (each for each in state.queues if root in state.quotas.ancestors(each) and each != queue)


def _borrowers(state: AdmissionState, workload: AdmissionWorkload, short: Shortage) -> Iterator[QuotaBorrower]:
    policy = state.queues[workload.queue].reclaim
    # Beyond its own quota a job takes nothing back.
    own = state.quotas.used(workload.queue, short.cell) + short.asked <= state.quotas.subtree(
        workload.queue, short.cell
    )
    for queue in cohort_queues(state, workload.queue):
        more = state.quotas.used(queue, short.cell) - state.quotas.quota(queue, short.cell).nominal
        if more > 0:
            reclaim = policy if own or state.queues[workload.queue].while_borrowing else Preempts.NEVER
            yield QuotaBorrower(queue, shown(short.cell.resource, more), str(reclaim))
