"""Applies the events of elastic jobs' workers to the state: workers are added, recalled, replaced, and leave."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from cockpit.engine.apply.attempts import all_are_staged, first_state
from cockpit.engine.apply.rules import Rules, change, ledger, since, usage_rules, write_down
from cockpit.model import events
from cockpit.model.attempt import Attempt, Grounds, Leaving, Replica
from cockpit.model.job import Job
from cockpit.model.steps import Interruption, Resumption, RingChange
from cockpit.sched.priority import usage

if TYPE_CHECKING:
    from cockpit.engine.state import ClusterState

RULES = Rules()
_OF_THE_NODE = frozenset({Grounds.RECLAIM, Grounds.PRICE, Grounds.PRESSURE})
"""Grounds of a recall that no other job has."""


@RULES.of(events.WorkersAdded)
def _(body: events.WorkersAdded, state: ClusterState, record: events.EventRecord) -> None:
    job = state.jobs[body.job]
    attempt = _in_new_ring(_attempt_so_far(state, record, job), record, Interruption.GREW)
    added = [Replica(rank=part.rank) for part in body.placement]
    attempt = replace(
        attempt,
        placement=(*attempt.placement, *body.placement),
        replicas=(*attempt.replicas, *added),
        billing=body.billing,
    )
    change(state, record, body.job, attempt=attempt)


@RULES.of(events.WorkersRecalled)
def _(body: events.WorkersRecalled, state: ClusterState, record: events.EventRecord) -> None:
    """Add the workers to those that are leaving. Without a grace period they count as killed at once."""
    killed = body.kill_at <= record.at
    leaving = [
        Leaving(
            rank=rank, at=record.at, kill_at=body.kill_at, for_job=body.for_job, grounds=body.grounds, killed=killed
        )
        for rank in body.ranks
    ]
    job = state.jobs[body.job]
    assert job.attempt is not None
    cause = Interruption.RECLAIMED if body.grounds in _OF_THE_NODE else Interruption.PREEMPTED
    attempt = _in_new_ring(replace(job.attempt, workers_version=record.seq), record, cause)
    change(state, record, body.job, attempt=attempt, leaving=(*job.leaving, *leaving))


@RULES.of(events.WorkersLeft)
def _(body: events.WorkersLeft, state: ClusterState, record: events.EventRecord) -> None:
    job = state.jobs[body.job]
    attempt = _attempt_so_far(state, record, job)
    # The placement loses the workers, but their replicas stay in the list, since ranks are positions in it.
    places = attempt.places
    attempt = replace(
        attempt,
        placement=tuple([part for part in attempt.placement if part.rank not in body.ranks]),
        replicas=tuple(
            [
                replace(each, left_at=record.at, had=places[each.rank], blocked=body.because)
                if each.rank in body.ranks
                else each
                for each in attempt.replicas
            ]
        ),
        billing=body.billing,
    )
    # Those that were recalled are out of the ring since then.
    if not {*body.ranks} <= {each.rank for each in job.leaving}:
        attempt = _in_new_ring(attempt, record, Interruption.WORKER_FAILED)
    leaving = tuple([each for each in job.leaving if each.rank not in body.ranks])
    # The worker that left may have been the last one whose files the others waited for.
    after = first_state(job.spec, job.earlier) if all_are_staged(job.state, attempt) else job.state
    entered = since(job, after, record.at)
    change(state, record, body.job, attempt=attempt, leaving=leaving, state=after, state_since=entered)


@RULES.of(events.NodeUnblocked)
def _(body: events.NodeUnblocked, state: ClusterState, record: events.EventRecord) -> None:
    attempt = state.jobs[body.job].attempt
    assert attempt is not None
    # Several workers may have failed there one after the other; the reasons stay with them.
    lifted = {each.rank for each in attempt.blocking if each.had is not None and each.had.node == body.node}
    replicas = tuple(
        [replace(each, unblocked_at=record.at) if each.rank in lifted else each for each in attempt.replicas]
    )
    change(state, record, body.job, attempt=replace(attempt, replicas=replicas))


@RULES.of(events.WorkerReplaced)
def _(body: events.WorkerReplaced, state: ClusterState, record: events.EventRecord) -> None:
    job = state.jobs[body.job]
    attempt = _attempt_so_far(state, record, job)
    # The new worker takes over node, cards and share of the old one, so that the scheduler is not involved.
    had = attempt.places[body.rank]
    restarts = attempt.replicas[body.rank].restarts + 1
    gone = [replace(each, left_at=record.at, had=had) if each.rank == body.rank else each for each in attempt.replicas]
    attempt = replace(
        attempt,
        placement=(
            *(part for part in attempt.placement if part.rank != body.rank),
            replace(had, rank=body.by),
        ),
        replicas=(*gone, Replica(rank=body.by, restarts=restarts)),
    )
    attempt = _in_new_ring(attempt, record, Interruption.WORKER_FAILED)
    change(state, record, body.job, attempt=attempt, retries=body.retry)


@RULES.of(events.TrainingResumed)
def _(body: events.TrainingResumed, state: ClusterState, record: events.EventRecord) -> None:
    attempt = state.jobs[body.job].attempt
    assert attempt is not None
    went_on = Resumption(
        at=record.at,
        cause=body.cause,
        workers_version=body.workers_version,
        reached=body.reached,
        resumed=body.resumed,
    )
    change(state, record, body.job, attempt=replace(attempt, resumptions=(*attempt.resumptions, went_on)))


def _in_new_ring(attempt: Attempt, record: events.EventRecord, cause: Interruption) -> Attempt:
    """Return the attempt with a note that other workers train together from now on."""
    return replace(attempt, ring=RingChange(version=record.seq, at=record.at, cause=cause))


def _attempt_so_far(state: ClusterState, record: events.EventRecord, job: Job) -> Attempt:
    """Charge what the job has used so far, and return its attempt as resized now: from now on it uses more or less."""
    assert job.attempt is not None
    write_down(state, usage.with_usage_of(ledger(state), usage_rules(state), job, record.at))
    return replace(job.attempt, resized_at=record.at, workers_version=record.seq)
