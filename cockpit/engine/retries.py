"""Jobs that begin again by themselves once they have failed: restarted (JT-18), or resumed (JT-17)."""

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
"""A start that fails by no fault of the job is tried so often in a row."""
FAILURES = frozenset({EndCause.EXIT, EndCause.LOST, EndCause.START_FAILED, EndCause.FAULT, EndCause.SLOW})
"""Ends that nobody wanted. A time limit or a deadline that is passed would be passed again."""
_LOSSES = frozenset({EndCause.LOST, EndCause.FAULT})
"""Those of them that are no doing of the command."""


def instead(job: Job, ended: events.JobEnded) -> events.JobEnded | events.JobRequeued:
    """The end as it is, or, of a job that has failed and has a retry left, that it waits again. A start that failed
    although nothing is wrong with the job is no failure of the job, and counts as no retry."""
    if _may_start_again(job, ended):
        return events.JobRequeued(job.id, EndCause.START_FAILED, ended.exit)
    if ended.state is not ERROR or ended.cause not in _retried(job.spec) or job.retries >= job.spec.most_retries:
        return ended
    return events.JobRequeued(job.id, ended.cause, ended.exit, job.retries + 1)


def _retried(spec: JobSpec) -> frozenset[EndCause]:
    """The ends after which it begins again by itself."""
    return _LOSSES if spec.restart is not None and spec.restart.lost_only else FAILURES


def _may_start_again(job: Job, ended: events.JobEnded) -> bool:
    """Nothing of it ran, by no fault of its own, and not for the last of its times in a row."""
    if ended.cause is not EndCause.START_FAILED or ended.exit is None or not ended.exit.unstarted:
        return False
    failed = takewhile(_never_began, reversed(job.earlier))
    return 1 + sum(1 for _ in failed) < MOST_STARTS


def _never_began(attempt: Attempt) -> bool:
    exits = (each.exit for each in attempt.replicas)
    return attempt.cause is EndCause.START_FAILED and any(each is not None and each.unstarted for each in exits)


def others_end_by(job: Job, now: Millis) -> Millis:
    """One replica has failed: when those that still run are killed. They have time where they do something with it."""
    saves = job.spec.resume is not None or bool(job.spec.hooks.after_end)
    return Millis(now + 1000 * job.spec.end_grace_seconds) if saves else now


def may_wait_again(job: Job) -> bool:
    """Whether a job that is being ended begins again afterwards, unless somebody stops it."""
    ending = job.ending
    if ending is None:
        return False
    return ending.requeue or (ending.cause in _retried(job.spec) and job.retries < job.spec.most_retries)


def resume_errors(cluster: Cluster, spec: JobSpec) -> Iterator[str]:
    """What the administrator allows no job."""
    if spec.resume is None:
        return
    if cluster.members:
        yield "resume: a fleet's jobs go on from no checkpoints; submit it to one of its clusters, or write restart"
    most, grace = cluster.max_resumes, cluster.max_grace_seconds
    if most is not None and spec.resume.max_resumes > most:
        yield f"resume.max_resumes: {spec.resume.max_resumes} is more than the {most} that this cluster allows"
    if grace is not None and spec.resume.grace_seconds > grace:
        yield f"resume.grace_period: {spec.resume.grace_seconds} s is more than the {grace} s that this cluster allows"
