"""Kueue's queues, quotas and workloads for the core's rules of admission.

1. The quotas of cluster queues and cohorts, by flavor and resource. A cohort that only queues name has none of its own.
2. The workloads, with what they request as Kueue counts it; of admitted ones, what they use.
3. Use of workloads that the user may not see, which the status of the cluster queue tells.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from cockpit.backends.kubernetes.mapping.kueue import is_taken
from cockpit.backends.kubernetes.mapping.quantities import CPU, exact_request, quantity
from cockpit.backends.kubernetes.objects.kueue import (
    ClusterQueue,
    KueueCohort,
    KueueWorkload,
    LocalQueue,
    PodSet,
    ResourceFlavor,
    ResourceGroup,
)
from cockpit.backends.kubernetes.objects.meta import condition, millis
from cockpit.backends.kubernetes.objects.node import NodeTaint
from cockpit.backends.kubernetes.objects.pod import PodSpec, Quantities, Toleration
from cockpit.model.ids import Millis
from cockpit.sched.admission.forecast import AdmissionState
from cockpit.sched.admission.quotas import COHORT, CohortQuotas, FlavorResource, Quota
from cockpit.sched.admission.workloads import AdmissionQueue, AdmissionWorkload, FlavorGroup, PodSetRequest, Preempts

_KEEPS_OFF = frozenset({"NoSchedule", "NoExecute"})
_RESTORES_ORDER = frozenset({"PodsReadyTimeout", "AdmissionCheck"})
"""Evictions after which a workload queues as if it had come just then."""


class KueueObjects(NamedTuple):
    """Everything that was read of Kueue."""

    workloads: tuple[KueueWorkload, ...]
    cluster_queues: tuple[ClusterQueue, ...]
    local_queues: tuple[LocalQueue, ...] = ()
    cohorts: tuple[KueueCohort, ...] = ()
    flavors: tuple[ResourceFlavor, ...] = ()
    sees_all: bool = True
    """Whether the user sees the workloads of all namespaces."""

    @property
    def has_fair_sharing(self) -> bool:
        """Whether Kueue orders jobs of a cohort by what their queues borrow, and not by their priority."""
        return any(each.status.fair_sharing is not None for each in self.cluster_queues)

    def share_of(self, queue: str) -> int | None:
        """Return a cluster queue's weighted share; None: there is no fair sharing."""
        found = next((each.status.fair_sharing for each in self.cluster_queues if each.metadata.name == queue), None)
        return found.weighted_share if found is not None else None


def admission_state(objects: KueueObjects) -> AdmissionState:
    """Return the queues with their quotas and jobs."""
    quotas = _cohort_quotas(objects)
    queues = {each.metadata.name: _queue(each) for each in objects.cluster_queues}
    of_local = {(each.metadata.namespace, each.metadata.name): each for each in objects.local_queues}
    flavors = {each.metadata.name: each for each in objects.flavors}
    workloads: list[AdmissionWorkload] = []
    for each in objects.workloads:  # step 2
        workload = workload_of(each, of_local, queues, flavors)
        if workload is None:
            continue
        workloads.append(workload)
        quotas.change(workload.queue, workload.usage)
    if not objects.sees_all:
        for queue in objects.cluster_queues:  # step 3
            quotas.change(queue.metadata.name, _unseen_use(queue, quotas))
    return AdmissionState(quotas, queues.values(), workloads)


def milli(amount: str | float) -> int:
    """Return an amount in thousandths, rounded up."""
    return math.ceil(1000 * quantity(amount))


def workload_of(
    workload: KueueWorkload,
    local_queues: Mapping[tuple[str, str], LocalQueue],
    queues: Mapping[str, AdmissionQueue],
    flavors: Mapping[str, ResourceFlavor],
) -> AdmissionWorkload | None:
    """Return the workload as the core's rules see it; None: it has ended, is stopped, or its queue is unknown, is
    stopped or does not take it."""
    spec, meta = workload.spec, workload.metadata
    if workload.is_finished:
        return None
    admission = workload.status.admission
    # One that is evicted for another reason than a preemption loses its quota in a moment, and waits again.
    if admission is not None and workload.has_quota and (workload.is_ending or not workload.has("Evicted")):
        usage: dict[FlavorResource, int] = {}
        for each in admission.pod_set_assignments:
            for resource, amount in (each.resource_usage or {}).items():
                cell = FlavorResource((each.flavors or {}).get(resource, ""), resource)
                usage[cell] = usage.get(cell, 0) + milli(amount)
        reserved = condition(workload.status.conditions, "QuotaReserved")
        at = millis(reserved.last_transition_time) if reserved is not None else None
        queue = admission.cluster_queue
        # What it asks for counts again once it is preempted.
        requests = pod_set_requests(workload, queues.get(queue), flavors)
        return AdmissionWorkload(
            meta.uid,
            queue,
            spec.priority or 0,
            _since(workload),
            requests,
            usage,
            admitted_at=at or Millis(0),
            ending=workload.is_ending,
        )
    local = local_queues.get((meta.namespace, spec.queue_name))
    if local is None or not spec.active or not is_taken(workload) or (local.spec.stop_policy or "None") != "None":
        return None
    requests = pod_set_requests(workload, queues.get(local.spec.cluster_queue), flavors)
    return AdmissionWorkload(meta.uid, local.spec.cluster_queue, spec.priority or 0, _since(workload), requests)


def pod_set_requests(
    workload: KueueWorkload, queue: AdmissionQueue | None, flavors: Mapping[str, ResourceFlavor]
) -> tuple[PodSetRequest, ...]:
    """Return what each pod set requests, and the flavors that it cannot use."""
    counted = {each.name: each.resources for each in workload.status.resource_requests or ()}
    names = dict.fromkeys(flavor for group in (queue.groups if queue is not None else ()) for flavor in group.flavors)
    counts_pods = queue is not None and any("pods" in group.resources for group in queue.groups)
    return tuple(
        PodSetRequest(
            each.name,
            _total(each, counted.get(each.name), counts_pods=counts_pods),
            {name: why for name in names if (why := _exclusion(each.template.spec, flavors.get(name)))},
        )
        for each in workload.spec.pod_sets
    )


def _total(each: PodSet, counted: Quantities | None, *, counts_pods: bool) -> dict[str, int]:
    if counted is not None:
        return {name: milli(amount) for name, amount in counted.items()}
    own = {
        name: amount * each.count * (1 if name == CPU else 1000) for name, amount in exact_request(each.template.spec)
    }
    return {**own, "pods": 1000 * each.count} if counts_pods else own


def _since(workload: KueueWorkload) -> Millis:
    evicted = condition(workload.status.conditions, "Evicted")
    if evicted is not None and evicted.is_true and evicted.reason in _RESTORES_ORDER:
        return millis(evicted.last_transition_time) or workload.metadata.created_at
    return workload.metadata.created_at


def _exclusion(spec: PodSpec, flavor: ResourceFlavor | None) -> str:
    """Return why pods cannot run on a flavor's nodes; empty: they can. Labels that the flavor does not name count as
    matching: they are the scheduler's concern."""
    if flavor is None:
        return ""
    labels = flavor.spec.node_labels or {}
    if any(labels.get(key, value) != value for key, value in (spec.node_selector or {}).items()):
        return "other node labels"
    tolerations = (*(spec.tolerations or ()), *(flavor.spec.tolerations or ()))
    for taint in flavor.spec.node_taints or ():
        if taint.effect in _KEEPS_OFF and not any(_tolerates(each, taint) for each in tolerations):
            return f"the taint {taint.key}={taint.value}" if taint.value else f"the taint {taint.key}"
    return ""


def _tolerates(toleration: Toleration, taint: NodeTaint) -> bool:
    if toleration.effect not in {"", taint.effect} or toleration.key not in {"", taint.key}:
        return False
    return toleration.operator == "Exists" or (toleration.key != "" and toleration.value == taint.value)


def _cohort_quotas(objects: KueueObjects) -> CohortQuotas:
    quotas: dict[str, dict[FlavorResource, Quota]] = {}
    parents: dict[str, str] = {}
    for queue in objects.cluster_queues:  # step 1
        quotas[queue.metadata.name] = _quotas_of(queue.spec.resource_groups)
        if queue.cohort:
            parents[queue.metadata.name] = COHORT + queue.cohort
    for cohort in objects.cohorts:
        quotas[COHORT + cohort.metadata.name] = _quotas_of(cohort.spec.resource_groups)
        if parent := cohort.spec.parent_name or cohort.spec.parent:
            parents[COHORT + cohort.metadata.name] = COHORT + parent
    return CohortQuotas(quotas, parents)


def _quotas_of(groups: Iterable[ResourceGroup] | None) -> dict[FlavorResource, Quota]:
    return {
        FlavorResource(flavor.name, each.name): Quota(
            milli(each.nominal_quota),
            None if each.borrowing_limit is None else milli(each.borrowing_limit),
            None if each.lending_limit is None else milli(each.lending_limit),
        )
        for group in groups or ()
        for flavor in group.flavors
        for each in flavor.resources
    }


def _queue(queue: ClusterQueue) -> AdmissionQueue:
    spec = queue.spec
    preemption, fungibility = spec.preemption, spec.flavor_fungibility
    borrow = preemption.borrow_within_cohort if preemption is not None else None
    return AdmissionQueue(
        queue.metadata.name,
        tuple(
            FlavorGroup(_resources(group), tuple(flavor.name for flavor in group.flavors))
            for group in spec.resource_groups or ()
        ),
        strict=spec.queueing_strategy == "StrictFIFO",
        within=_policy(preemption.within_cluster_queue if preemption is not None else ""),
        reclaim=_policy(preemption.reclaim_within_cohort if preemption is not None else ""),
        while_borrowing=borrow is not None and borrow.policy != "Never",
        threshold=borrow.max_priority_threshold if borrow is not None else None,
        next_flavor_before_borrowing=fungibility is not None and fungibility.when_can_borrow == "TryNextFlavor",
        next_flavor_before_preempting=fungibility is None or fungibility.when_can_preempt == "TryNextFlavor",
        preempts_before_borrowing=fungibility is not None and fungibility.preference == "PreemptionOverBorrowing",
        stopped=stopped_by(queue),
    )


def stopped_by(queue: ClusterQueue) -> str:
    """Return why a cluster queue admits nothing; empty: it does."""
    if (queue.spec.stop_policy or "None") != "None":
        return f"stopPolicy {queue.spec.stop_policy}"
    active = condition(queue.status.conditions, "Active")
    return active.message or active.reason if active is not None and not active.is_true else ""


def _resources(group: ResourceGroup) -> tuple[str, ...]:
    return group.covered_resources or tuple({each.name for flavor in group.flavors for each in flavor.resources})


def _policy(name: str) -> Preempts:
    return Preempts(name) if name in set(Preempts) else Preempts.NEVER


def _unseen_use(queue: ClusterQueue, quotas: CohortQuotas) -> dict[FlavorResource, int]:
    reserved = {
        FlavorResource(flavor.name, each.name): milli(each.total)
        for flavor in queue.status.flavors_reservation or queue.status.flavors_usage or ()
        for each in flavor.resources
    }
    seen = {cell: quotas.used(queue.metadata.name, cell) for cell in reserved}
    return {cell: amount - seen[cell] for cell, amount in reserved.items() if amount > seen[cell]}
