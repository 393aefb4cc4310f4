"""Which effects follow an event. Each may be repeated after a crash without doing harm."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.engine.effects import (
    Effect,
    Force,
    KeepContainer,
    RecordEnded,
    RemoveContainer,
    SignalReplica,
    StartReplica,
)
from cockpit.model import events
from cockpit.model.ids import ReplicaId

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cockpit.engine.state import ClusterState
    from cockpit.model.job import Job


def effects_of(record: events.EventRecord, state: ClusterState) -> tuple[Effect, ...]:
    """What the world must do now that `record` has been applied to `state`."""
    match record.body:
        case events.JobPlaced(job=job):
            return tuple(starts_of(state.jobs[job]))
        case events.EndingBegan(job=job):
            ending = state.jobs[job].ending
            force = Force.KILL if ending is not None and ending.killed else Force.TERM
            return tuple(_signals(state.jobs[job], force))
        case events.GraceEnded(job=job):
            return tuple(_signals(state.jobs[job], Force.KILL))
        case events.JobEnded(job=job):
            return (*containers_after_end(state.jobs[job]), RecordEnded(job))
        case events.HoldExtended(job=job):
            return (RecordEnded(job),)
        case events.HoldEnded(job=job):
            return (*_removals(state.jobs[job]), RecordEnded(job))
    return ()


def starts_of(job: Job) -> Iterator[StartReplica]:
    """One start per replica of the current attempt."""
    attempt = job.attempt
    assert attempt is not None
    for allocation in attempt.placement:
        replica = ReplicaId(job.id, attempt.number, allocation.rank)
        yield StartReplica(replica, job.spec, job.submitter, allocation)


def containers_after_end(job: Job) -> Iterator[Effect]:
    """Keep an ended job's containers while they are held, else remove them."""
    if not job.kept:
        yield from _removals(job)
    elif job.attempt is not None:
        for replica in job.attempt.replica_ids(job.id):
            yield KeepContainer(replica, job.spec.debug_hold.cards)


def _removals(job: Job) -> Iterator[RemoveContainer]:
    if job.attempt is not None:
        yield from map(RemoveContainer, job.attempt.replica_ids(job.id))


def _signals(job: Job, force: Force) -> Iterator[SignalReplica]:
    assert job.attempt is not None
    for replica in job.attempt.replicas:
        if replica.ended_at is None:
            yield SignalReplica(ReplicaId(job.id, job.attempt.number, replica.rank), force)
