"""Before a job starts that goes on from its checkpoints, its nodes are checked (EL-10): it has its place meanwhile."""

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
    """Nothing is wrong with any of them; `found`: what they have, in words."""
    job = _prechecking(machine, replica)
    if job is None:
        return []
    if job.ending is not None:
        return [_over(job, job.ending)]
    return [events.PrecheckPassed(job.id, replica.attempt, found)]


def failed(machine: Machine, replica: ReplicaId, node: NodeName, because: str) -> list[EventBody]:
    """The node is drained, so that the job goes elsewhere, and it is queued again."""
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
    """It was to end meanwhile, and nothing of it has begun."""
    if ending.requeue:
        return events.JobRequeued(job.id, ending.cause)
    wanted = ending.cause in {EndCause.STOP, EndCause.PREEMPTED}
    return events.JobEnded(job.id, JobState.STOPPED if wanted else JobState.ERROR, ending.cause)
