"""Sentences for events, one for each."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import tzinfo
from typing import assert_never

from cockpit.formats.bindingevent import REASON, binding_message, bindings_of
from cockpit.model import events
from cockpit.model.attempt import EndCause, RemotePart
from cockpit.model.fleet import Member
from cockpit.model.ids import JobId, Millis
from cockpit.model.node import Placement
from cockpit.model.spec import WHOLE_CARD
from cockpit.present import units
from cockpit.present.events.alerts import alert_sentence
from cockpit.present.events.interruptions import (
    EvictionEvent,
    PatrolEvent,
    eviction_sentence,
    patrol_sentence,
    preemption_words,
    resumed_sentence,
)
from cockpit.present.events.rules import RuleEvent, WaitingEvent, rule_sentence, waiting_sentence
from cockpit.present.moments import clock
from cockpit.present.phrases import listed
from cockpit.present.safe import safe
from cockpit.present.states import exit_sentence

BindingEvent = events.MemberPlaced | events.BindingGivenUp | events.RemotePartChanged


def bound_sentence(members: Sequence[str]) -> str:
    """Return the words for a binding to members of a fleet: exactly the reason and message of the event
    `ScheduleBindingSucceed`."""
    return f"{REASON}: {safe(binding_message(bindings_of(members)))}"


def binding_sentence(body: BindingEvent) -> str:
    """Return the sentence for a fleet member's answer to a job that was bound to it."""
    match body:
        case events.MemberPlaced():
            nodes = listed(each.node for each in body.placement)
            return f"{safe(body.member)} placed {units.counted(len(body.placement), 'replica')}: {nodes}"
        case events.RemotePartChanged():
            return _part_sentence(body.part)
        case events.BindingGivenUp():
            return f"{listed(body.members)} did not place it in time; {_afterwards(body)}"
        case _:
            assert_never(body)


def _part_sentence(part: RemotePart) -> str:
    member = safe(part.member)
    if not part.own:
        return f"{member} has lost the part before it was released; it is ordered again"
    if part.has_ended:
        return f"{member} does not run part {safe(part.own)} any more"
    if part.is_recalled:
        return f"not all parts began in time: {member} must give part {safe(part.own)} back before it starts elsewhere"
    does = "may start it" if part.is_released else "holds it until all other clusters have theirs"
    return f"{member} has the part as {safe(part.own)}: {does}"


def _afterwards(body: events.BindingGivenUp) -> str:
    return "it waits in its queue to be admitted again" if body.revoked else "it is scheduled again"


def member_lines(members: Sequence[Member]) -> list[str]:
    """Return one comment line per member of a fleet that names its binding mode, for the file of the rules."""
    return [f"# {safe(each.name)} is bound to by {each.mode}{_because(each)}" for each in members]


def _because(member: Member) -> str:
    return f": {safe(member.why_totals)}" if member.why_totals else ""


WorkersEvent = (
    events.WorkersAdded
    | events.WorkersRecalled
    | events.WorkersLeft
    | events.NodeUnblocked
    | events.WorkerReplaced
    | events.TrainingResumed
)


def workers_sentence(body: WorkersEvent, at: Millis, zone: tzinfo | None) -> str:
    """Return the sentence for a change of some of a running job's workers."""
    match body:
        case events.WorkersAdded():
            nodes = listed(part.node for part in body.placement)
            return f"grows by {units.counted(len(body.placement), 'worker')}: {nodes}"
        case events.WorkersRecalled():
            patience = " at once" if body.kill_at <= at else f", and killed at {clock(body.kill_at, at, zone)}"
            verb = "is" if len(body.ranks) == 1 else "are"
            cause = preemption_words(body.for_job, body.grounds)
            return f"{cause}: {_replica_words(body.ranks)} {verb} recalled{patience}"
        case events.WorkersLeft():
            return f"continues without {_replica_words(body.ranks)}" + (_off(body) if body.because else "")
        case events.NodeUnblocked():
            return f"may have workers on {safe(body.node)} again: it is off its block list"
        case events.WorkerReplaced():
            return f"replica {body.rank} ended, and replica {body.by} takes its place, retry {body.retry}"
        case events.TrainingResumed():
            return resumed_sentence(body)
        case _:
            assert_never(body)


def _off(body: events.WorkersLeft) -> str:
    each = "its node is" if len(body.ranks) == 1 else "their nodes are"
    return f": {safe(body.because)}; {each} on its block list"


def _replica_words(ranks: tuple[int, ...]) -> str:
    return f"{'replica' if len(ranks) == 1 else 'replicas'} {listed(map(str, ranks))}"


_EngineEvent = (
    events.NodesChanged
    | events.ReceiverFailed
    | events.ReceiverRecovered
    | events.EngineStarted
    | events.EngineStopAsked
    | events.EngineStopped
)
_OF_NO_JOB = RuleEvent | _EngineEvent


def event_kind(body: events.EventBody) -> str:
    """Return the event's name in the journal, such as `job_submitted`."""
    return str(type(body).__struct_config__.tag)


def event_job(body: events.EventBody) -> JobId | None:
    """Return the id of the event's job; None for events of the cluster."""
    return None if isinstance(body, _OF_NO_JOB) else body.job


def event_sentence(record: events.EventRecord, zone: tzinfo | None) -> str:
    """Return the event's sentence without the job and the actor, which are shown beside it. Times are relative to the
    event."""
    body = record.body
    match body:
        case _ if isinstance(body, _EngineEvent):
            return _of_engine(body)
        case _ if isinstance(body, RuleEvent):
            return rule_sentence(body, record.at, zone)
        case events.AlertRaised():
            return f"alert ({body.alert.kind}): {alert_sentence(body.alert, record.at, zone)}"
        case _:
            return _of_job(body, record.at, zone)


def _of_engine(body: _EngineEvent) -> str:
    """Return the sentence for an event of the engine itself, its machine, or a service that it uses."""
    match body:
        case events.NodesChanged():
            return f"the cluster has {units.counted(len(body.nodes), 'node')}: {listed(n.name for n in body.nodes)}"
        case events.ReceiverFailed():
            return f"{safe(body.receiver)} {safe(body.because)}"
        case events.ReceiverRecovered():
            return f"{safe(body.receiver)} takes alerts again"
        case events.EngineStarted():
            return f"the engine {safe(body.version)} started as process {body.pid}"
        case events.EngineStopAsked():
            return "the engine was asked to stop" + (", with every job" if body.jobs else "")
        case events.EngineStopped():
            return f"the engine {safe(body.version)} stopped"
        case _:
            assert_never(body)


def _of_job(body: _JobEvent, at: Millis, zone: tzinfo | None) -> str:
    """Return the sentence for an event of one job, by the phase of its life."""
    # By phases of a job's life, as one match over forty events would not fit a screen. In each group `assert_never` has
    # mypy name an event without a sentence.
    match body:
        case (
            events.JobSubmitted()
            | events.JobHeld()
            | events.JobReleased()
            | events.JobEdited()
            | events.JobPlaced()
            | events.PrecheckPassed()
            | events.PrecheckFailed()
            | events.NodeExcluded()
            | events.NodeReadmitted()
            | events.PrologFailed()
        ):
            return _before_running(body, at, zone)
        case (
            events.DependencyMet()
            | events.DependencyFailed()
            | events.AgeBegan()
            | events.PrioritySet()
            | events.SiteFactorSet()
        ):
            return waiting_sentence(body)
        case events.MemberPlaced() | events.BindingGivenUp() | events.RemotePartChanged() | events.ClusterReported():
            return _of_other_cluster(body)
        case (
            events.ReplicaStaged()
            | events.ReplicaStarted()
            | events.ReplicaEnded()
            | events.TimeLimitSet()
            | events.EndingBegan()
            | events.GraceEnded()
            | events.JobWarned()
            | events.FaultFound()
            | events.PerformanceFell()
            | events.WorkersAdded()
            | events.WorkersRecalled()
            | events.WorkersLeft()
            | events.NodeUnblocked()
            | events.WorkerReplaced()
            | events.TrainingResumed()
        ):
            return _while_running(body, at, zone)
        case (
            events.EvictionsDecided()
            | events.JobSuspended()
            | events.JobResumed()
            | events.JobRequeued()
            | events.WaitEnded()
        ):
            return eviction_sentence(body)
        case (
            events.JobEnded()
            | events.HoldExtended()
            | events.HoldEnded()
            | events.ShellOpened()
            | events.JobArchived()
            | events.JobDeleted()
        ):
            return _after_running(body, at, zone)
        case _:
            assert_never(body)


def _of_other_cluster(body: BindingEvent | events.ClusterReported) -> str:
    """Return the sentence for what another scheduler's cluster, or a member of a fleet, says of a job."""
    if isinstance(body, events.ClusterReported):
        times = f" ({body.count} times)" if body.count > 1 else ""
        return f"{safe(body.about)}: {safe(body.reason)}: {safe(body.message)}{times}"
    return binding_sentence(body)


def _before_running(body: _BeforeRunning, at: Millis, zone: tzinfo | None) -> str:
    """Return the sentence for an event between a job's submission and its start."""
    match body:
        case events.JobSubmitted():
            return f"was submitted as {safe(body.spec.name)} by {safe(body.submitter.name)}"
        case events.JobHeld():
            return f"was held by {safe(body.by)}"
        case events.JobReleased():
            return "was released"
        case events.JobEdited():
            return f"was edited, and is now {safe(body.spec.name)}"
        case events.JobPlaced():
            # On a fleet the job is bound to clusters, whose own schedulers choose the nodes.
            where = bound_sentence(body.members) if body.members else f"was placed on {_placement(body.placement)}"
            # Alternatives are counted from 1 for users; the first one is the usual case and not worth words.
            spec = f", by spec {body.spec_index + 1}; the others are withdrawn" if body.spec_index else ""
            launcher = f", its launcher on {safe(body.launcher)}" if body.launcher else ""
            return where + launcher + _attempt(body.attempt) + spec
        case _:
            return _before_start(body, at, zone)


def _before_start(body: _BeforeStart, at: Millis, zone: tzinfo | None) -> str:
    """Return the sentence for the result of a check or prolog on a placed job's nodes."""
    match body:
        case events.PrecheckPassed():
            return "its nodes were checked" + (f": {safe(body.found)}" if body.found else "") + _attempt(body.attempt)
        case events.PrecheckFailed():
            return f"is queued again: {safe(body.node)} failed its check: {safe(body.because)}" + _attempt(body.attempt)
        case events.NodeExcluded():
            until = clock(body.until, at, zone)
            return f"does not use {safe(body.node)} until {until}: its check failed there: {safe(body.because)}"
        case events.NodeReadmitted():
            by = f", which was resumed by {safe(body.by)}" if body.by else ""
            return f"may use {safe(body.node)} again{by}"
        case events.PrologFailed():
            return f"is queued again: {safe(body.because)}" + _attempt(body.attempt)
        case _:
            assert_never(body)


def _while_running(body: _WhileRunning, at: Millis, zone: tzinfo | None) -> str:
    """Return the sentence for an event between a job's placement and its end."""
    match body:
        case events.ReplicaStaged() | events.ReplicaStarted() | events.ReplicaEnded():
            return _of_replica(body)
        case events.TimeLimitSet():
            return f"may run for {units.duration(body.seconds)} from its start"
        case events.EndingBegan():
            return _is_asked_to_end(body, at, zone)
        case events.GraceEnded() | events.JobWarned():
            early = isinstance(body, events.JobWarned)
            return "gets its signal before the time limit" if early else "had its time to end and is killed"
        case events.FaultFound() | events.PerformanceFell():
            return patrol_sentence(body)
        case (
            events.WorkersAdded()
            | events.WorkersRecalled()
            | events.WorkersLeft()
            | events.NodeUnblocked()
            | events.WorkerReplaced()
            | events.TrainingResumed()
        ):
            return workers_sentence(body, at, zone)
        case _:
            assert_never(body)


def _of_replica(body: events.ReplicaStaged | events.ReplicaStarted | events.ReplicaEnded) -> str:
    if isinstance(body, events.ReplicaStaged):
        return f"replica {body.rank} has its copies"
    if isinstance(body, events.ReplicaEnded):
        left_out = body.used.log_left_out_mib if body.used is not None else None
        of_log = f"; {units.memory(left_out)} of its log left out" if left_out else ""
        return f"replica {body.rank} ended: {exit_sentence(body.exit)}{of_log}"
    limits = f" (limits: {safe(body.limits)})" if body.limits else ""
    return f"replica {body.rank} started" + _attempt(body.attempt) + limits


def _is_asked_to_end(body: events.EndingBegan, at: Millis, zone: tzinfo | None) -> str:
    patience = " at once" if body.kill_at <= at else f", and is killed at {clock(body.kill_at, at, zone)}"
    # Ended for its own sake, as by its limit or by a user, and not for another job.
    if body.for_job is None and body.grounds is None:
        return f"is asked to end ({_cause(body.cause)}){patience}"
    again = ", and waits again" if body.requeue else ""
    return f"{preemption_words(body.for_job, body.grounds)}: is asked to end{patience}{again}"


def _after_running(body: _AfterRunning, at: Millis, zone: tzinfo | None) -> str:
    """Return the sentence for a job's end, or for an event of its hold and its record."""
    match body:
        case events.JobEnded():
            ended = f"ended: {body.state} ({_cause(body.cause)})"
            return ended if body.held_until is None else f"{ended}; held until {clock(body.held_until, at, zone)}"
        case events.HoldExtended():
            return f"is held until {clock(body.held_until, at, zone)}"
        case events.HoldEnded():
            # Users ask who removed a container that they still needed.
            why = "the hold expired" if body.cause is events.HoldEndCause.EXPIRED else "a user ended the hold"
            return f"its held containers were removed: {why}"
        case events.ShellOpened():
            return f"replica {body.rank} was entered" + (f" to run {_command(body.command)}" if body.command else "")
        case events.JobArchived():
            return "moved to accounting"
        case events.JobDeleted():
            return "was taken off the lists"
        case _:
            assert_never(body)


def _placement(placement: Placement) -> str:
    milli = sum(allocation.card_milli for allocation in placement)
    names = listed(dict.fromkeys(allocation.node for allocation in placement))
    if not milli:
        return names
    # A share is said as one: "0 cards" or "1 card" would be wrong.
    if milli < WHOLE_CARD:
        return f"{names} with {units.cards(milli)} of a card"
    return f"{names} with {units.counted_cards(milli)}"


def _attempt(number: int) -> str:
    # The first attempt is the usual case and not worth words.
    return f" (attempt {number})" if number > 1 else ""


def _cause(cause: EndCause) -> str:
    return cause.value.replace("_", " ")


def _command(command: tuple[str, ...]) -> str:
    return safe(" ".join(command))


_BeforeStart = (
    events.PrecheckPassed | events.PrecheckFailed | events.NodeExcluded | events.NodeReadmitted | events.PrologFailed
)
_BeforeRunning = (
    events.JobSubmitted | events.JobHeld | events.JobReleased | events.JobEdited | events.JobPlaced | _BeforeStart
)
_WhileRunning = (
    events.ReplicaStaged
    | events.ReplicaStarted
    | events.ReplicaEnded
    | events.TimeLimitSet
    | events.EndingBegan
    | events.GraceEnded
    | events.JobWarned
    | PatrolEvent
    | WorkersEvent
)
_AfterRunning = (
    events.JobEnded
    | events.HoldExtended
    | events.HoldEnded
    | events.ShellOpened
    | events.JobArchived
    | events.JobDeleted
)
_JobEvent = (
    _BeforeRunning
    | WaitingEvent
    | BindingEvent
    | events.ClusterReported
    | _WhileRunning
    | EvictionEvent
    | _AfterRunning
)
