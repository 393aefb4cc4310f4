"""Tests the conditions that a job itself has, whatever the cluster's rules: a hold, dependencies, a begin time."""

from __future__ import annotations

from cockpit.model.ids import JobId, Millis
from cockpit.model.job import Job
from cockpit.model.reasons import BeginsLater, DependencyNever, Held, Reason, WaitsForJob
from cockpit.model.spec import JobSpec


def is_conditional(spec: JobSpec) -> bool:
    """Return whether a job with this spec may wait for conditions of its own."""
    return spec.begin_at is not None or spec.suspension.scheduling or bool(spec.reservation)


def is_unhindered(job: Job) -> bool:
    """Return whether nothing that happened to the job keeps it from starting, whatever its spec says."""
    return not (job.held_by or job.waits_for or job.never is not None or job.rests_until is not None)


def first_unmet_condition(job: Job, now: Millis) -> Reason | None:
    """Return the first condition of its own for which a queued job still waits; None: there is none."""
    if job.held_by:
        return Held(job.held_by, job.held_since if job.held_since is not None else job.submitted_at)
    if job.never is not None:
        return _never(job, job.never)
    if job.waits_for:
        first = job.waits_for[0]
        return WaitsForJob(first.kind, first.job, len(job.waits_for) - 1, first.task)
    if job.spec.begin_at is not None and job.spec.begin_at > now:
        return BeginsLater(job.spec.begin_at)
    if job.rests_until is not None and job.rests_until > now:
        return BeginsLater(job.rests_until)
    return None


def _never(job: Job, ended: JobId) -> DependencyNever:
    """Return the reason for a dependency that can never be satisfied; it is the first one in the list."""
    first = job.waits_for[0]
    return DependencyNever(first.kind, ended if first.task is None else first.job, first.task)
