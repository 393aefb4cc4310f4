"""Which effects follow an event. Each may be repeated after a crash without doing harm."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.engine.effects import (
    Effect,
    Force,
    FreezeReplica,
    KeepContainer,
    RecordEnded,
    RemoveContainer,
    SignalReplica,
    StartReplica,
    ThawReplica,
)
from cockpit.model import events
from cockpit.model.ids import ReplicaId

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cockpit.engine.state import ClusterState
    from cockpit.model.job import Job


_EFFECTIVE = (
    events.JobPlaced,
    events.EndingBegan,
    events.GraceEnded,
    events.JobSuspended,
    events.JobResumed,
    events.JobRequeued,
    events.JobEnded,
    events.HoldEnded,
    events.HoldExtended,
)


def effects_of(record: events.EventRecord, state: ClusterState) -> tuple[Effect, ...]:
    """What the world must do now that `record` has been applied to `state`."""
    effects: tuple[Effect, ...] = ()
    if not isinstance(record.body, _EFFECTIVE):
        return effects
    match record.body:
        case events.JobPlaced(job=job):
            effects = tuple(starts_of(state.jobs[job]))
        case events.EndingBegan(job=job) | events.GraceEnded(job=job):
            effects = tuple(signals_of(state.jobs[job]))
        case events.JobSuspended(job=job):
            effects = tuple(map(FreezeReplica, live_replicas(state.jobs[job])))
        case events.JobResumed(job=job):
            effects = tuple(map(ThawReplica, live_replicas(state.jobs[job])))
        case events.JobRequeued(job=job):
            effects = tuple(containers_after_end(state.jobs[job]))
        case events.JobEnded(job=job) | events.HoldEnded(job=job):
            effects = (*containers_after_end(state.jobs[job]), RecordEnded(job))
        case events.HoldExtended(job=job):
            effects = (RecordEnded(job),)
    return effects


def starts_of(job: Job) -> Iterator[StartReplica]:
    """One start per replica of the current attempt."""
    attempt = job.attempt
    assert attempt is not None
    for allocation in attempt.placement:
        replica = ReplicaId(job.id, attempt.number, allocation.rank)
        yield StartReplica(replica, job.spec, job.submitter, allocation)


def containers_after_end(job: Job) -> Iterator[Effect]:
    """Keep an ended job's containers while they are held, else remove them."""
    for replica in job.attempt.replica_ids(job.id) if job.attempt is not None else ():
        yield KeepContainer(replica, job.spec.debug_hold.cards) if job.kept else RemoveContainer(replica)


def live_replicas(job: Job) -> Iterator[ReplicaId]:
    """Those of the current attempt that have not ended."""
    attempt = job.attempt
    for replica in attempt.replicas if attempt is not None else ():
        if replica.ended_at is None:
            yield ReplicaId(job.id, attempt.number if attempt is not None else 0, replica.rank)


def signals_of(job: Job) -> Iterator[SignalReplica]:
    """Ask or force the replicas that still run to end, for a job that is being ended."""
    ending = job.ending
    assert ending is not None
    force = Force.KILL if ending.killed else Force.TERM
    for replica in live_replicas(job):
        yield SignalReplica(replica, force)
