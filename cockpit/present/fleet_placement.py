"""Sentences for where a fleet has sent a job and why not elsewhere, and the section of the job's page about it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import asdict

from cockpit.model.fleet_placement import (
    AmountThere,
    BoundCluster,
    FleetPlacement,
    FleetPolicy,
    FleetStep,
    FleetWaits,
    MemberLookedAt,
    MemberObstacle,
)
from cockpit.present import units
from cockpit.present.moments import clock, iso
from cockpit.present.phrases import Wording, listed, wording
from cockpit.present.safe import safe

if TYPE_CHECKING:
    from cockpit.model.jobdetail import JobDetail
    from cockpit.present.columns import Context

_STEPS: Final = {
    FleetStep.NO_POLICY: "no PropagationPolicy selects it, so the fleet sends it to no cluster",
    FleetStep.UNSEEN: "waits for the fleet to bind it to a cluster",
    FleetStep.SUSPENDED: "waits in the fleet's queue: its scheduling is suspended until it is dequeued",
    FleetStep.UNSCHEDULED: "the fleet's scheduler binds it to no cluster",
    FleetStep.NOT_SENT: "is bound to {}, and sent there only when its suspended dispatching is lifted",
    FleetStep.NOT_APPLIED: "is bound to {}, which has not taken it",
    FleetStep.FAILED_THERE: "has failed on {}",
    FleetStep.SENT: "is bound to {}, where it does not run yet",
}
_BRIEFLY: Final = {
    FleetStep.NO_POLICY: "no PropagationPolicy selects it",
    FleetStep.UNSEEN: "waits for the fleet to bind it",
    FleetStep.SUSPENDED: "suspended in the fleet's queue",
    FleetStep.UNSCHEDULED: "the fleet finds no cluster for it",
    FleetStep.NOT_SENT: "bound to {}, not sent there",
    FleetStep.NOT_APPLIED: "{} has not taken it",
    FleetStep.FAILED_THERE: "has failed on {}",
    FleetStep.SENT: "bound to {}, does not run there yet",
}
"""What stands in a row of the list for `_STEPS`."""
_OBSTACLES: Final = {
    MemberObstacle.NOT_READY: "does not answer the fleet",
    MemberObstacle.EXCLUDED: "is not named by the policy",
    MemberObstacle.TAINT: "has the taint {}, which the policy does not tolerate",
    MemberObstacle.KIND: "does not serve {}",
    MemberObstacle.SHORT: "has too little free in all",
    MemberObstacle.SHORT_NODES: "has enough free in all, and by its resource models nodes for {}",
    MemberObstacle.EVICTED: "had it, and the fleet took it away ({})",
    MemberObstacle.OTHER_CHOSEN: "could take it; the fleet chose another",
    MemberObstacle.UNKNOWN: "has nothing against it that the fleet tells",
}
_BYTES: Final = {"memory": "memory", "ephemeral-storage": "local storage"}


def fleet_wording(reason: FleetWaits) -> Wording:
    """Return what a job on a fleet waits for, then the fleet's words and the members."""
    clusters = listed([safe(each) for each in reason.clusters])
    return wording(*_clauses(reason), brief=_BRIEFLY[reason.step].format(clusters))


def _clauses(reason: FleetWaits) -> Iterator[str]:
    yield _STEPS[reason.step].format(listed([safe(each) for each in reason.clusters]))
    if reason.message:
        yield safe(reason.message)
    if reason.step is FleetStep.FAILED_THERE and reason.seconds is not None:
        yield f"the fleet gives the placement up after {units.spoken(reason.seconds)}"
    if reason.policy:
        yield f"policy {safe(reason.policy)}"
    yield from map(member_words, reason.members)


def member_words(member: MemberLookedAt) -> str:
    """Return why a member does not have the job: `b has too little free in all: 16 nvidia.com/gpu asked, 8 free`."""
    about, obstacle = safe(member.about), member.obstacle
    if obstacle is MemberObstacle.SHORT_NODES:
        about = f"{member.fitting} of {units.counted(member.replicas, 'replica')}"
    words = _OBSTACLES[obstacle].format(about)
    # Where something else keeps it off, what is free there is no answer.
    if obstacle in {MemberObstacle.SHORT, MemberObstacle.UNKNOWN, MemberObstacle.OTHER_CHOSEN}:
        short = [each for each in member.amounts if each.free < each.asked]
        shown = short or [each for each in member.amounts if "/" in each.resource]
        words += f": {', '.join(map(_amount, shown))}" if shown else ""
    elif obstacle is MemberObstacle.NOT_READY and about:
        words += f": {about}"
    return f"{safe(member.cluster)} {words}"


def _amount(each: AmountThere) -> str:
    asked, free = (_in_units(each.resource, amount) for amount in (each.asked, each.free))
    return f"{asked} {_noun(each.resource)} asked, {free} free"


def _in_units(resource: str, amount: int) -> str:
    if resource == "cpu":
        return units.decimal(amount, 1000, digits=3)
    return units.memory(-(-amount // 1024**2)) if resource in _BYTES else str(amount)


def _noun(resource: str) -> str:
    return "CPUs" if resource == "cpu" else _BYTES.get(resource) or safe(resource)


def fleet_lines(detail: JobDetail, context: Context) -> Iterator[str]:
    """Yield the section of a job's page about its fleet."""
    placement = detail.fleet
    if placement is None:
        return
    yield "Fleet"
    if placement.state:
        yield f"  state       {safe(placement.state)}, of the fleet's own object"
    if placement.policy is None:
        yield "  policy      none selects it"
    else:
        yield f"  policy      {policy_words(placement.policy)}"
    for each in placement.bound:
        yield f"  sent to     {bound_words(each)}"
    if placement.event:
        yield f"  scheduler   {safe(placement.event)}"
    for gone in placement.evictions:
        at = f" since {clock(gone.at, context.now, context.zone)}" if gone.at is not None else ""
        said = f": {safe(gone.message)}" if gone.message else ""
        yield f"  taken from  {safe(gone.cluster)}{at} ({safe(gone.reason)}){said}"
    for other in placement.elsewhere:
        yield f"  not on      {member_words(other)}"


def policy_words(policy: FleetPolicy) -> str:
    """Return a policy's name, and what it says of the job."""
    of = f"{safe(policy.namespace)}/{safe(policy.name)}" if policy.namespace else safe(policy.name)
    parts = [f"{of} ({safe(policy.api_version)})"]
    if policy.division:
        parts.append(safe(policy.division))
    if policy.gang:
        parts.append("Gang")
    if policy.suspended:
        parts.append(f"{safe(policy.suspended)} suspended")
    if policy.propagates_dependencies:
        parts.append("with what the job refers to")
    if policy.toleration_seconds is not None:
        how = f", removed {safe(policy.purge_mode)}" if policy.purge_mode else ""
        parts.append(f"a failed placement is given up after {units.spoken(policy.toleration_seconds)}{how}")
    return " · ".join(parts)


def bound_words(each: BoundCluster) -> str:
    """Return a member that has the job, with the replicas and the state there: `a: master 1, worker 2 · Running`."""
    roles = ", ".join(f"{safe(role)} {count}" for role, count in each.roles)
    count = roles or (units.counted(each.replicas, "replica") if each.replicas else "")
    parts = [f"{safe(each.cluster)}{': ' if count else ''}{count}"]
    parts.append(safe(each.state) or ("taken" if each.applied else "not taken"))
    if each.health and each.health != "Unknown":
        parts.append(safe(each.health))
    if each.message:
        parts.append(safe(each.message))
    return " · ".join(parts)


def fleet_json(detail: JobDetail, _: Context) -> dict[str, Any] | None:
    """Return what the fleet tells of the job as an object; None: the cluster is no fleet's host."""
    placement = detail.fleet
    if placement is None:
        return None
    return {
        "state": placement.state,
        "policy": asdict(placement.policy) if placement.policy is not None else None,
        "bound": [{**asdict(each), "roles": dict(each.roles)} for each in placement.bound],
        "event": placement.event,
        "elsewhere": [
            {
                "cluster": each.cluster,
                "why": str(each.obstacle),
                "sentence": member_words(each),
                "amounts": [asdict(amount) for amount in each.amounts],
                "replicas": each.replicas,
                "fitting": each.fitting,
            }
            for each in placement.elsewhere
        ],
        "evictions": [
            {**asdict(each), "at": None if each.at is None else iso(each.at)} for each in placement.evictions
        ],
    }


def fleet_count(placement: FleetPlacement | None) -> str:
    """Return the members that have the job, for a table of words."""
    return ", ".join(safe(each.cluster) for each in placement.bound) if placement is not None else "–"
