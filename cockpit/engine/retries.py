"""Decides whether a failed job is requeued: to be restarted (JT-18), or resumed from a checkpoint (JT-17)."""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING

from cockpit.model import events
from cockpit.model.attempt import EndCause
from cockpit.model.ids import Millis
from cockpit.model.job import ERROR, Job

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cockpit.model.attempt import Attempt
    from cockpit.model.cluster import Cluster
    from cockpit.model.spec import JobSpec

MOST_STARTS = 4
"""How many starts in a row may fail without a fault of the job, before the job fails."""
FAILURES = frozenset({EndCause.EXIT, EndCause.LOST, EndCause.START_FAILED, EndCause.FAULT, EndCause.SLOW})
"""Causes of an end that a retry may overcome. A passed time limit or deadline is none: it would be passed again."""
_LOSSES = frozenset({EndCause.LOST, EndCause.FAULT})
"""Failures for which the job's command is not to blame."""


def instead(job: Job, ended: events.JobEnded) -> events.JobEnded | events.JobRequeued:
    """Return the event that follows the end of a job's last replica: `ended` itself, or a requeue in its place.

    1. A start that failed without a fault of the job is repeated, `MOST_STARTS` in a row, and uses up no retry.
    2. A failure that the job's policy retries requeues the job while it has a retry left.
    3. Otherwise the job has ended.
    """
    # `retry` stays 0 in this event, which leaves the job's count of retries as it is.
    if _may_start_again(job, ended):
        return events.JobRequeued(job.id, EndCause.START_FAILED, ended.exit)
    if ended.state is not ERROR or ended.cause not in retried_causes(job.spec) or job.retries >= job.spec.most_retries:
        return ended
    return events.JobRequeued(job.id, ended.cause, ended.exit, job.retries + 1)


def retried_causes(spec: JobSpec) -> frozenset[EndCause]:
    """Return the causes of an end after which the job is requeued."""
    return _LOSSES if spec.restart is not None and spec.restart.lost_only else FAILURES


def _may_start_again(job: Job, ended: events.JobEnded) -> bool:
    """Tell whether the start failed without a fault of the job, fewer than `MOST_STARTS` times in a row."""
    if ended.cause is not EndCause.START_FAILED or ended.exit is None or not ended.exit.unstarted:
        return False
    # only the last starts in a row: an attempt that ran shows that the nodes can start the job
    failed_before = takewhile(_never_began, reversed(job.earlier))
    return 1 + sum(1 for _ in failed_before) < MOST_STARTS


def _never_began(attempt: Attempt) -> bool:
    exits = (each.exit for each in attempt.replicas)
    return attempt.cause is EndCause.START_FAILED and any(each is not None and each.unstarted for each in exits)


def others_end_by(job: Job, now: Millis) -> Millis:
    """Return when the other replicas are killed after one has failed.

    They have the job's grace period if it can use the time, to write a checkpoint or for a hook; else none.
    """
    saves = job.spec.resume is not None or bool(job.spec.hooks.after_end)
    return Millis(now + 1000 * job.spec.end_grace_seconds) if saves else now


def may_wait_again(job: Job) -> bool:
    """Tell whether a job that is being ended is requeued afterwards, unless a user stops it."""
    ending = job.ending
    if ending is None:
        return False
    # Without `requeue` it is ended because a replica has failed, and `instead` decides about a retry at the last end.
    return ending.requeue or (ending.cause in retried_causes(job.spec) and job.retries < job.spec.most_retries)


def resume_errors(cluster: Cluster, spec: JobSpec) -> Iterator[str]:
    """Yield what in the job's resume settings exceeds the limits of the cluster's administrator."""
    if spec.resume is None:
        return
    if cluster.members:
        yield "resume: a fleet cannot resume jobs from checkpoints; submit it to one of its clusters, or use restart"
    most, grace = cluster.max_resumes, cluster.max_grace_seconds
    if most is not None and spec.resume.max_resumes > most:
        yield f"resume.max_resumes: {spec.resume.max_resumes} is more than the {most} that this cluster allows"
    if grace is not None and spec.resume.grace_seconds > grace:
        yield f"resume.grace_period: {spec.resume.grace_seconds} s is more than the {grace} s that this cluster allows"
