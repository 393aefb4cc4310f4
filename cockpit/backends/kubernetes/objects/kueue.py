"""Queues and quotas of Kueue. Source: kueue.x-k8s.io v1beta1 and v1beta2, WorkloadSpec, WorkloadStatus,
ClusterQueueSpec, ClusterQueueStatus, LocalQueueSpec, CohortSpec, ResourceFlavorSpec; visibility.kueue.x-k8s.io."""

from __future__ import annotations

from datetime import datetime

import msgspec

from cockpit.backends.kubernetes.objects.meta import Condition, ObjectMeta, condition
from cockpit.backends.kubernetes.objects.node import NodeTaint
from cockpit.backends.kubernetes.objects.placing import LabelSelector
from cockpit.backends.kubernetes.objects.pod import PodTemplate, Quantities, Toleration

Amount = str | int | float


class PodSet(msgspec.Struct, frozen=True, gc=False):
    """Equal pods of a workload."""

    name: str = "main"
    count: int = 1
    template: PodTemplate = PodTemplate()


class KueueWorkloadSpec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """What of a workload decides about its admission."""

    queue_name: str = ""
    active: bool = True
    """False: an administrator or the user has stopped its admission."""
    priority: int | None = None
    """The number that orders the queue: the value of a WorkloadPriorityClass, else that of the pods' class."""
    pod_sets: tuple[PodSet, ...] = ()
    maximum_execution_time_seconds: int | None = None


class PodSetAssignment(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The flavors that a pod set got, and what it uses of them."""

    name: str = "main"
    flavors: dict[str, str] | None = None
    resource_usage: Quantities | None = None


class KueueAdmission(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The quota that a workload has."""

    cluster_queue: str = ""
    pod_set_assignments: tuple[PodSetAssignment, ...] = ()


class AdmissionCheck(msgspec.Struct, frozen=True, gc=False):
    """A check that another controller makes before the admission."""

    name: str = ""
    state: str = ""
    """`Pending`, `Ready`, `Retry` or `Rejected`."""
    message: str = ""


class RequeueState(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """How often a workload was put back since its pods were not ready, and until when it waits for that."""

    count: int | None = None
    requeue_at: datetime | None = None


class PodSetRequestStatus(msgspec.Struct, frozen=True, gc=False):
    """What a pod set requests together, as Kueue counts it."""

    name: str = "main"
    resources: Quantities | None = None


class KueueWorkloadStatus(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """How far a workload is."""

    conditions: tuple[Condition, ...] | None = None
    admission: KueueAdmission | None = None
    admission_checks: tuple[AdmissionCheck, ...] | None = None
    requeue_state: RequeueState | None = None
    resource_requests: tuple[PodSetRequestStatus, ...] | None = None


class KueueWorkload(msgspec.Struct, frozen=True, gc=False):
    """A job as Kueue sees it; the job controls it."""

    metadata: ObjectMeta
    spec: KueueWorkloadSpec = KueueWorkloadSpec()
    status: KueueWorkloadStatus = KueueWorkloadStatus()

    @property
    def is_admitted(self) -> bool:
        return self.has("Admitted")

    @property
    def has_quota(self) -> bool:
        return self.has("QuotaReserved")

    @property
    def is_finished(self) -> bool:
        return self.has("Finished")

    @property
    def is_ending(self) -> bool:
        """Whether it was preempted and keeps its quota until its pods have ended."""
        return self.has_quota and self.has("Evicted") and self.has("Preempted") and not self.is_finished

    def has(self, kind: str) -> bool:
        """Return whether a condition is true."""
        found = condition(self.status.conditions, kind)
        return found is not None and found.is_true


class NamedQuota(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The quota of a resource in a flavor."""

    name: str
    nominal_quota: Amount = 0
    borrowing_limit: Amount | None = None
    """How much more the queue may borrow of its cohort; None: without bound, if it has a cohort."""
    lending_limit: Amount | None = None
    """How much of its quota it lends; None: all."""


class Flavor(msgspec.Struct, frozen=True, gc=False):
    """A kind of nodes, with the quotas there."""

    name: str
    resources: tuple[NamedQuota, ...] = ()


class ResourceGroup(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """Resources that share their flavors."""

    covered_resources: tuple[str, ...] = ()
    flavors: tuple[Flavor, ...] = ()


class BorrowWithinCohort(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """Whether it preempts in the cohort for what it would borrow itself."""

    policy: str = "Never"
    max_priority_threshold: int | None = None


class QueuePreemption(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """Which jobs a queue's jobs may preempt."""

    within_cluster_queue: str = "Never"
    reclaim_within_cohort: str = "Never"
    borrow_within_cohort: BorrowWithinCohort | None = None


class FlavorFungibility(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """When a further flavor is tried."""

    when_can_borrow: str = "MayStopSearch"
    when_can_preempt: str = "TryNextFlavor"
    preference: str | None = None


class NamedCheck(msgspec.Struct, frozen=True, gc=False):
    """An admission check that a queue names."""

    name: str = ""


class ChecksStrategy(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The admission checks of a queue, each for some of its flavors or for all."""

    admission_checks: tuple[NamedCheck, ...] | None = None


class ClusterQueueSpec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """What a queue may use."""

    cohort: str = ""
    cohort_name: str = ""
    """The cohort's name since v1beta2."""
    resource_groups: tuple[ResourceGroup, ...] | None = None
    queueing_strategy: str = "BestEffortFIFO"
    preemption: QueuePreemption | None = None
    flavor_fungibility: FlavorFungibility | None = None
    stop_policy: str | None = None
    namespace_selector: LabelSelector | None = None
    """The namespaces whose jobs it takes; None: of none."""
    admission_checks: tuple[str, ...] | None = None
    """The checks of v1beta1, for all flavors."""
    admission_checks_strategy: ChecksStrategy | None = None


class UsedAmount(msgspec.Struct, frozen=True, gc=False):
    """The use of a resource in a flavor."""

    name: str
    total: Amount = 0


class UsedFlavor(msgspec.Struct, frozen=True, gc=False):
    """The use of a flavor."""

    name: str
    resources: tuple[UsedAmount, ...] = ()


class FairShare(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """How much a queue borrows in proportion to its weight; present where fair sharing is on."""

    weighted_share: int = 0


class ClusterQueueStatus(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """What a queue uses."""

    flavors_usage: tuple[UsedFlavor, ...] | None = None
    flavors_reservation: tuple[UsedFlavor, ...] | None = None
    """The quota that is reserved, also for jobs whose admission checks are pending."""
    pending_workloads: int = 0
    admitted_workloads: int = 0
    conditions: tuple[Condition, ...] | None = None
    fair_sharing: FairShare | None = None


class ClusterQueue(msgspec.Struct, frozen=True, gc=False):
    """A queue with its quotas."""

    metadata: ObjectMeta
    spec: ClusterQueueSpec = ClusterQueueSpec()
    status: ClusterQueueStatus = ClusterQueueStatus()

    @property
    def cohort(self) -> str:
        return self.spec.cohort_name or self.spec.cohort

    @property
    def checks(self) -> tuple[str, ...]:
        """The checks that come between a job's quota and its start."""
        strategy = self.spec.admission_checks_strategy
        named = strategy.admission_checks or () if strategy is not None else ()
        return self.spec.admission_checks or tuple(each.name for each in named)


class LocalQueueSpec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The cluster queue of a namespace's queue."""

    cluster_queue: str = ""
    stop_policy: str | None = None


class LocalQueueStatus(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """What of a queue of a namespace waits and runs."""

    pending_workloads: int = 0
    admitted_workloads: int = 0
    flavors_usage: tuple[UsedFlavor, ...] | None = None
    conditions: tuple[Condition, ...] | None = None


class LocalQueue(msgspec.Struct, frozen=True, gc=False):
    """The queue of a namespace, which jobs name."""

    metadata: ObjectMeta
    spec: LocalQueueSpec = LocalQueueSpec()
    status: LocalQueueStatus = LocalQueueStatus()


class CohortSpec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """A group of queues and cohorts with a quota of its own, which all of them share."""

    parent: str = ""
    parent_name: str = ""
    """The parent's name since v1beta1."""
    resource_groups: tuple[ResourceGroup, ...] | None = None


class KueueCohort(msgspec.Struct, frozen=True, gc=False):
    """A cohort. Cohorts that queues name need no object of their own."""

    metadata: ObjectMeta
    spec: CohortSpec = CohortSpec()


class ResourceFlavorSpec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The nodes of a flavor, by their labels and taints."""

    node_labels: dict[str, str] | None = None
    node_taints: tuple[NodeTaint, ...] | None = None
    tolerations: tuple[Toleration, ...] | None = None


class ResourceFlavor(msgspec.Struct, frozen=True, gc=False):
    """A kind of nodes that quotas are about."""

    metadata: ObjectMeta
    spec: ResourceFlavorSpec = ResourceFlavorSpec()


class PendingWorkload(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The positions of a workload in its queues, from 0."""

    metadata: ObjectMeta
    position_in_cluster_queue: int = 0
    position_in_local_queue: int = 0


class PendingWorkloads(msgspec.Struct, frozen=True, gc=False):
    """What the visibility API tells of a queue."""

    items: tuple[PendingWorkload, ...] = ()
