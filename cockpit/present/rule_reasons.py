"""Sentences for reasons from rules, from other jobs and from the clusters of a fleet."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import tzinfo
from typing import assert_never

from cockpit.model.ids import Millis
from cockpit.model.reasons import (
    ArrayFull,
    BeginsLater,
    BehindHead,
    ClusterShort,
    DependencyNever,
    EvictionPending,
    InReservation,
    LimitReached,
    NoAssociation,
    NodesReserved,
    NoMemberPlacement,
    NoQueue,
    PartitionRefuses,
    PartitionRule,
    QosRefused,
    QuotaFull,
    QuotaMaxJobs,
    QuotaWaits,
    SuspendedReason,
    WaitsForJob,
)
from cockpit.model.spec import DependencyKind
from cockpit.present import units
from cockpit.present.moments import clock
from cockpit.present.phrases import Wording, amount, bare_amount, listed, wording
from cockpit.present.pod_reasons import pod_wording
from cockpit.present.references import job_shown
from cockpit.present.safe import safe

RuleReason = (
    BeginsLater
    | WaitsForJob
    | DependencyNever
    | ArrayFull
    | PartitionRefuses
    | LimitReached
    | QuotaFull
    | QuotaMaxJobs
    | QuotaWaits
    | NoQueue
    | NoAssociation
    | QosRefused
    | InReservation
    | NodesReserved
    | BehindHead
    | EvictionPending
    | SuspendedReason
    | ClusterShort
    | NoMemberPlacement
)

_AWAITED = {
    DependencyKind.AFTER_OK: "to succeed",
    DependencyKind.AFTER_ANY: "to end",
    DependencyKind.AFTER_NOT_OK: "to fail",
    DependencyKind.AFTER_CORR: "to succeed in the same task",
    DependencyKind.SINGLETON: "to end, as its owner's job of the same name",
}

_AWAITED_BRIEFLY = {DependencyKind.AFTER_CORR: "to succeed", DependencyKind.SINGLETON: "to end"}
_MISSED = {
    DependencyKind.AFTER_OK: "did not succeed",
    DependencyKind.AFTER_ANY: "did not run",
    DependencyKind.AFTER_NOT_OK: "did not fail",
    DependencyKind.AFTER_CORR: "did not succeed",
    DependencyKind.SINGLETON: "did not end",
}
_USER_OF_ACCOUNT = re.compile(r"user (\S+) of account \S+")
"""The holder of a limit of one user."""


def rule_wording(reason: RuleReason, now: Millis, zone: tzinfo | None) -> Wording:
    """Return a reason in words. `zone` None: this machine's."""
    # In groups, since one match over all would not fit a screen. `assert_never` has mypy name a reason without a case.
    match reason:
        case BeginsLater() | InReservation() | NodesReserved():
            return _of_time(reason, now, zone)
        case EvictionPending() | SuspendedReason():
            return _of_eviction(reason, now, zone)
        case WaitsForJob() | DependencyNever() | ArrayFull() | BehindHead():
            return _of_other_jobs(reason)
        case PartitionRefuses() | LimitReached() | NoAssociation() | QosRefused():
            return _of_rights(reason)
        case QuotaFull() | QuotaMaxJobs() | QuotaWaits() | NoQueue():
            return _of_quota_queue(reason, now, zone) if isinstance(reason, QuotaWaits) else _of_quota(reason)
        case ClusterShort() | NoMemberPlacement():
            return _of_fleets(reason, now, zone)
        case _:
            assert_never(reason)


def _of_other_jobs(reason: WaitsForJob | DependencyNever | ArrayFull | BehindHead) -> Wording:
    """Return the words for a reason about dependencies, arrays or jobs ahead."""
    match reason:
        case WaitsForJob():
            more = (f"and for {units.counted(reason.more, 'more condition')}",) if reason.more else ()
            brief = f"waits for {_job(reason)} {_AWAITED_BRIEFLY.get(reason.kind) or _AWAITED[reason.kind]}"
            return wording(f"waits for {_job(reason)} {_AWAITED[reason.kind]}", *more, brief=brief)
        case DependencyNever():
            sentence = f"waits for {_job(reason)} {_AWAITED[reason.kind]}", "it ended otherwise, so this never starts"
            return wording(*sentence, brief=f"never starts: {_job(reason)} {_MISSED[reason.kind]}")
        case ArrayFull():
            tasks = units.counted(reason.at_once, "task")
            full = f"{tasks} of its array may run at once, and as many do"
            return wording(full, brief=f"at its array's limit of {tasks}")
        case BehindHead():
            ahead = job_shown(reason.ahead)
            return wording(
                f"nothing passes job {ahead}, which is first and waits", brief=f"behind job {ahead}, which is first"
            )
        case _:
            assert_never(reason)


def _of_rights(reason: PartitionRefuses | LimitReached | NoAssociation | QosRefused) -> Wording:
    """Return the words for a reason about partitions, limits, associations or QOS."""
    match reason:
        case PartitionRefuses():
            return _partition_refuses(reason)
        case LimitReached():
            return _limit_reached(reason)
        case NoAssociation():
            account = f" in account {safe(reason.account)}" if reason.account else ""
            where = f" for partition {safe(reason.partition)}" if reason.partition else ""
            brief = f"{safe(reason.user)} has no association{account}"
            return wording(f"{brief}{where}, and this cluster serves no one without", brief=brief)
        case QosRefused():
            return wording(f"may not use QOS {safe(reason.qos)}", f"allowed: {listed(reason.allowed) or 'none'}")
        case _:
            assert_never(reason)


def _of_time(reason: BeginsLater | InReservation | NodesReserved, now: Millis, zone: tzinfo | None) -> Wording:
    """Return the words for a reason about a start time or a reservation."""
    match reason:
        case BeginsLater():
            begin = clock(reason.begin_at, now, zone)
            return wording(f"is not to begin before {begin}", brief=f"begins after {begin}")
        case InReservation():
            return _in_reservation(reason, now, zone)
        case NodesReserved():
            span = f"{clock(reason.start_at, now, zone)} to {clock(reason.end_at, now, zone)}"
            return wording(f"would run into reservation {safe(reason.name)}", f"its nodes are reserved from {span}")
        case _:
            assert_never(reason)


def _in_reservation(reason: InReservation, now: Millis, zone: tzinfo | None) -> Wording:
    """Return the words for a job that names a reservation and is too early, too late, or not meant by it."""
    which = f"reservation {safe(reason.name)}"
    if reason.end_at is not None:
        sentence = f"{which} ends at {clock(reason.end_at, now, zone)}, before this job must"
        return wording(sentence, brief=f"{which} is too short for it")
    if reason.start_at is not None:
        return wording(f"{which} begins at {clock(reason.start_at, now, zone)}")
    return wording(f"{which} is over, not there, or not for its owner", brief=f"{which} is not open to it")


def _partition_refuses(reason: PartitionRefuses) -> Wording:
    """Return the words for a partition that does not accept the job."""
    where = f"partition {safe(reason.partition)}"
    match reason.rule:
        case PartitionRule.STATE:
            state = f"{where} is {safe(reason.allowed)}"
            return wording(f"{state} and starts nothing", brief=state)
        case PartitionRule.MAX_TIME:
            allowed, request = (units.spoken(int(text)) for text in (reason.allowed, reason.asked))
            return wording(
                f"asks for {request}",
                f"{where} allows {allowed}",
                brief=f"asks for {request}, {where} allows {allowed}",
            )
        case PartitionRule.MIN_NODES | PartitionRule.MAX_NODES:
            most = "at least" if reason.rule is PartitionRule.MIN_NODES else "at most"
            serves = f"{where} serves {most} {reason.allowed}"
            return wording(f"asks for {units.counted(int(reason.asked), 'node')}", serves, brief=f"{serves} nodes")
        case PartitionRule.ACCOUNT | PartitionRule.QOS | PartitionRule.USER:
            kind = {"account": "account", "qos": "QOS", "user": "user"}[reason.rule]
            # A partition has a list of those it serves or of those it excludes; only the first can be said in full.
            allowed = f"it serves {safe(reason.allowed)}" if reason.allowed else "it excludes it"
            return wording(f"{where} does not serve {kind} {safe(reason.asked) or '(none)'}", allowed)
        case _:
            assert_never(reason.rule)


def _limit_reached(reason: LimitReached) -> Wording:
    what = f"{reason.limit}={safe(reason.resource)}" if reason.resource else reason.limit
    allowed, used, request = (_amount(reason, each) for each in (reason.allowed, reason.used, reason.asked))
    limit = f"limit {what} of {safe(reason.holder)} is {allowed}"
    # The use of the moment does not matter to a request that exceeds the limit by itself.
    if reason.never:
        sentence = limit, f"this job asks for {request} and never starts"
        return wording(
            *sentence, brief=f"asks for {_counted(reason, reason.asked)}, limit of {_who(reason)}: {allowed}"
        )
    brief = f"{_who(reason)} has {used} of {_counted(reason, reason.allowed)} in use"
    if reason.used >= reason.allowed:
        brief = f"{_who(reason)} is at the limit of {_counted(reason, reason.allowed)}"
    return wording(limit, f"{used} in use, {request} asked", brief=brief)


def _who(reason: LimitReached) -> str:
    """Return the holder of a limit in few words: the user's name, `account nlp`, `qos high`."""
    user = _USER_OF_ACCOUNT.fullmatch(reason.holder)
    return safe(user[1] if user is not None else reason.holder)


def _counted(reason: LimitReached, amount: float) -> str:
    """Return the amount of a limit with what it counts: `16 jobs`, `448 CPUs`, `2 h`."""
    if "Submit" in reason.limit or "Jobs" in reason.limit:
        return units.counted(round(amount), "submitted job" if "Submit" in reason.limit else "job")
    if reason.resource and not reason.limit.endswith("Mins"):
        return tres_amount(reason.resource, amount)
    return f"{_amount(reason, amount)}{f' of {safe(reason.resource)}' if reason.resource else ''}"


def _of_quota(reason: QuotaFull | QuotaMaxJobs | NoQueue) -> Wording:
    """Return the words for a reason about the quota tree."""
    if isinstance(reason, NoQueue):
        project = f"no queue of the quota tree has project {safe(reason.project)}"
        return wording("waits for a queue to release it", project, brief=f"no queue has project {safe(reason.project)}")
    queue = f"queue {safe(reason.queue)}"
    if isinstance(reason, QuotaMaxJobs):
        jobs = units.counted(reason.at_once, "job")
        return wording(f"{queue} lets {jobs} run at a time", brief=f"{queue} is at its limit of {jobs}")
    allowed, used, request = (
        tres_amount(reason.resource, each) for each in (reason.allowed, reason.used, reason.asked)
    )
    if reason.never:
        sentence = f"{queue} may hold {allowed}", f"this job asks for {request} and never starts"
        return wording(*sentence, brief=f"asks for {request}, {queue} may hold {allowed}")
    bare = units.memory(round(reason.used)) if reason.resource == "mem" else f"{reason.used:.10g}"
    brief = f"{queue} has {bare} of its {allowed} in use"
    return wording(f"{queue} may hold {allowed}", f"{used} in use, {request} asked", brief=brief)


def _of_quota_queue(reason: QuotaWaits, now: Millis, zone: tzinfo | None) -> Wording:
    """Return the words by layer: the queue, the node of the quota tree that is full, who borrows there, and when the
    job would fit."""
    limit = _of_quota(reason.limit)
    waits = pod_wording(reason.waits, now, zone)
    return Wording(limit.brief, (*waits.clauses, *limit.clauses, *_when_it_fits(reason, now, zone)))


def _when_it_fits(reason: QuotaWaits, now: Millis, zone: tzinfo | None) -> Iterator[str]:
    resource = reason.limit.resource if isinstance(reason.limit, QuotaFull) else ""
    if reason.borrowers:
        several = [f"{safe(path)} borrows {tres_amount(resource, amount)}" for path, amount in reason.borrowers]
        yield listed(several)
    if reason.fits_at is not None and reason.after is not None:
        yield f"fits by {clock(reason.fits_at, now, zone)}, when job {job_shown(reason.after)} ends at the latest"
    elif not reason.never:
        yield "no bound on when it fits, as not all that runs there has a time limit"


def _of_eviction(reason: EvictionPending | SuspendedReason, now: Millis, zone: tzinfo | None) -> Wording:
    # A job that the user may not see is `job -`.
    others = listed([f"job {job_shown(job)}" for job in reason.jobs])
    if isinstance(reason, EvictionPending):
        until = f"until {clock(reason.until, now, zone)} at the latest" if reason.until is not None else "soon"
        preempted = f"{others} {'is' if len(reason.jobs) == 1 else 'are'} being preempted for it"
        several = f"{units.counted(len(reason.jobs), 'job')} are being preempted for it"
        return wording(f"{preempted}, {until}", brief=preempted if len(reason.jobs) == 1 else several)
    if reason.by:
        return wording(f"was suspended by {safe(reason.by)}")
    return wording(f"was preempted by {others}", "it resumes when its CPUs are free again")


def _of_fleets(reason: ClusterShort | NoMemberPlacement, now: Millis, zone: tzinfo | None) -> Wording:
    """Return the words for a reason from the clusters of a fleet."""
    match reason:
        case ClusterShort():
            wanted = amount(reason.resource, reason.wanted, reason.card_models)
            free = bare_amount(reason.resource, reason.free)
            return wording(f"waits for {wanted} in one cluster", f"{safe(reason.member)} has {free} free in all")
        case NoMemberPlacement():
            names = listed(reason.members)
            brief = f"{names} could not fit it at {clock(reason.since, now, zone)}"
            sentence = f"{brief}, though enough is free in all", "tried again when resources become free there"
            return wording(*sentence, brief=brief)
        case _:
            assert_never(reason)


def tres_amount(resource: str, amount: float) -> str:
    """Return an amount of a resource that quotas limit: `64 CPUs`, `1.5T of memory`, `4 cards`."""
    if resource == "mem":
        return f"{units.memory(round(amount))} of memory"
    name = {"cpu": "CPU", "gres/gpu": "card"}.get(resource, safe(resource))
    return f"{amount:.10g} {name if amount == 1 else f'{name}s'}"


def _amount(reason: LimitReached, amount: float) -> str:
    """Return the amount in the unit in which the limit is written; for `GrpTRESMins` that is minutes."""
    # Limits on time are kept in seconds, GrpTRESMins in minutes as in Slurm, memory in MiB.
    if reason.limit.endswith("Wall"):
        return units.spoken(round(amount))
    number = units.memory(round(amount)) if reason.resource == "mem" else f"{round(amount, 1):.10g}"
    return f"{number} min" if reason.limit == "GrpTRESMins" else number


def _job(reason: WaitsForJob | DependencyNever) -> str:
    if not reason.job and reason.kind is DependencyKind.SINGLETON:
        return "another job"
    return f"job {job_shown(reason.job)}{'' if reason.task is None else f'_{reason.task}'}"
