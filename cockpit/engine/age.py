"""Since when a queued job's age counts towards its priority (Slurm's AccrueTime)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.model.cluster import PriorityFlag

if TYPE_CHECKING:
    from cockpit.model.cluster import Cluster
    from cockpit.model.ids import Millis
    from cockpit.model.job import Job


def accrues_from(job: Job, at: Millis, cluster: Cluster) -> Millis | None:
    """The moment for the job as it stands at `at`; None: its age does not count yet.

    It counts while nothing but room and priority holds the job back, and begins anew after a hold, as in Slurm. With
    ACCRUE_ALWAYS it counts from the submission on, whatever holds the job back.
    """
    flags = cluster.priority.flags
    if flags and PriorityFlag.ACCRUE_ALWAYS in flags:
        return job.accrues_from or job.submitted_at
    return (job.accrues_from or at) if is_eligible(job, at) else None


def is_eligible(job: Job, at: Millis) -> bool:
    """Nothing but room, priority and the cluster's rules holds it back."""
    return not (job.held_by or job.waits_for or (job.spec.begin_at is not None and job.spec.begin_at > at))
