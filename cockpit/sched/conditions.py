"""Conditions that a job itself carries, whatever the cluster's rules: a hold, other jobs, a moment to begin at."""

from __future__ import annotations

from cockpit.model.ids import JobId, Millis
from cockpit.model.job import Job
from cockpit.model.reasons import BeginsLater, DependencyNever, Held, Reason, WaitsForJob
from cockpit.model.spec import DependencyKind


def unmet(job: Job, now: Millis) -> Reason | None:
    """The first condition of its own that a queued job still waits for."""
    if job.held_by:
        return Held(job.held_by, job.held_since if job.held_since is not None else job.submitted_at)
    if job.never is not None:
        return DependencyNever(_kind_on(job, job.never), job.never)
    if job.waits_for:
        first = job.waits_for[0]
        return WaitsForJob(first.kind, first.job, len(job.waits_for) - 1)
    if job.spec.begin_at is not None and job.spec.begin_at > now:
        return BeginsLater(job.spec.begin_at)
    return None


def _kind_on(job: Job, other: JobId) -> DependencyKind:
    """How the job depends on the other; an array is named by its own id, so its task may not be found by it."""
    kinds = [each.kind for each in job.waits_for if each.job == other] or [each.kind for each in job.waits_for]
    return kinds[0] if kinds else DependencyKind.AFTER_OK
