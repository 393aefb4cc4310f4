"""Handles a cluster script (prolog or epilog) that failed on a node (JT-24)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.engine import workers
from cockpit.engine.decide import replica_ended
from cockpit.engine.nodes.service import drained
from cockpit.model import events
from cockpit.model.attempt import ExitStatus
from cockpit.model.job import OCCUPYING

if TYPE_CHECKING:
    from cockpit.engine.machine import Machine
    from cockpit.model.events import EventBody
    from cockpit.model.ids import Millis, NodeName, ReplicaId


def prolog_failed(machine: Machine, replica: ReplicaId, because: str, now: Millis) -> list[EventBody]:
    """Drain the node and queue the job again, whichever of its replicas run already. A job that is being ended ends,
    and an elastic job continues without the worker that was to start there."""
    job = machine.state.jobs.get(replica.job)
    if job is None or job.attempt is None or job.attempt.number != replica.attempt or job.state not in OCCUPYING:
        return []
    node = next((part.node for part in job.attempt.everybody if part.rank == replica.rank), None)
    if node is None:  # a worker that has left meanwhile
        return []
    out = drained(machine, node, because)
    if job.ending is not None:
        return [*out, *replica_ended(machine, replica, ExitStatus(lost=because), now)]
    if workers.can_do_without(job, replica.rank):
        ended = events.ReplicaEnded(job.id, replica.attempt, replica.rank, ExitStatus(lost=because))
        return [*out, ended, *workers.without(machine.state, job, (replica.rank,))]
    return [*out, events.PrologFailed(job.id, replica.attempt, replica.rank, node, because)]


def epilog_failed(machine: Machine, node: NodeName, because: str) -> list[EventBody]:
    """The job has ended as it has; the node is drained."""
    return drained(machine, node, because)
