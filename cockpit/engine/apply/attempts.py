"""Applies the events of attempts to the state: from a job's placement to the end of its hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from cockpit.engine.apply.rules import Rules, change, change_waiting, free, ledger, since, usage_rules, write_down
from cockpit.model import events
from cockpit.model.attempt import Attempt, EndCause, Ending, ExitStatus, Grounds, Replica
from cockpit.model.ids import Millis, NodeName
from cockpit.model.job import QUEUED, RUNNING, STARTING, SUCCEEDED, SUSPENDED, Job, JobState
from cockpit.model.node import Allocation
from cockpit.model.spec import LAUNCHER, ExcludedNode
from cockpit.model.staging import is_staged
from cockpit.sched.priority import usage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cockpit.engine.state import ClusterState
    from cockpit.model.spec import JobSpec

RULES = Rules()
PRESSURE_REST_MS = 60_000
"""How long a best-effort job is not started again after a node ran short of memory for it."""


def _with_replica(attempt: Attempt, changed: Replica) -> Attempt:
    """Return the attempt with one replica exchanged. The attempts of most jobs have only one."""
    replicas, rank = attempt.replicas, changed.rank
    others_too = len(replicas) > 1
    return replace(attempt, replicas=(*replicas[:rank], changed, *replicas[rank + 1 :]) if others_too else (changed,))


def all_are_staged(state: JobState, attempt: Attempt) -> bool:
    """Tell whether the job is staging and the last of its replicas has been staged."""
    return state is JobState.STAGING and all(each.staged_at is not None for each in attempt.present_replicas)


@RULES.of(events.PrologFailed, events.PrecheckFailed)
def _(body: events.PrologFailed | events.PrecheckFailed, state: ClusterState, record: events.EventRecord) -> None:
    """Queue the job again. The failure is the node's, so the job keeps its age."""
    job = state.jobs[body.job]
    assert job.attempt is not None
    attempt = _lost(job.attempt, body.because, EndCause.START_FAILED, record.at)
    _queue_again(state, record, job, attempt, job.accrues_from)


def _lost(attempt: Attempt, why: str, cause: EndCause, at: Millis) -> Attempt:
    """Return the attempt as ended at `at`, with every replica that had not ended recorded as lost."""
    gone = ExitStatus(lost=why)
    replicas = [
        each if each.ended_at is not None else replace(each, ended_at=at, exit=gone) for each in attempt.replicas
    ]
    return replace(attempt, replicas=tuple(replicas), ended_at=at, cause=cause)


@RULES.of(events.JobPlaced)
def _(body: events.JobPlaced, state: ClusterState, record: events.EventRecord) -> None:
    replicas = [Replica(rank=each.rank) for each in body.placement]
    launcher = None
    # `replicas` is indexed by rank, and the launcher is rank 0
    if body.launcher:
        launcher = Allocation(0, NodeName(body.launcher), LAUNCHER.cpus, LAUNCHER.memory_mib)
        replicas.insert(0, Replica(rank=0))
    attempt = Attempt(
        number=body.attempt,
        spec_index=body.spec_index,
        placement=body.placement,
        placed_at=record.at,
        replicas=tuple(replicas),
        partition=body.partition,
        billing=body.billing,
        members=body.members,
        awaits=tuple(dict.fromkeys(body.members)) if body.members else (),
        launcher=launcher,
        workers_version=record.seq,
    )
    job = state.jobs[body.job]
    # A requeued job keeps its last attempt until here; now that one joins the earlier ones.
    earlier = job.earlier if job.attempt is None else (*job.earlier, job.attempt)
    checked = job.spec.resume is not None
    after = JobState.PRECHECKING if checked else _after_checks(job.spec, earlier, fleet=bool(body.members))
    state.jobs[body.job] = replace(
        job,
        version=record.seq,
        state=after,
        state_since=since(job, after, record.at),
        attempt=attempt,
        earlier=earlier,
        clears=(),
        ending=None,
        exit=None,
        below_min_at=None,
        rests_until=None,
    )


@RULES.of(events.PrecheckPassed)
def _(body: events.PrecheckPassed, state: ClusterState, record: events.EventRecord) -> None:
    job = state.jobs[body.job]
    after = _after_checks(job.spec, job.earlier, fleet=False)
    change(state, record, body.job, state=after, state_since=since(job, after, record.at))


def _after_checks(spec: JobSpec, earlier: Sequence[Attempt], *, fleet: bool) -> JobState:
    """Return the state that follows the node checks. On a fleet the member clusters stage, not the fleet."""
    if is_staged(spec) and not fleet:
        return JobState.STAGING
    return first_state(spec, earlier) if earlier else STARTING


def first_state(spec: JobSpec, earlier: Sequence[Attempt]) -> JobState:
    """Return the state of a job about to start: resuming if it can use a checkpoint of an earlier attempt that ran."""
    if not earlier or (spec.resume is None and spec.elastic is None):
        return STARTING
    return JobState.RESUMING if any(each.ran for each in earlier) else STARTING


@RULES.of(events.MemberPlaced)
def _(body: events.MemberPlaced, state: ClusterState, record: events.EventRecord) -> None:
    attempt = state.jobs[body.job].attempt
    assert attempt is not None
    # Until now these ranks may have had a cluster and no node; the parts of the other members stay as they are.
    placed = {part.rank: part for part in body.placement}
    placement = tuple([placed.get(part.rank, part) for part in attempt.placement])
    awaits = tuple(each for each in attempt.awaits if each != body.member)
    change(state, record, body.job, attempt=replace(attempt, placement=placement, awaits=awaits))


def _tried(state: ClusterState, attempt: Attempt, members: Sequence[str]) -> list[str]:
    """Return those of the members that had the chance to place their parts: not one over a link that never got so far
    as to have its part released. It is tried again even if nothing is released there."""
    released = {each.member for each in attempt.remote if each.is_released}
    over_link = {each.name for each in state.cluster.members if each.over_link}
    return [each for each in members if each in released or each not in over_link]


@RULES.of(events.RemotePartChanged)
def _(body: events.RemotePartChanged, state: ClusterState, record: events.EventRecord) -> None:
    attempt = state.jobs[body.job].attempt
    assert attempt is not None
    others = tuple(each for each in attempt.remote if each.member != body.part.member)
    # Without an id of its own the member has lost the part, which was never released: it can be ordered again.
    parts = (*others, body.part) if body.part.own else others
    change(state, record, body.job, attempt=replace(attempt, remote=parts))


@RULES.of(events.BindingGivenUp)
def _(body: events.BindingGivenUp, state: ClusterState, record: events.EventRecord) -> None:
    job = state.jobs[body.job]
    assert job.attempt is not None
    lost = _lost(job.attempt, f"no room in {', '.join(body.members)}", EndCause.START_FAILED, record.at)
    _queue_again(state, record, job, replace(lost, awaits=()), job.accrues_from)
    change(
        state,
        record,
        body.job,
        partitions=body.partitions,
        revoked_at=record.at if body.revoked else job.revoked_at,
        in_vain=job.in_vain | dict.fromkeys(_tried(state, job.attempt, body.members), record.at),
    )
    # the clusters of `body.members` have placed nothing, so nothing comes free there
    free(state, [each for each in job.attempt.members if each not in body.members], record.at)


@RULES.of(events.ReplicaStaged)
def _(body: events.ReplicaStaged, state: ClusterState, record: events.EventRecord) -> None:
    """Start the job's replicas together, once the last of them is staged."""
    job = state.jobs[body.job]
    assert job.attempt is not None
    attempt = _with_replica(job.attempt, replace(job.attempt.replicas[body.rank], staged_at=record.at))
    after = first_state(job.spec, job.earlier) if all_are_staged(job.state, attempt) else job.state
    entered = since(job, after, record.at)
    state.jobs[body.job] = replace(job, version=record.seq, attempt=attempt, state=after, state_since=entered)


@RULES.of(events.ReplicaStarted)
def _(body: events.ReplicaStarted, state: ClusterState, record: events.EventRecord) -> None:
    job = state.jobs[body.job]
    assert job.attempt is not None
    replica = replace(job.attempt.replicas[body.rank], started_at=record.at, limits=body.limits)
    attempt = _with_replica(job.attempt, replica)
    # A gang may be suspended while the last of its replicas is still starting.
    after = job.state if job.state is SUSPENDED else RUNNING
    entered = since(job, after, record.at)
    state.jobs[body.job] = replace(job, version=record.seq, attempt=attempt, state=after, state_since=entered)


@RULES.of(events.ReplicaEnded)
def _(body: events.ReplicaEnded, state: ClusterState, record: events.EventRecord) -> None:
    job = state.jobs[body.job]
    assert job.attempt is not None
    replica = replace(
        job.attempt.replicas[body.rank], ended_at=record.at, exit=body.exit, used=body.used, steps=body.steps
    )
    state.jobs[body.job] = replace(job, version=record.seq, attempt=_with_replica(job.attempt, replica))


@RULES.of(events.TimeLimitSet)
def _(body: events.TimeLimitSet, state: ClusterState, record: events.EventRecord) -> None:
    spec = replace(state.jobs[body.job].spec, time_limit_seconds=body.seconds, limit_by_default=False)
    change(state, record, body.job, spec=spec)


@RULES.of(events.EndingBegan)
def _(body: events.EndingBegan, state: ClusterState, record: events.EventRecord) -> None:
    # Without a grace period the kill is part of this event: no `GraceEnded` follows.
    killed = body.kill_at <= record.at
    ending = Ending(
        cause=body.cause,
        at=record.at,
        kill_at=body.kill_at,
        killed=killed,
        for_job=body.for_job,
        grounds=body.grounds,
        requeue=body.requeue,
        by=_stopped_by(body.cause, record),
    )
    change(state, record, body.job, ending=ending)
    attempt = state.jobs[body.job].attempt
    # All workers are listed as leaving from now on.
    if attempt is not None and state.jobs[body.job].spec.elastic is not None:
        change(state, record, body.job, attempt=replace(attempt, workers_version=record.seq))


def _stopped_by(cause: EndCause, record: events.EventRecord) -> str:
    """Return the user whose request stops the job; empty: the engine stops it, which has another origin."""
    return record.actor if cause is EndCause.STOP and record.origin == events.FROM_USER else ""


@RULES.of(events.NodeExcluded)
def _(body: events.NodeExcluded, state: ClusterState, record: events.EventRecord) -> None:
    failed = state.failed_prechecks.get(body.node, {}) | {body.job: body.until}
    state.failed_prechecks = state.failed_prechecks | {body.node: failed}
    spec = state.jobs[body.job].spec
    others = _excluded_but(spec, body.node)
    excluded = (*others, ExcludedNode(node=body.node, because=body.because, until=body.until))
    change(state, record, body.job, spec=replace(spec, excluded=excluded))


@RULES.of(events.NodeReadmitted)
def _(body: events.NodeReadmitted, state: ClusterState, record: events.EventRecord) -> None:
    left = {job: until for job, until in state.failed_prechecks.get(body.node, {}).items() if job != body.job}
    others = {node: each for node, each in state.failed_prechecks.items() if node != body.node}
    state.failed_prechecks = others | {body.node: left} if left else others
    if (job := state.jobs.get(body.job)) is not None:
        change(state, record, body.job, spec=replace(job.spec, excluded=_excluded_but(job.spec, body.node)))


def _excluded_but(spec: JobSpec, node: NodeName) -> tuple[ExcludedNode, ...]:
    return tuple([each for each in spec.excluded if each.node != node])


@RULES.of(events.FaultFound)
def _(body: events.FaultFound, state: ClusterState, record: events.EventRecord) -> None:
    """Raise the job's version. What the engine does about the fault are events of their own."""
    change(state, record, body.job)


@RULES.of(events.PerformanceFell)
def _(body: events.PerformanceFell, state: ClusterState, record: events.EventRecord) -> None:
    job = state.jobs[body.job]
    assert job.attempt is not None
    # The job is about to be requeued, and must not come back to the slow node.
    spec = replace(job.spec, pool_nodes=body.elsewhere) if body.elsewhere else job.spec
    change(state, record, body.job, attempt=replace(job.attempt, slow=body.slow), spec=spec)


@RULES.of(events.AlertRaised)
def _(body: events.AlertRaised, state: ClusterState, record: events.EventRecord) -> None:
    others = [each for each in state.jobs[body.job].alerts if each.kind is not body.alert.kind]
    change(state, record, body.job, alerts=(*others, body.alert))


@RULES.of(events.JobSuspended)
def _(body: events.JobSuspended, state: ClusterState, record: events.EventRecord) -> None:
    job = state.jobs[body.job]
    # A suspended job is not charged: its usage ends here and begins again when it is resumed.
    write_down(state, usage.with_usage_of(ledger(state), usage_rules(state), job, record.at))
    entered = since(job, SUSPENDED, record.at)
    change(state, record, body.job, suspension=body.suspension, state=SUSPENDED, state_since=entered)


@RULES.of(events.JobResumed)
def _(body: events.JobResumed, state: ClusterState, record: events.EventRecord) -> None:
    job = state.jobs[body.job]
    change(
        state,
        record,
        body.job,
        attempt=_resumed_attempt(job, record.at),
        suspension=None,
        state=RUNNING,
        state_since=since(job, RUNNING, record.at),
    )


def _resumed_attempt(job: Job, at: Millis) -> Attempt | None:
    """Return the job's attempt with the suspension that ends now added up; unchanged if the job is not suspended."""
    if job.attempt is None or job.state is not SUSPENDED:
        return job.attempt
    # `state_since` is the beginning of this suspension, as the job is still in that state here.
    suspended_ms = job.attempt.suspended_ms + at - job.state_since
    return replace(job.attempt, resumed_at=at, suspended_ms=suspended_ms)


@RULES.of(events.JobRequeued)
def _(body: events.JobRequeued, state: ClusterState, record: events.EventRecord) -> None:
    job = state.jobs[body.job]
    attempt = _resumed_attempt(job, record.at)
    # A user may requeue a job that has ended: its attempt was over then, for the reason known then.
    if attempt is not None and not job.ended:
        attempt = replace(attempt, ended_at=record.at, cause=body.cause)
    elif attempt is not None:
        attempt = replace(attempt, ended_at=job.ended_at, cause=job.end_cause)
    _queue_again(state, record, job, attempt, job.accrues_from if body.retry else None)
    # A requeue by a user gives back all retries (`retry` is 0 then); an eviction uses up none.
    if body.retry or body.cause is EndCause.REQUEUE:
        change(state, record, body.job, retries=body.retry)
    if body.below_min:
        pressed = job.ending is not None and job.ending.grounds is Grounds.PRESSURE
        # Without a rest it would start again at once on the node whose memory is short.
        rests_until = Millis(record.at + PRESSURE_REST_MS) if pressed else None
        change(state, record, body.job, below_min_at=record.at, rests_until=rests_until)


@RULES.of(events.WaitEnded)
def _(body: events.WaitEnded, state: ClusterState, record: events.EventRecord) -> None:
    change(state, record, body.job, below_min_at=None)


def _queue_again(
    state: ClusterState, record: events.EventRecord, job: Job, attempt: Attempt | None, accrues: Millis | None
) -> None:
    """Put the job back into the queue, and charge what its attempt has used.

    `attempt`: the attempt as it ended. `accrues`: since when the job's age counts; None: it starts again from zero.
    """
    write_down(state, usage.with_usage_of(ledger(state), usage_rules(state), job, record.at))
    # Nothing of the attempt that is over may decide about the next one; what is left of it is in `attempt`.
    change_waiting(
        state,
        record,
        job.id,
        attempt=attempt,
        ending=None,
        leaving=(),
        suspension=None,
        exit=None,
        end_cause=None,
        ended_at=None,
        held_until=None,
        deleted=False,
        ended_by="",
        accrues_from=accrues,
        state=QUEUED,
        state_since=since(job, QUEUED, record.at),
    )


@RULES.of(events.JobWarned)
def _(body: events.JobWarned, state: ClusterState, record: events.EventRecord) -> None:
    attempt = state.jobs[body.job].attempt
    assert attempt is not None
    change(state, record, body.job, attempt=replace(attempt, warned=True))


@RULES.of(events.GraceEnded)
def _(body: events.GraceEnded, state: ClusterState, record: events.EventRecord) -> None:
    job = state.jobs[body.job]
    # One event serves both cases: the whole job is ended, or only some of its workers were recalled.
    if job.ending is not None:
        change(state, record, body.job, ending=replace(job.ending, killed=True))
        return
    leaving = [replace(each, killed=True) if each.kill_at <= record.at else each for each in job.leaving]
    change(state, record, body.job, leaving=tuple(leaving))


@RULES.of(events.JobEnded)
def _(body: events.JobEnded, state: ClusterState, record: events.EventRecord) -> None:
    job = state.jobs[body.job]
    # `with_usage_of` tests it too; here it saves making and storing the ledger, since most clusters charge nothing.
    if (rules := usage_rules(state)).charge(job):
        write_down(state, usage.with_usage_of(ledger(state), rules, job, record.at))
    # the first one only: `afterok` on the array needs no more, and names it in its reason
    if job.array is not None and body.state is not SUCCEEDED:
        state.failed_tasks.setdefault(job.array.array, job.id)
    state.jobs[body.job] = replace(
        job,
        version=record.seq,
        state=body.state,
        state_since=since(job, body.state, record.at),
        attempt=_resumed_attempt(job, record.at) if job.state is SUSPENDED else job.attempt,
        ending=None,
        leaving=(),
        suspension=None,
        clears=(),
        exit=body.exit,
        end_cause=body.cause,
        ended_at=record.at,
        held_until=body.held_until,
        below_min_at=None,
        rests_until=None,
        ended_by=job.ending.by if job.ending is not None else _stopped_by(body.cause, record),
    )
    if job.attempt is not None and job.attempt.members:
        free(state, job.attempt.members, record.at)


@RULES.of(events.HoldExtended)
def _(body: events.HoldExtended, state: ClusterState, record: events.EventRecord) -> None:
    change(state, record, body.job, held_until=body.held_until)


@RULES.of(events.HoldEnded)
def _(body: events.HoldEnded, state: ClusterState, record: events.EventRecord) -> None:
    change(state, record, body.job, held_until=None)
    attempt = state.jobs[body.job].attempt
    free(state, attempt.members if attempt is not None else (), record.at)
