"""Where a fleet has sent a job, in what state it is there, and why it is not on the other members."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from cockpit.backends.kubernetes.mapping.fleet_job import FleetJob, HeldPolicy
from cockpit.backends.kubernetes.mapping.fleet_models import modelled_replicas
from cockpit.backends.kubernetes.mapping.fleet_status import (
    FAILED,
    bound_to,
    is_suspended,
    own_word,
    reports_of,
    status_of,
    toleration_of,
)
from cockpit.backends.kubernetes.mapping.pod_needs import tolerates
from cockpit.backends.kubernetes.mapping.quantities import exact_amounts, exact_request
from cockpit.backends.kubernetes.objects.fleet import (
    ClusterAffinity,
    MemberCluster,
    MemberStatus,
    PolicyPlacement,
    TargetCluster,
)
from cockpit.backends.kubernetes.objects.meta import millis
from cockpit.model.fleet_placement import (
    AmountThere,
    BoundCluster,
    Eviction,
    FleetPlacement,
    FleetPolicy,
    FleetStep,
    FleetWaits,
    MemberLookedAt,
    MemberObstacle,
)
from cockpit.model.job import JobState

if TYPE_CHECKING:
    from cockpit.backends.kubernetes.mapping.kube_jobs import KubeJob

_LONGEST = 400
_PODS = "pods"
_SOFT = "PreferNoSchedule"
"""The effect of a taint that keeps nothing off."""


def clusters_of(job: KubeJob, fleet: FleetJob) -> tuple[str, ...]:
    """Return the member of each replica, as far as the fleet counts them; else each member once."""
    bound = bound_to(fleet)
    if len(bound) == 1:
        return (bound[0].name,) * max(1, job.wanted)
    return tuple(each.name for each in bound for _ in range(max(1, _replicas(each))))


def fleet_reason(job: KubeJob, fleet: FleetJob) -> FleetWaits | None:
    """Return why a job that has no pods on the host does not run; None: it does."""
    policy = fleet.held.policy.metadata.name if fleet.held is not None else ""
    names = tuple(each.name for each in bound_to(fleet))
    if names:
        return _bound_reason(job, fleet, policy, names)
    if is_suspended(fleet):
        return FleetWaits(FleetStep.SUSPENDED, policy)
    scheduled = fleet.binding.scheduled if fleet.binding is not None else None
    if scheduled is not None and not scheduled.is_true:
        members = tuple(looked_at(job, fleet))
        return FleetWaits(FleetStep.UNSCHEDULED, policy, (), scheduled.message[:_LONGEST], members=members)
    if fleet.held is None and not fleet.hidden:
        return FleetWaits(FleetStep.NO_POLICY)
    return FleetWaits(FleetStep.UNSEEN, policy, (), fleet.hidden)


def _bound_reason(job: KubeJob, fleet: FleetJob, policy: str, names: tuple[str, ...]) -> FleetWaits | None:
    if job.state is JobState.RUNNING:
        return None
    items = list(reports_of(fleet))
    if is_suspended(fleet, dispatching=True):
        return FleetWaits(FleetStep.NOT_SENT, policy, names)
    refused = [each for each in items if each.applied_message and not each.applied]
    if refused:
        there = tuple(each.cluster_name for each in refused)
        return FleetWaits(FleetStep.NOT_APPLIED, policy, there, refused[0].applied_message[:_LONGEST])
    failed = tuple(each.cluster_name for each in items if own_word(status_of(each)) == FAILED)
    if failed:
        return FleetWaits(FleetStep.FAILED_THERE, policy, failed, seconds=toleration_of(fleet))
    return FleetWaits(FleetStep.SENT, policy, names)


def placement_of(job: KubeJob, fleet: FleetJob, event: str) -> FleetPlacement:
    """Return everything that the fleet tells of a job. `event`: the scheduler's last message about the binding."""
    items = {each.cluster_name: each for each in reports_of(fleet)}
    tasks = (fleet.binding.spec.graceful_eviction_tasks or ()) if fleet.binding is not None else ()
    return FleetPlacement(
        state=own_word(job.workload.now) if job.workload is not None else "",
        policy=policy_of(fleet),
        bound=tuple(_bound_cluster(each, items.get(each.name, MemberStatus())) for each in bound_to(fleet)),
        event=event,
        elsewhere=tuple(looked_at(job, fleet)),
        evictions=tuple(
            Eviction(
                cluster=each.from_cluster,
                reason=each.reason,
                message=each.message,
                at=millis(each.creation_timestamp),
            )
            for each in tasks
        ),
    )


def looked_at(job: KubeJob, fleet: FleetJob) -> Iterator[MemberLookedAt]:
    """Yield each member that does not have the job, by name, with what is known against it."""
    bound = {each.name for each in bound_to(fleet)}
    for name, member in sorted(fleet.members.items()):
        if name not in bound:
            amounts = _amounts(job, member)
            replicas, fitting = _modelled(job, member)
            obstacle, about = next(_obstacles(fleet, member, amounts, short_nodes=fitting < replicas))
            yield MemberLookedAt(name, obstacle, about, amounts, replicas, fitting)


def _obstacles(
    fleet: FleetJob, member: MemberCluster, amounts: tuple[AmountThere, ...], *, short_nodes: bool
) -> Iterator[tuple[MemberObstacle, str]]:
    """Yield what is known against a member, what weighs most first; at the end that nothing is."""
    name, ready = member.metadata.name, member.ready
    if ready is None or not ready.is_true:
        yield MemberObstacle.NOT_READY, ready.message[:_LONGEST] if ready is not None else ""
    placement = fleet.held.policy.spec.placement if fleet.held is not None else PolicyPlacement()
    affinity = placement.cluster_affinity or ClusterAffinity()
    if (affinity.cluster_names and name not in affinity.cluster_names) or name in (affinity.exclude or ()):
        yield MemberObstacle.EXCLUDED, ""
    for taint in member.spec.taints or ():
        if taint.effect != _SOFT and not tolerates(placement.cluster_tolerations or (), taint):
            yield MemberObstacle.TAINT, f"{taint.key}={taint.value}" if taint.value else taint.key
    tasks = (fleet.binding.spec.graceful_eviction_tasks or ()) if fleet.binding is not None else ()
    yield from ((MemberObstacle.EVICTED, each.reason) for each in tasks if each.from_cluster == name)
    served = {each.kind for group in member.status.api_enablements or () for each in group.resources or ()}
    if served and fleet.kind not in served:
        yield MemberObstacle.KIND, fleet.kind
    if any(each.free < each.asked for each in amounts):
        yield MemberObstacle.SHORT, ""
    if short_nodes:
        yield MemberObstacle.SHORT_NODES, ""
    yield (MemberObstacle.OTHER_CHOSEN if bound_to(fleet) else MemberObstacle.UNKNOWN), ""


def _amounts(job: KubeJob, member: MemberCluster) -> tuple[AmountThere, ...]:
    """Return what the whole job asks for and what is free there: what pods without a node ask for is not."""
    summary = member.status.resource_summary
    if summary is None or not summary.allocatable:
        return ()
    there = exact_amounts(summary.allocatable)
    for given in (summary.allocated, summary.allocating):
        for name, amount in exact_amounts(given).items():
            there[name] = there.get(name, 0) - amount
    asked: dict[str, int] = {_PODS: 0}
    for group in job.groups:
        asked[_PODS] += group.count
        for name, amount in exact_request(group.template.spec):
            asked[name] = asked.get(name, 0) + group.count * amount
    known = {name: amount for name, amount in asked.items() if name != _PODS or name in there}
    return tuple(AmountThere(name, amount, max(0, there.get(name, 0))) for name, amount in sorted(known.items()))


def _modelled(job: KubeJob, member: MemberCluster) -> tuple[int, int]:
    """Return how many replicas of one kind the job has, and how many of them find a node by the member's resource
    models: of the kind that lacks most; twice 0 where the models say nothing."""
    kinds: dict[tuple[tuple[str, int], ...], int] = {}
    for group in job.groups:
        request = tuple(exact_request(group.template.spec))
        kinds[request] = kinds.get(request, 0) + group.count
    found = [(count, modelled_replicas(member, dict(request))) for request, count in kinds.items()]
    told = [(count, min(count, fitting)) for count, fitting in found if fitting is not None]
    return max(told, key=lambda pair: pair[0] - pair[1], default=(0, 0))


def _bound_cluster(target: TargetCluster, item: MemberStatus) -> BoundCluster:
    return BoundCluster(
        cluster=target.name,
        replicas=_replicas(target),
        roles=tuple((each.name, each.replicas) for each in target.components or ()),
        state=own_word(status_of(item)),
        applied=item.applied,
        message=item.applied_message[:_LONGEST],
        health=item.health,
    )


def policy_of(fleet: FleetJob) -> FleetPolicy | None:
    """Return what the policy of a job says; None: none selects it."""
    return _policy(fleet.held) if fleet.held is not None else None


def _policy(held: HeldPolicy) -> FleetPolicy:
    spec = held.policy.spec
    how, suspension = spec.placement.replica_scheduling, spec.suspension
    failover = spec.failover.application if spec.failover is not None else None
    custom = {spec.placement.custom_scheduling_type, how.custom_scheduling_type if how is not None else ""}
    suspended = ""
    if suspension is not None:
        suspended = "scheduling" if suspension.scheduling else "dispatching" if suspension.dispatching else ""
    return FleetPolicy(
        name=held.policy.metadata.name,
        namespace=held.policy.metadata.namespace,
        api_version=held.resource.api_version,
        division=how.replica_scheduling_type if how is not None else "",
        gang="Gang" in custom,
        propagates_dependencies=spec.propagate_deps,
        suspended=suspended,
        toleration_seconds=failover.decision_conditions.toleration_seconds if failover is not None else None,
        purge_mode=failover.purge_mode if failover is not None else "",
    )


def _replicas(target: TargetCluster) -> int:
    return target.replicas or sum(each.replicas for each in target.components or ())
