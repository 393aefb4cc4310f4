"""Checks the nodes of a job with `resume` before it starts (EL-10); meanwhile the job keeps its placement."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.engine.nodes.service import drained
from cockpit.model import events
from cockpit.model.attempt import EndCause
from cockpit.model.job import JobState

if TYPE_CHECKING:
    from cockpit.engine.machine import Machine
    from cockpit.model.attempt import Ending
    from cockpit.model.events import EventBody
    from cockpit.model.ids import NodeName, ReplicaId
    from cockpit.model.job import Job


def passed(machine: Machine, replica: ReplicaId, found: str) -> list[EventBody]:
    """Return the events after checks without findings. `found`: what the nodes have, as text."""
    job = _prechecking(machine, replica)
    if job is None:
        return []
    if job.ending is not None:
        return [_over(job, job.ending)]
    return [events.PrecheckPassed(job.id, replica.attempt, found)]


def failed(machine: Machine, replica: ReplicaId, node: NodeName, because: str) -> list[EventBody]:
    """Return the events after a failed check: the node is drained, so that the job starts elsewhere, and the job is
    queued again."""
    job = _prechecking(machine, replica)
    if job is None:
        return []
    out = drained(machine, node, because)
    if job.ending is not None:
        return [*out, _over(job, job.ending)]
    return [*out, events.PrecheckFailed(job.id, replica.attempt, node, because)]


def _prechecking(machine: Machine, replica: ReplicaId) -> Job | None:
    job = machine.state.jobs.get(replica.job)
    if job is None or job.state is not JobState.PRECHECKING or job.attempt is None:
        return None
    return job if job.attempt.number == replica.attempt else None


def _over(job: Job, ending: Ending) -> EventBody:
    """Return the end of a job that was to end during its checks, before anything of it had started."""
    if ending.requeue:
        return events.JobRequeued(job.id, ending.cause)
    wanted = ending.cause in {EndCause.STOP, EndCause.PREEMPTED}
    return events.JobEnded(job.id, JobState.STOPPED if wanted else JobState.ERROR, ending.cause)
