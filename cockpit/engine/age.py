"""Computes since when a queued job's age counts towards its priority (Slurm's AccrueTime)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.model.cluster import PriorityFlag

if TYPE_CHECKING:
    from cockpit.model.cluster import Cluster
    from cockpit.model.ids import Millis
    from cockpit.model.job import Job


def accrues_from(job: Job, at: Millis, cluster: Cluster) -> Millis | None:
    """Return since when the job's age counts, at the moment `at`; None: it does not count yet.

    It counts while only free resources and priority keep the job from starting, and starts again from zero after a
    hold, as in Slurm. With ACCRUE_ALWAYS it counts from the submission on, whatever keeps the job from starting.
    """
    flags = cluster.priority.flags
    if flags and PriorityFlag.ACCRUE_ALWAYS in flags:
        return job.accrues_from or job.submitted_at
    return (job.accrues_from or at) if is_eligible(job, at) else None


def is_eligible(job: Job, at: Millis) -> bool:
    """Tell whether neither a hold, a dependency nor its begin time keeps the job from starting."""
    return not (job.held_by or job.waits_for or (job.spec.begin_at is not None and job.spec.begin_at > at))
