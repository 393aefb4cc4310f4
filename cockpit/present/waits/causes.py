"""The causes by which waiting time is divided: each reason for waiting belongs to one of them."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from cockpit.model import pod_reasons, reasons
from cockpit.model.fleet_placement import FleetWaits

if TYPE_CHECKING:
    from cockpit.model.reasons import Reason


class WaitCause(StrEnum):
    """What a job waited for, in the order in which causes are listed."""

    JOBS = "jobs"
    """Other jobs: they held what it needs, or were ahead of it in the queue."""
    LIMITS = "limits"
    """A limit or quota of its user, account, QOS, partition, queue or array."""
    DEPENDENCIES = "dependencies"
    HELD = "held"
    BEGIN_TIME = "begin_time"
    """Its begin time, or the start of its reservation."""
    NODES = "nodes"
    """Nodes that it needs were out of service or reserved, or there were none."""
    SCHEDULER = "scheduler"
    """The scheduler had not looked at it yet, or was preparing its start."""
    UNKNOWN = "unknown"
    """The reason was not recorded."""


TITLES: Final = {
    WaitCause.JOBS: "other jobs",
    WaitCause.LIMITS: "limits",
    WaitCause.DEPENDENCIES: "dependencies",
    WaitCause.HELD: "held",
    WaitCause.BEGIN_TIME: "begin time",
    WaitCause.NODES: "nodes out of service or reserved",
    WaitCause.SCHEDULER: "scheduler",
    WaitCause.UNKNOWN: "not known",
}

_IN_USE: Final = (pod_reasons.Obstacle.RESOURCE, pod_reasons.Obstacle.PORTS, pod_reasons.Obstacle.PODS)
"""Obstacles of Kubernetes' nodes that other pods are."""

_CODES: Final = tuple(
    (re.compile(leads, re.IGNORECASE), cause)
    for leads, cause in (
        ("JobHeld|JobHold|job requeued in held", WaitCause.HELD),
        ("Dependency", WaitCause.DEPENDENCIES),
        ("BeginTime|Reservation", WaitCause.BEGIN_TIME),
        ("Prolog|None|SchedDefer|Cleaning|FedJobLock|Federation", WaitCause.SCHEDULER),
        ("ReqNodeNotAvail|Nodes required|NodeDown|FrontEndDown|PartitionDown|PartitionInactive", WaitCause.NODES),
        ("BadConstraints|Constraints|PowerNotAvail|MaxPoweredUpNodes|Block", WaitCause.NODES),
        ("Resources|Priority|Licenses|BurstBufferResources|PowerReserved|MpiPorts|Nvidia", WaitCause.JOBS),
        ("Assoc|QOS|AccountingPolicy|Partition|JobArrayTaskLimit|Max|Min|Grp", WaitCause.LIMITS),
        ("InvalidAccount|InvalidQOS|AccountNot|DeadLine", WaitCause.LIMITS),
    )
)
"""The causes of Slurm's reason codes, by their beginnings; the first that matches counts."""


OF_TYPE: Final[dict[type, WaitCause]] = {
    **dict.fromkeys((reasons.Held, reasons.SuspendedReason), WaitCause.HELD),
    **dict.fromkeys((reasons.WaitsForJob, reasons.DependencyNever), WaitCause.DEPENDENCIES),
    **dict.fromkeys((reasons.BeginsLater, reasons.InReservation), WaitCause.BEGIN_TIME),
    **dict.fromkeys((reasons.NeverFits, reasons.NoEligibleNode, reasons.NodesReserved), WaitCause.NODES),
    **dict.fromkeys(
        (reasons.NotEvaluated, pod_reasons.PodsStarting, pod_reasons.Gated, FleetWaits), WaitCause.SCHEDULER
    ),
    **dict.fromkeys((reasons.LimitReached, reasons.QuotaFull, reasons.QuotaMaxJobs), WaitCause.LIMITS),
    **dict.fromkeys((reasons.QuotaWaits, reasons.NoQueue, reasons.ArrayFull), WaitCause.LIMITS),
    **dict.fromkeys((reasons.NoAssociation, reasons.QosRefused, pod_reasons.QueueWaits), WaitCause.LIMITS),
    **dict.fromkeys((reasons.NotEnoughFree, reasons.WouldDelay, reasons.BehindHead), WaitCause.JOBS),
    **dict.fromkeys((reasons.EvictionPending, reasons.ClusterShort, reasons.NoMemberPlacement), WaitCause.JOBS),
    pod_reasons.GangIncomplete: WaitCause.JOBS,
}


def cause_of(reason: Reason | None) -> WaitCause:
    """Return the cause to which a reason for waiting belongs."""
    match reason:
        case reasons.NoAlternative():
            return cause_of(reason.specs[0])
        case reasons.SchedulerReason():
            return _of_code(reason.code)
        case reasons.PartitionRefuses():
            return WaitCause.NODES if reason.rule is reasons.PartitionRule.STATE else WaitCause.LIMITS
        case pod_reasons.PodsNotCreated():
            return WaitCause.LIMITS if reason.quotas else WaitCause.SCHEDULER
        case pod_reasons.Unschedulable():
            in_use = not reason.excluded or reason.excluded[0].obstacle in _IN_USE
            return WaitCause.JOBS if in_use else WaitCause.NODES
    return OF_TYPE.get(type(reason), WaitCause.UNKNOWN)


def _of_code(code: str) -> WaitCause:
    words = code.replace("_", " ").strip()
    return next((cause for lead, cause in _CODES if lead.match(words)), WaitCause.UNKNOWN)
