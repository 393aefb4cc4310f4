"""What is put in order: jobs, each once for every partition that it may run in."""

from __future__ import annotations

from collections.abc import Sequence

from cockpit.model.job import Job
from cockpit.model.spec import PriorityWord

PartitionEntry = tuple[Job, str]
"""A queued job, and one of the partitions that it may run in (empty: the cluster has none)."""
URGENCY = {PriorityWord.VERY_URGENT: 0, PriorityWord.URGENT: 1, PriorityWord.NORMAL: 2}


def partitions_of(job: Job) -> Sequence[str]:
    """Where it may run, as its entries name it."""
    return job.partitions or ("",)


def by_seniority(job: Job) -> tuple[int, int]:
    """The last tie-break: who was submitted first, or went back to the queue first."""
    return job.submitted_at if job.revoked_at is None else job.revoked_at, job.id
