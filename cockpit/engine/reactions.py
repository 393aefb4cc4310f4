"""Computes the effects that follow an event. After a crash they are repeated, so that twice must be like once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.engine.effects import (
    CheckNodes,
    Effect,
    FreezeReplica,
    KeepContainer,
    RecordEnded,
    RemoveContainer,
    SendAlert,
    SignalKind,
    SignalReplica,
    StageReplica,
    StartReplica,
    ThawReplica,
    WriteWorkersFile,
)
from cockpit.model import events
from cockpit.model.attempt import BELOW_MIN_CAUSES
from cockpit.model.ids import ReplicaId
from cockpit.model.job import JobState
from cockpit.model.resilience import ReclaimSignal
from cockpit.model.staging import is_staged

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from cockpit.engine.state import ClusterState
    from cockpit.model.job import Job


def effects_of(record: events.EventRecord, state: ClusterState) -> tuple[Effect, ...]:
    """Return the effects to carry out, in order, now that `record` has been applied to `state`."""
    reaction = _REACTIONS.get(type(record.body))
    return tuple(reaction(state.jobs[record.body.job])) if reaction is not None else ()  # type: ignore[union-attr] # all of a job


def starts_of(job: Job) -> list[StartReplica]:
    """Return a start for each present replica of the current attempt."""
    attempt = job.attempt
    assert attempt is not None
    return [
        StartReplica(ReplicaId(job.id, attempt.number, each.rank), job.spec, job.submitter, each)
        for each in attempt.whole_placement
    ]


def stages_of(job: Job) -> list[StageReplica]:
    """Return a staging for each present replica of the current attempt."""
    return [StageReplica(each) for each in starts_of(job)]


def checks_of(job: Job) -> list[CheckNodes]:
    """Return the check of all nodes of the current attempt, under the name of its first replica."""
    assert job.attempt is not None
    placement = job.attempt.placement
    return [CheckNodes(ReplicaId(job.id, job.attempt.number, placement[0].rank), placement)]


def _first_effects(job: Job) -> Sequence[Effect]:
    """Return the first effects of an attempt, or those after its checks: check, stage or start."""
    if job.state is JobState.PRECHECKING:
        return checks_of(job)
    return stages_of(job) if job.state is JobState.STAGING else starts_of(job)


def _staged(job: Job) -> Sequence[Effect]:
    # Only the event of the last replica changes the state; those of the others start nothing yet.
    return starts_of(job) if job.state in {JobState.STARTING, JobState.RESUMING} else ()


def containers_after_end(job: Job) -> list[Effect]:
    """Return the effects that keep an ended job's containers if it has a debug hold, and else remove them."""
    # Workers that have left are not among these: their containers went with them (`_after_leaving`).
    replicas = job.attempt.replica_ids(job.id) if job.attempt is not None else ()
    if job.kept:
        return [KeepContainer(each, job.spec.debug_hold.cards, job.held_until) for each in replicas]
    return [RemoveContainer(each) for each in replicas]


def live_replicas(job: Job) -> Iterator[ReplicaId]:
    """Yield the ids of the current attempt's present replicas that have not ended."""
    if job.attempt is not None:
        # The end of a worker that left while it did not answer is never reported: its container goes with it.
        for replica in job.attempt.present_replicas:
            if replica.ended_at is None:
                yield ReplicaId(job.id, job.attempt.number, replica.rank)


def _ended(job: Job) -> list[Effect]:
    return [*containers_after_end(job), RecordEnded(job.id)]


def signals_of(job: Job) -> Iterator[SignalReplica]:
    """Yield the signals to the running replicas of a job that is being ended: TERM, or KILL after its grace period."""
    ending = job.ending
    assert ending is not None
    force = SignalKind.KILL if ending.killed else SignalKind.TERM
    for replica in live_replicas(job):
        yield SignalReplica(replica, force)


def _early_signals(job: Job) -> Iterator[SignalReplica]:
    """Yield the early signal to the container of the batch script, which is rank 0 and passes the signal on."""
    for replica in live_replicas(job):
        if replica.rank == 0:
            yield SignalReplica(replica, SignalKind.EARLY)


def _wants_sigterm(job: Job) -> bool:
    """Tell whether the job's workers get SIGTERM as soon as they are recalled."""
    return job.spec.elastic is not None and job.spec.elastic.reclaim_signal is ReclaimSignal.SIGTERM


def recalls_of(job: Job) -> Iterator[SignalReplica]:
    """Yield the signals to recalled workers: KILL after their grace period, and TERM before if the job wants it."""
    assert job.attempt is not None
    asks = _wants_sigterm(job)
    running = {each.rank for each in job.attempt.present_replicas if each.ended_at is None}
    for each in job.leaving:
        if each.rank in running and (each.killed or asks):
            force = SignalKind.KILL if each.killed else SignalKind.TERM
            yield SignalReplica(ReplicaId(job.id, job.attempt.number, each.rank), force)


def _starts_of_new(job: Job) -> Iterator[Effect]:
    """Yield the starts of added workers, and the notices to the others.

    A job grows only while all its replicas run, so that those which have not started are the added ones.
    """
    assert job.attempt is not None
    started = {each.rank for each in job.attempt.replicas if each.started_at is not None}
    yield from (start for start in starts_of(job) if start.replica.rank not in started)
    yield from (each for each in notices_to_workers(job) if each.replica.rank in started)


def _after_recall(job: Job) -> Iterator[Effect]:
    """Yield the notices to all workers, and the signals to those recalled last: earlier ones got theirs already."""
    yield from notices_to_workers(job)
    last = {each.rank for each in job.leaving if each.at == max(other.at for other in job.leaving)}
    yield from (signal for signal in recalls_of(job) if signal.replica.rank in last)


def _after_leaving(job: Job) -> Iterator[Effect]:
    """Yield the removals of the containers of workers that left last, and the notices to the others."""
    attempt = job.attempt
    assert attempt is not None
    # The event that lets workers leave gives its own time to both, so that earlier leavers do not match.
    gone = (each for each in attempt.replicas if each.left_at is not None and each.left_at == attempt.resized_at)
    yield from (RemoveContainer(ReplicaId(job.id, attempt.number, each.rank)) for each in gone)
    # The worker that left may have been the last one whose staging the others waited for.
    if is_staged(job.spec):
        yield from _staged(job)
    yield from notices_to_workers(job)


def _after_replacement(job: Job) -> Iterator[Effect]:
    yield from _after_leaving(job)
    assert job.attempt is not None
    started = {each.rank for each in job.attempt.replicas if each.started_at is not None}
    yield from (start for start in starts_of(job) if start.replica.rank not in started)


def _kills(job: Job) -> Iterator[SignalReplica]:
    return signals_of(job) if job.ending is not None else recalls_of(job)


def notices_to_workers(job: Job) -> Iterator[WriteWorkersFile]:
    """Yield a notice to each running replica of an elastic job, recalled ones included; none for any other job."""
    return map(WriteWorkersFile, live_replicas(job) if job.spec.elastic is not None else ())


def _ends(job: Job) -> Iterator[Effect]:
    """Yield the effects that begin to end a job: notices first, so that workers may save their work before a signal.

    The workers of an elastic job that is evicted get only the notice, unless the job wants SIGTERM too.
    """
    yield from notices_to_workers(job)
    assert job.ending is not None
    # SIGTERM ends a framework that does not handle it at once, before it could write the checkpoint of the notice.
    by_notice = job.spec.suspends and job.ending.cause in BELOW_MIN_CAUSES
    if job.ending.killed or not by_notice or _wants_sigterm(job):
        yield from signals_of(job)


def _freezes(job: Job) -> Iterator[FreezeReplica]:
    return map(FreezeReplica, live_replicas(job))


def _thaws(job: Job) -> Iterator[ThawReplica]:
    return map(ThawReplica, live_replicas(job))


def _alerts(job: Job) -> list[SendAlert]:
    return [SendAlert(job.id, job.alerts[-1])]


_REACTIONS: dict[type, Callable[[Job], Iterable[Effect]]] = {
    events.JobPlaced: _first_effects,
    events.PrecheckPassed: _first_effects,
    events.PrecheckFailed: containers_after_end,
    events.ReplicaStaged: _staged,
    # All starts and not those of this member alone: with the last placement the whole gang may begin.
    events.MemberPlaced: starts_of,
    events.BindingGivenUp: containers_after_end,
    events.PrologFailed: containers_after_end,
    events.EndingBegan: _ends,
    events.WorkersAdded: _starts_of_new,
    events.WorkersRecalled: _after_recall,
    events.WorkersLeft: _after_leaving,
    events.WorkerReplaced: _after_replacement,
    events.GraceEnded: _kills,
    events.AlertRaised: _alerts,
    events.JobWarned: _early_signals,
    events.JobSuspended: _freezes,
    events.JobResumed: _thaws,
    events.JobRequeued: containers_after_end,
    events.JobEnded: _ended,
    # Recorded again, here and below, since `held_until` is part of the record.
    events.HoldEnded: _ended,
    events.HoldExtended: _ended,
}
"""The effects of each type of event, given its job. Types that are not here, such as events of no job, have none."""
