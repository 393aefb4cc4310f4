"""What each event does to the plain state. No decisions, no clock: everything comes from the event."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from cockpit.engine import lifecycle
from cockpit.engine.age import accrues_from
from cockpit.engine.increments import keep_highest
from cockpit.model import events
from cockpit.model.accounts import Accounts
from cockpit.model.cluster import UsageReset
from cockpit.model.ids import Millis
from cockpit.model.job import Attempt, EndCause, Ending, ExitStatus, Job, JobState, Replica
from cockpit.model.node import NodeState
from cockpit.model.quota import places
from cockpit.sched import usage

if TYPE_CHECKING:
    from cockpit.engine.state import ClusterState
    from cockpit.model.ids import JobId, NodeName


def apply(state: ClusterState, record: events.EventRecord) -> None:
    """Fold one journal record into `state`. Raises `IllegalTransition` or `KeyError` where the journal is broken."""
    keep_highest(state, record.body)
    _RULES[type(record.body)](record.body, state, record)
    state.seq, state.at = record.seq, record.at


def _change(state: ClusterState, record: events.EventRecord, job: JobId, /, **fields: Any) -> None:  # noqa: ANN401 - of Job
    state.jobs[job] = replace(state.jobs[job], version=record.seq, **fields)


def _change_waiting(state: ClusterState, record: events.EventRecord, job: JobId, /, **fields: Any) -> None:  # noqa: ANN401 - of Job
    """A change of what keeps a queued job back, by which its age may begin to count or stop."""
    changed = replace(state.jobs[job], version=record.seq, **fields)
    state.jobs[job] = replace(changed, accrues_from=accrues_from(changed, record.at, state.cluster))


def _enter(job: Job, after: JobState, at: Millis) -> dict[str, Any]:
    lifecycle.check(job.state, after)
    return {} if job.state is after else {"state": after, "state_since": at}


def _change_replica(job: Job, rank: int, change: Callable[[Replica], Replica]) -> Attempt:
    assert job.attempt is not None
    replicas = tuple([change(each) if each.rank == rank else each for each in job.attempt.replicas])
    return replace(job.attempt, replicas=replicas)


def _free(state: ClusterState, members: Collection[str], at: Millis) -> None:
    """Something came free in these clusters of a fleet."""
    if members:
        state.freed_at = state.freed_at | dict.fromkeys(members, at)


Rule = Callable[[Any, "ClusterState", events.EventRecord], None]

_RULES: dict[type, Rule] = {}


def _applies(*kinds: type) -> Callable[[Rule], Rule]:
    """Registers what events of these kinds do."""

    def register(rule: Rule) -> Rule:
        _RULES.update(dict.fromkeys(kinds, rule))
        return rule

    return register


@_applies(events.JobSubmitted)
def _(body: events.JobSubmitted, state: ClusterState, record: events.EventRecord) -> None:
    state.last_job_id = max(state.last_job_id, body.job)
    job = Job(
        id=body.job,
        spec=body.spec,
        submitter=body.submitter,
        project=body.project,
        submitted_at=record.at,
        state_since=record.at,
        version=record.seq,
        account=body.account,
        qos=body.qos,
        partitions=body.partitions,
        array=body.array,
        part=body.part,
        waits_for=body.spec.dependencies,
    )
    begins = accrues_from(job, record.at, state.cluster)
    state.jobs[body.job] = job if begins is None else replace(job, accrues_from=begins)


@_applies(events.JobHeld)
def _(body: events.JobHeld, state: ClusterState, record: events.EventRecord) -> None:
    _change_waiting(state, record, body.job, held_by=body.by, held_since=record.at)


@_applies(events.JobReleased)
def _(body: events.JobReleased, state: ClusterState, record: events.EventRecord) -> None:
    _change_waiting(state, record, body.job, held_by="", held_since=None)


@_applies(events.JobEdited)
def _(body: events.JobEdited, state: ClusterState, record: events.EventRecord) -> None:
    before = state.jobs[body.job]
    conditions = body.spec.dependencies
    same = conditions == before.spec.dependencies
    _change_waiting(
        state,
        record,
        body.job,
        spec=body.spec,
        account=body.account,
        qos=body.qos,
        partitions=body.partitions,
        waits_for=before.waits_for if same else conditions,
        never=before.never if same else None,
        clears=(),
    )


@_applies(events.DependencyMet)
def _(body: events.DependencyMet, state: ClusterState, record: events.EventRecord) -> None:
    left = tuple(each for each in state.jobs[body.job].waits_for if each != body.dependency)
    _change_waiting(state, record, body.job, waits_for=left)


@_applies(events.DependencyFailed)
def _(body: events.DependencyFailed, state: ClusterState, record: events.EventRecord) -> None:
    before = state.jobs[body.job].waits_for
    first = (body.dependency, *(each for each in before if each != body.dependency))
    _change(state, record, body.job, never=body.because, waits_for=first)


@_applies(events.AgeBegan)
def _(body: events.AgeBegan, state: ClusterState, record: events.EventRecord) -> None:
    _change(state, record, body.job, accrues_from=record.at)


@_applies(events.PrioritySet)
def _(body: events.PrioritySet, state: ClusterState, record: events.EventRecord) -> None:
    _change(state, record, body.job, direct_priority=body.priority)


@_applies(events.SiteFactorSet)
def _(body: events.SiteFactorSet, state: ClusterState, record: events.EventRecord) -> None:
    _change(state, record, body.job, site_factor=body.factor)


@_applies(events.ClusterConfigured)
def _(body: events.ClusterConfigured, state: ClusterState, _record: events.EventRecord) -> None:
    state.cluster = body.cluster
    if body.cluster.priority.usage_reset is UsageReset.NOW:
        state.usage_reset_at = Millis(0)  # so that the next pass resets, and no other


@_applies(events.UsageDecayed)
def _(body: events.UsageDecayed, state: ClusterState, record: events.EventRecord) -> None:
    ledger = usage.passed(_ledger(state), _usage_rules(state), state.jobs.values(), record.at, reset=body.reset)
    _write_down(state, ledger)
    if body.reset or not state.usage_reset_at:
        state.usage_reset_at = record.at


def _ledger(state: ClusterState) -> usage.Ledger:
    return usage.Ledger(state.usage, state.qos_usage, state.usage_at)


def _usage_rules(state: ClusterState) -> usage.Rules:
    return usage.Rules(state.cluster, state.accounts, state.nodes)


def _write_down(state: ClusterState, ledger: usage.Ledger) -> None:
    state.usage, state.qos_usage, state.usage_at = ledger.associations, ledger.qos, ledger.at


@_applies(events.AccountsChanged)
def _(body: events.AccountsChanged, state: ClusterState, _record: events.EventRecord) -> None:
    associations = state.accounts.associations | {each.key: each for each in body.associations}
    qos = state.accounts.qos | {each.name: each for each in body.qos}
    accounts = Accounts(
        associations={key: each for key, each in associations.items() if key not in body.removed_associations},
        qos={name: each for name, each in qos.items() if name not in body.removed_qos},
    )
    state.usage = usage.moved(state.usage, state.accounts, accounts)
    state.accounts = accounts


@_applies(events.ReservationMade)
def _(body: events.ReservationMade, state: ClusterState, _record: events.EventRecord) -> None:
    state.reservations = state.reservations | {body.reservation.name: body.reservation}


@_applies(events.ReservationEnded)
def _(body: events.ReservationEnded, state: ClusterState, _record: events.EventRecord) -> None:
    state.reservations = {name: each for name, each in state.reservations.items() if name != body.name}


@_applies(events.NodeDrained)
def _(body: events.NodeDrained, state: ClusterState, _record: events.EventRecord) -> None:
    _change_node(state, body.node, state=NodeState.DRAINED, state_reason=body.reason, drained_by=body.by)


@_applies(events.NodeResumed)
def _(body: events.NodeResumed, state: ClusterState, _record: events.EventRecord) -> None:
    _change_node(state, body.node, state=NodeState.UP, state_reason="", drained_by="")


def _change_node(state: ClusterState, name: NodeName, /, **fields: Any) -> None:  # noqa: ANN401 - of Node
    state.nodes = {**state.nodes, name: replace(state.nodes[name], **fields)}


@_applies(events.PrologFailed)
def _(body: events.PrologFailed, state: ClusterState, record: events.EventRecord) -> None:
    """It is not the job's fault: its age goes on counting."""
    job = state.jobs[body.job]
    assert job.attempt is not None
    attempt = _lost(job.attempt, body.because, EndCause.START_FAILED, record.at)
    _queue_again(state, record, job, attempt, job.accrues_from)


def _lost(attempt: Attempt, why: str, cause: EndCause, at: Millis) -> Attempt:
    """Nothing of it runs any more."""
    gone = ExitStatus(lost=why)
    replicas = [
        each if each.ended_at is not None else replace(each, ended_at=at, exit=gone) for each in attempt.replicas
    ]
    return replace(attempt, replicas=tuple(replicas), ended_at=at, cause=cause)


@_applies(events.QuotaApplied)
def _(body: events.QuotaApplied, state: ClusterState, record: events.EventRecord) -> None:
    known = state.queues_since
    state.quota = body.tree
    state.queues_since = {each.path: known.get(each.path, record.at) for each in places(body.tree.root)}


@_applies(events.QuotaRemoved)
def _(_body: events.QuotaRemoved, state: ClusterState, _record: events.EventRecord) -> None:
    state.quota, state.queues_since = None, {}


@_applies(events.JobDeleted)
def _(body: events.JobDeleted, state: ClusterState, record: events.EventRecord) -> None:
    _change(state, record, body.job, deleted=True)


@_applies(events.JobPlaced)
def _(body: events.JobPlaced, state: ClusterState, record: events.EventRecord) -> None:
    attempt = Attempt(
        number=body.attempt,
        spec_index=body.spec_index,
        placement=body.placement,
        placed_at=record.at,
        replicas=tuple([Replica(rank=each.rank) for each in body.placement]),
        partition=body.partition,
        billing=body.billing,
        members=body.members,
        awaits=tuple(dict.fromkeys(body.members)),
    )
    job = state.jobs[body.job]
    earlier = job.earlier if job.attempt is None else (*job.earlier, job.attempt)
    entered = _enter(job, JobState.STARTING, record.at)
    _change(state, record, body.job, attempt=attempt, earlier=earlier, clears=(), ending=None, exit=None, **entered)


@_applies(events.MemberPlaced)
def _(body: events.MemberPlaced, state: ClusterState, record: events.EventRecord) -> None:
    attempt = state.jobs[body.job].attempt
    assert attempt is not None
    found = {part.rank: part for part in body.placement}
    placement = tuple([found.get(part.rank, part) for part in attempt.placement])
    awaits = tuple(each for each in attempt.awaits if each != body.member)
    _change(state, record, body.job, attempt=replace(attempt, placement=placement, awaits=awaits))


@_applies(events.OthersHeld)
def _(body: events.OthersHeld, state: ClusterState, record: events.EventRecord) -> None:
    state.others = state.others | {body.member: body.held}
    _free(state, [body.member], record.at)


@_applies(events.BindingGivenUp)
def _(body: events.BindingGivenUp, state: ClusterState, record: events.EventRecord) -> None:
    job = state.jobs[body.job]
    assert job.attempt is not None
    lost = _lost(job.attempt, f"no room in {', '.join(body.members)}", EndCause.START_FAILED, record.at)
    _queue_again(state, record, job, replace(lost, awaits=()), job.accrues_from)
    _change(
        state,
        record,
        body.job,
        partitions=body.partitions,
        revoked_at=record.at if body.revoked else job.revoked_at,
        in_vain=job.in_vain | dict.fromkeys(body.members, record.at),
    )
    _free(state, [each for each in job.attempt.members if each not in body.members], record.at)


@_applies(events.ReplicaStarted)
def _(body: events.ReplicaStarted, state: ClusterState, record: events.EventRecord) -> None:
    job = state.jobs[body.job]
    attempt = _change_replica(job, body.rank, lambda each: replace(each, started_at=record.at, limits=body.limits))
    after = job.state if job.state is JobState.SUSPENDED else JobState.RUNNING  # a late one of a gang that stands still
    _change(state, record, body.job, attempt=attempt, **_enter(job, after, record.at))


@_applies(events.ReplicaEnded)
def _(body: events.ReplicaEnded, state: ClusterState, record: events.EventRecord) -> None:
    job = state.jobs[body.job]
    attempt = _change_replica(job, body.rank, lambda each: replace(each, ended_at=record.at, exit=body.exit))
    _change(state, record, body.job, attempt=attempt)


@_applies(events.EndingBegan)
def _(body: events.EndingBegan, state: ClusterState, record: events.EventRecord) -> None:
    killed = body.kill_at <= record.at
    ending = Ending(
        cause=body.cause,
        at=record.at,
        kill_at=body.kill_at,
        killed=killed,
        for_job=body.for_job,
        grounds=body.grounds,
        requeue=body.requeue,
    )
    _change(state, record, body.job, ending=ending)


@_applies(events.RoomMade)
def _(body: events.RoomMade, state: ClusterState, record: events.EventRecord) -> None:
    _change(state, record, body.job, clears=(*state.jobs[body.job].clears, *body.others))


@_applies(events.JobSuspended)
def _(body: events.JobSuspended, state: ClusterState, record: events.EventRecord) -> None:
    job = state.jobs[body.job]
    _write_down(state, usage.ended(_ledger(state), _usage_rules(state), job, record.at))
    _change(state, record, body.job, suspension=body.suspension, **_enter(job, JobState.SUSPENDED, record.at))


@_applies(events.JobResumed)
def _(body: events.JobResumed, state: ClusterState, record: events.EventRecord) -> None:
    job = state.jobs[body.job]
    _change(
        state,
        record,
        body.job,
        attempt=_gone_on(job, record.at),
        suspension=None,
        **_enter(job, JobState.RUNNING, record.at),
    )


def _gone_on(job: Job, at: Millis) -> Attempt | None:
    """The attempt of a job that stops standing still, or never did."""
    if job.attempt is None or job.state is not JobState.SUSPENDED:
        return job.attempt
    stood_still = job.attempt.suspended_ms + at - job.state_since
    return replace(job.attempt, resumed_at=at, suspended_ms=stood_still)


@_applies(events.JobRequeued)
def _(body: events.JobRequeued, state: ClusterState, record: events.EventRecord) -> None:
    job = state.jobs[body.job]
    attempt = _gone_on(job, record.at)
    if attempt is not None and not job.ended:
        attempt = replace(attempt, ended_at=record.at, cause=body.cause)
    elif attempt is not None:
        attempt = replace(attempt, ended_at=job.ended_at, cause=job.end_cause)
    _queue_again(state, record, job, attempt, None)


def _queue_again(
    state: ClusterState, record: events.EventRecord, job: Job, attempt: Attempt | None, accrues: Millis | None
) -> None:
    """`attempt`: as it was over. `accrues`: from when on its age counts; None: anew."""
    _write_down(state, usage.ended(_ledger(state), _usage_rules(state), job, record.at))
    _change_waiting(
        state,
        record,
        job.id,
        attempt=attempt,
        ending=None,
        suspension=None,
        exit=None,
        end_cause=None,
        ended_at=None,
        held_until=None,
        deleted=False,
        accrues_from=accrues,
        **_enter(job, JobState.QUEUED, record.at),
    )


@_applies(events.GraceEnded)
def _(body: events.GraceEnded, state: ClusterState, record: events.EventRecord) -> None:
    ending = state.jobs[body.job].ending
    assert ending is not None
    _change(state, record, body.job, ending=replace(ending, killed=True))


@_applies(events.JobEnded)
def _(body: events.JobEnded, state: ClusterState, record: events.EventRecord) -> None:
    job = state.jobs[body.job]
    if (rules := _usage_rules(state)).charge(job):
        _write_down(state, usage.ended(_ledger(state), rules, job, record.at))
    if job.array is not None and body.state is not JobState.SUCCEEDED:
        state.failed_tasks.setdefault(job.array.array, job.id)
    _change(
        state,
        record,
        body.job,
        attempt=_gone_on(job, record.at),
        ending=None,
        suspension=None,
        clears=(),
        exit=body.exit,
        end_cause=body.cause,
        ended_at=record.at,
        held_until=body.held_until,
        **_enter(job, body.state, record.at),
    )
    if job.attempt is not None:
        _free(state, job.attempt.members, record.at)


@_applies(events.HoldExtended)
def _(body: events.HoldExtended, state: ClusterState, record: events.EventRecord) -> None:
    _change(state, record, body.job, held_until=body.held_until)


@_applies(events.HoldEnded)
def _(body: events.HoldEnded, state: ClusterState, record: events.EventRecord) -> None:
    _change(state, record, body.job, held_until=None)
    attempt = state.jobs[body.job].attempt
    _free(state, attempt.members if attempt is not None else (), record.at)


@_applies(events.JobArchived)
def _(body: events.JobArchived, state: ClusterState, _record: events.EventRecord) -> None:
    array = state.jobs.pop(body.job).array
    if array is None or array.array not in state.failed_tasks:
        return
    tasks = range(array.array + array.count - 1, array.array - 1, -1)  # the last ones tend to stay longest
    if not any(task in state.jobs for task in tasks):
        del state.failed_tasks[array.array]


@_applies(events.NodesChanged)
def _(body: events.NodesChanged, state: ClusterState, record: events.EventRecord) -> None:
    state.nodes = {node.name: node for node in body.nodes}
    _free(state, [each.name for each in state.cluster.members], record.at)


@_applies(events.ShellOpened, events.EngineStarted, events.EngineStopAsked, events.EngineStopped)
def _(_body: object, _state: ClusterState, _record: events.EventRecord) -> None:
    """Facts for the time line; the state does not depend on them."""
