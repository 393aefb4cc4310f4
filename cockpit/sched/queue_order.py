"""The entries of the queue before they are ordered: each job once for every partition in which it may run."""

from __future__ import annotations

from collections.abc import Sequence

from cockpit.model.job import Job
from cockpit.model.spec import PriorityWord

PartitionEntry = tuple[Job, str]
"""A queued job, and one of the partitions that it may run in (empty: the cluster has none)."""
URGENCY = {PriorityWord.VERY_URGENT: 0, PriorityWord.URGENT: 1, PriorityWord.NORMAL: 2}


def partitions_of(job: Job) -> Sequence[str]:
    """The partitions in which the job may run; one empty name where the cluster has none."""
    return job.partitions or ("",)


def by_seniority(job: Job) -> tuple[int, int]:
    """The sort key of the last tie-break: the time of submission, or of the return to the queue, then the job id."""
    return job.submitted_at if job.revoked_at is None else job.revoked_at, job.id
