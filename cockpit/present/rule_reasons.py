"""Sentences for reasons from rules, from other jobs and from the clusters of a fleet."""

from __future__ import annotations

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
from cockpit.present.phrases import amount, bare_amount, listed
from cockpit.present.pod_reasons import pod_clauses
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


def rule_clauses(reason: RuleReason, now: Millis, zone: tzinfo | None) -> tuple[str, ...]:
    """Return the clauses of a reason: first what blocks the job, then the details."""
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
            return tuple(_of_quota_queue(reason, now, zone)) if isinstance(reason, QuotaWaits) else _of_quota(reason)
        case ClusterShort() | NoMemberPlacement():
            return _of_fleets(reason, now, zone)
        case _:
            assert_never(reason)


def _of_other_jobs(reason: WaitsForJob | DependencyNever | ArrayFull | BehindHead) -> tuple[str, ...]:
    """Return the clauses of a reason about dependencies, arrays or jobs ahead."""
    match reason:
        case WaitsForJob():
            more = (f"and for {units.counted(reason.more, 'more condition')}",) if reason.more else ()
            return (f"waits for {_job(reason)} {_AWAITED[reason.kind]}", *more)
        case DependencyNever():
            return f"waits for {_job(reason)} {_AWAITED[reason.kind]}", "it ended otherwise, so this never starts"
        case ArrayFull():
            return (f"{units.counted(reason.at_once, 'task')} of its array may run at once, and as many do",)
        case BehindHead():
            return (f"nothing passes job {job_shown(reason.ahead)}, which is first and waits",)
        case _:
            assert_never(reason)


def _of_rights(reason: PartitionRefuses | LimitReached | NoAssociation | QosRefused) -> tuple[str, ...]:
    """Return the clauses of a reason about partitions, limits, associations or QOS."""
    match reason:
        case PartitionRefuses():
            return _partition_refuses(reason)
        case LimitReached():
            return _limit_reached(reason)
        case NoAssociation():
            account = f" in account {safe(reason.account)}" if reason.account else ""
            where = f" for partition {safe(reason.partition)}" if reason.partition else ""
            return (f"{safe(reason.user)} has no association{account}{where}, and this cluster serves no one without",)
        case QosRefused():
            return f"may not use QOS {safe(reason.qos)}", f"allowed: {listed(reason.allowed) or 'none'}"
        case _:
            assert_never(reason)


def _of_time(reason: BeginsLater | InReservation | NodesReserved, now: Millis, zone: tzinfo | None) -> tuple[str, ...]:
    """Return the clauses of a reason about a start time or a reservation."""
    match reason:
        case BeginsLater():
            return (f"is not to begin before {clock(reason.begin_at, now, zone)}",)
        case InReservation():
            return (f"reservation {safe(reason.name)} {_not_open(reason, now, zone)}",)
        case NodesReserved():
            span = f"{clock(reason.start_at, now, zone)} to {clock(reason.end_at, now, zone)}"
            return (f"would run into reservation {safe(reason.name)}", f"its nodes are reserved from {span}")
        case _:
            assert_never(reason)


def _not_open(reason: InReservation, now: Millis, zone: tzinfo | None) -> str:
    # A job that names a reservation may be too early, too late, or not meant by it.
    if reason.end_at is not None:
        return f"ends at {clock(reason.end_at, now, zone)}, before this job must"
    if reason.start_at is not None:
        return f"begins at {clock(reason.start_at, now, zone)}"
    return "is over, not there, or not for its owner"


def _partition_refuses(reason: PartitionRefuses) -> tuple[str, ...]:
    """Return the clauses for a partition that does not accept the job."""
    where = f"partition {safe(reason.partition)}"
    match reason.rule:
        case PartitionRule.STATE:
            return (f"{where} is {safe(reason.allowed)} and starts nothing",)
        case PartitionRule.MAX_TIME:
            allowed, request = (units.spoken(int(text)) for text in (reason.allowed, reason.asked))
            return f"asks for {request}", f"{where} allows {allowed}"
        case PartitionRule.MIN_NODES | PartitionRule.MAX_NODES:
            most = "at least" if reason.rule is PartitionRule.MIN_NODES else "at most"
            return f"asks for {units.counted(int(reason.asked), 'node')}", f"{where} serves {most} {reason.allowed}"
        case PartitionRule.ACCOUNT | PartitionRule.QOS | PartitionRule.USER:
            kind = {"account": "account", "qos": "QOS", "user": "user"}[reason.rule]
            # A partition has a list of those it serves or of those it excludes; only the first can be said in full.
            allowed = f"it serves {safe(reason.allowed)}" if reason.allowed else "it excludes it"
            return f"{where} does not serve {kind} {safe(reason.asked) or '(none)'}", allowed
        case _:
            assert_never(reason.rule)


def _limit_reached(reason: LimitReached) -> tuple[str, ...]:
    what = f"{reason.limit}={safe(reason.resource)}" if reason.resource else reason.limit
    allowed, used, request = (_amount(reason, each) for each in (reason.allowed, reason.used, reason.asked))
    limit = f"limit {what} of {safe(reason.holder)} is {allowed}"
    # The use of the moment does not matter to a request that exceeds the limit by itself.
    if reason.never:
        return limit, f"this job asks for {request} and never starts"
    return limit, f"{used} in use, {request} asked"


def _of_quota(reason: QuotaFull | QuotaMaxJobs | NoQueue) -> tuple[str, ...]:
    """Return the clauses of a reason about the quota tree."""
    if isinstance(reason, NoQueue):
        return "waits for a queue to release it", f"no queue of the quota tree has project {safe(reason.project)}"
    queue = f"queue {safe(reason.queue)}"
    if isinstance(reason, QuotaMaxJobs):
        return (f"{queue} lets {units.counted(reason.at_once, 'job')} run at a time",)
    allowed, used, request = (
        tres_amount(reason.resource, each) for each in (reason.allowed, reason.used, reason.asked)
    )
    if reason.never:
        return f"{queue} may hold {allowed}", f"this job asks for {request} and never starts"
    return f"{queue} may hold {allowed}", f"{used} in use, {request} asked"


def _of_quota_queue(reason: QuotaWaits, now: Millis, zone: tzinfo | None) -> Iterator[str]:
    """Yield the clauses by layer: the queue, the node of the quota tree that is full, who borrows there, and when the
    job would fit."""
    yield from pod_clauses(reason.waits, now, zone)
    yield from _of_quota(reason.limit)
    resource = reason.limit.resource if isinstance(reason.limit, QuotaFull) else ""
    if reason.borrowers:
        several = [f"{safe(path)} borrows {tres_amount(resource, amount)}" for path, amount in reason.borrowers]
        yield listed(several)
    if reason.fits_at is not None and reason.after is not None:
        yield f"fits by {clock(reason.fits_at, now, zone)}, when job {job_shown(reason.after)} ends at the latest"
    elif not reason.never:
        yield "no bound on when it fits, as not all that runs there has a time limit"


def _of_eviction(reason: EvictionPending | SuspendedReason, now: Millis, zone: tzinfo | None) -> tuple[str, ...]:
    # A job that the user may not see is `job -`.
    others = listed([f"job {job_shown(job)}" for job in reason.jobs])
    if isinstance(reason, EvictionPending):
        until = f"until {clock(reason.until, now, zone)} at the latest" if reason.until is not None else "soon"
        return (f"{others} {'is' if len(reason.jobs) == 1 else 'are'} being preempted for it, {until}",)
    if reason.by:
        return (f"was suspended by {safe(reason.by)}",)
    return f"was preempted by {others}", "it resumes when its CPUs are free again"


def _of_fleets(reason: ClusterShort | NoMemberPlacement, now: Millis, zone: tzinfo | None) -> tuple[str, ...]:
    """Return the clauses of a reason from the clusters of a fleet."""
    match reason:
        case ClusterShort():
            wanted = amount(reason.resource, reason.wanted, reason.card_models)
            free = bare_amount(reason.resource, reason.free)
            return f"waits for {wanted} in one cluster", f"{safe(reason.member)} has {free} free in all"
        case NoMemberPlacement():
            names = listed(reason.members)
            had = f"{names} could not fit it at {clock(reason.since, now, zone)}, though enough is free in all"
            return had, "tried again when resources become free there"
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
