"""What follows when one of the cluster's scripts fails on a node (JT-24)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.engine.decide import replica_ended
from cockpit.engine.service import drained
from cockpit.model import events
from cockpit.model.job import OCCUPYING, ExitStatus

if TYPE_CHECKING:
    from cockpit.engine.machine import Machine
    from cockpit.model.events import EventBody
    from cockpit.model.ids import Millis, NodeName, ReplicaId


def prolog_failed(machine: Machine, replica: ReplicaId, because: str, now: Millis) -> list[EventBody]:
    """The node is drained and the job queued again, whichever of its replicas run already; one that is being ended
    ends."""
    job = machine.state.jobs.get(replica.job)
    if job is None or job.attempt is None or job.attempt.number != replica.attempt or job.state not in OCCUPYING:
        return []
    node = next((part.node for part in job.attempt.placement if part.rank == replica.rank), None)
    if node is None:  # a worker that has left meanwhile
        return []
    out = drained(machine, node, because)
    if job.ending is not None:
        return [*out, *replica_ended(machine, replica, ExitStatus(lost=because), now)]
    return [*out, events.PrologFailed(job.id, replica.attempt, replica.rank, node, because)]


def epilog_failed(machine: Machine, node: NodeName, because: str) -> list[EventBody]:
    """The job has ended as it has; the node is drained."""
    return drained(machine, node, because)
