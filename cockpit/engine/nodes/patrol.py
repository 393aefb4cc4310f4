"""Watches jobs with `resume` while they run: faults of their nodes (EL-11), and slow iterations in their logs
(EL-13)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from cockpit.engine.nodes.service import drained
from cockpit.model import events
from cockpit.model.attempt import EndCause
from cockpit.model.catalogue import UserEntry
from cockpit.model.ids import Millis, NodeName
from cockpit.model.job import JobState
from cockpit.model.node import NodeState
from cockpit.model.resilience import OnSlow
from cockpit.sched.feasible import never_fits

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cockpit.engine.machine import Machine
    from cockpit.engine.state import ClusterState
    from cockpit.model.attempt import Slow
    from cockpit.model.events import EventBody
    from cockpit.model.ids import ReplicaId
    from cockpit.model.job import Job


def watched(machine: Machine) -> Iterator[Job]:
    """The jobs whose nodes are looked at from time to time."""
    return (job for each in machine.occupied if (job := machine.state.jobs.get(each)) is not None and _is_watched(job))


def faulty(machine: Machine, node: NodeName, because: str, now: Millis) -> list[EventBody]:
    """The node is drained, and every such job on it is asked to save what it has, to go on elsewhere."""
    out = drained(machine, node, because)
    for job in watched(machine):
        assert job.attempt is not None
        if any(part.node == node for part in job.attempt.placement):
            out += [
                events.FaultFound(job.id, job.attempt.number, node, because),
                _interrupted(job, EndCause.FAULT, now),
            ]
    return out


def slow(machine: Machine, replica: ReplicaId, slow_iterations: Slow, now: Millis) -> list[EventBody]:
    """Return the events of slow iterations; none if the job ignores them or they are known already. The job is moved if
    it asks for it, has a resume left, and other nodes exist."""
    job = machine.state.jobs.get(replica.job)
    if job is None or not _is_watched(job) or job.attempt is None or job.attempt.number != replica.attempt:
        return []
    performance = job.spec.resume.performance if job.spec.resume is not None else None
    if performance is None or job.attempt.slow is not None or slow_iterations.part <= performance.threshold:
        return []
    moves = performance.action is OnSlow.RESCHEDULE and job.retries < job.spec.most_retries
    elsewhere = _elsewhere(machine.state, job, slow_iterations.rank) if moves else ()
    address = _address(machine.state, job.submitter.name)
    fell = events.PerformanceFell(job.id, replica.attempt, slow_iterations, performance.threshold, address, elsewhere)
    return [fell, _interrupted(job, EndCause.SLOW, now)] if elsewhere else [fell]


def _is_watched(job: Job) -> bool:
    return job.state is JobState.RUNNING and job.spec.resume is not None and job.ending is None


def _interrupted(job: Job, cause: EndCause, now: Millis) -> events.EndingBegan:
    return events.EndingBegan(job.id, cause, Millis(now + 1000 * job.spec.end_grace_seconds))


def _elsewhere(state: ClusterState, job: Job, rank: int) -> tuple[NodeName, ...]:
    """The nodes in service of its pool without that of the slow replica; none, where it does not fit on these."""
    assert job.attempt is not None
    slow_one = next(part.node for part in job.attempt.placement if part.rank == rank)
    mine = job.spec.pool_nodes or [each.name for each in state.nodes.values() if each.pool == job.spec.pool]
    up = [each for name in mine if (each := state.nodes.get(NodeName(name))) and each.state is NodeState.UP]
    left = tuple(each.name for each in up if each.name != slow_one)
    fits = left and never_fits(replace(job.spec, pool_nodes=left), state.nodes) is None
    return left if fits else ()


def _address(state: ClusterState, user: str) -> str:
    entries = (each for each in state.catalogue.values() if isinstance(each, UserEntry) and each.name == user)
    return next((each.email for each in entries), "")
