"""Objects of a fleet's host. Sources: policy.karmada.io v1alpha1, PropagationSpec; the same of
policy.one.alibabacloud.com, with `customSchedulingType` and `suspension.scheduling`; work.karmada.io v1alpha2,
ResourceBinding; cluster.karmada.io v1alpha1, Cluster."""

from __future__ import annotations

from datetime import datetime

import msgspec

from cockpit.backends.kubernetes.objects.meta import Condition, ObjectMeta, condition
from cockpit.backends.kubernetes.objects.node import NodeTaint
from cockpit.backends.kubernetes.objects.placing import LabelSelector
from cockpit.backends.kubernetes.objects.pod import Quantities, Toleration
from cockpit.backends.kubernetes.resources import Resource

ACK_GROUP = "policy.one.alibabacloud.com"
KARMADA_GROUP = "policy.karmada.io"
ACK_POLICIES = Resource(ACK_GROUP, "v1alpha1", "propagationpolicies", "PropagationPolicy")
KARMADA_POLICIES = Resource(KARMADA_GROUP, "v1alpha1", "propagationpolicies", "PropagationPolicy")
ACK_CLUSTER_POLICIES = Resource(
    ACK_GROUP, "v1alpha1", "clusterpropagationpolicies", "ClusterPropagationPolicy", namespaced=False
)
KARMADA_CLUSTER_POLICIES = Resource(
    KARMADA_GROUP, "v1alpha1", "clusterpropagationpolicies", "ClusterPropagationPolicy", namespaced=False
)
BINDINGS = Resource("work.karmada.io", "v1alpha2", "resourcebindings", "ResourceBinding")
CLUSTERS = Resource("cluster.karmada.io", "v1alpha1", "clusters", "Cluster", namespaced=False)
POLICIES = (ACK_POLICIES, KARMADA_POLICIES)
"""The kinds of a job's own policy; that of ACK One first, which can do more."""
FLEET_KINDS = (*POLICIES, ACK_CLUSTER_POLICIES, KARMADA_CLUSTER_POLICIES, BINDINGS, CLUSTERS)


class ResourceSelector(msgspec.Struct, frozen=True, rename="camel"):
    """Objects that a policy is about."""

    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    label_selector: LabelSelector | None = None


class Suspended(msgspec.Struct, frozen=True):
    """What a policy or a binding suspends."""

    scheduling: bool | None = None
    dispatching: bool | None = None


class DecisionConditions(msgspec.Struct, frozen=True, rename="camel"):
    """When a failed placement is given up."""

    toleration_seconds: int | None = None


class ApplicationFailover(msgspec.Struct, frozen=True, rename="camel"):
    """What becomes of a placement where the job fails."""

    decision_conditions: DecisionConditions = DecisionConditions()
    purge_mode: str = ""


class Failover(msgspec.Struct, frozen=True):
    """What becomes of failed placements."""

    application: ApplicationFailover | None = None


class ReplicaScheduling(msgspec.Struct, frozen=True, rename="camel"):
    """How replicas are divided."""

    replica_scheduling_type: str = ""
    custom_scheduling_type: str = ""


class ClusterAffinity(msgspec.Struct, frozen=True, rename="camel"):
    """The members that a policy allows, by name. Selectors by labels and fields are left to the fleet."""

    cluster_names: tuple[str, ...] | None = None
    exclude: tuple[str, ...] | None = None


class PolicyPlacement(msgspec.Struct, frozen=True, rename="camel"):
    """Where a policy sends what it selects."""

    cluster_affinity: ClusterAffinity | None = None
    cluster_tolerations: tuple[Toleration, ...] | None = None
    replica_scheduling: ReplicaScheduling | None = None
    custom_scheduling_type: str = ""


class PolicySpec(msgspec.Struct, frozen=True, rename="camel"):
    """What a policy is about, and what it wants."""

    resource_selectors: tuple[ResourceSelector, ...] = ()
    propagate_deps: bool = False
    placement: PolicyPlacement = PolicyPlacement()
    failover: Failover | None = None
    suspension: Suspended | None = None
    priority: int | None = None


class PropagationPolicy(msgspec.Struct, frozen=True, rename="camel"):
    """A policy that sends objects to members of the fleet."""

    metadata: ObjectMeta
    spec: PolicySpec = PolicySpec()

    @property
    def is_suspended(self) -> bool:
        """Whether it keeps what it selects from being scheduled."""
        return bool(self.spec.suspension is not None and self.spec.suspension.scheduling)


class BoundObject(msgspec.Struct, frozen=True, rename="camel"):
    """The object of a binding."""

    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""

    @property
    def group(self) -> str:
        return self.api_version.rpartition("/")[0]


class TargetComponent(msgspec.Struct, frozen=True):
    """The replicas of one role on a member."""

    name: str = ""
    replicas: int = 0


class TargetCluster(msgspec.Struct, frozen=True):
    """A member that gets the object."""

    name: str
    replicas: int = 0
    components: tuple[TargetComponent, ...] | None = None


class EvictionTask(msgspec.Struct, frozen=True, rename="camel"):
    """A placement that is being taken back."""

    from_cluster: str = ""
    reason: str = ""
    message: str = ""
    creation_timestamp: datetime | None = None


class BindingSpec(msgspec.Struct, frozen=True, rename="camel"):
    """Where an object goes."""

    resource: BoundObject = BoundObject()
    clusters: tuple[TargetCluster, ...] | None = None
    suspension: Suspended | None = None
    failover: Failover | None = None
    graceful_eviction_tasks: tuple[EvictionTask, ...] | None = None


class MemberStatus(msgspec.Struct, frozen=True, rename="camel"):
    """What a member reports of its object."""

    cluster_name: str = ""
    status: msgspec.Raw = msgspec.Raw(b"{}")
    """As the member's object has it; each kind has its own."""
    applied: bool = False
    applied_message: str = ""
    health: str = ""


class BindingStatus(msgspec.Struct, frozen=True, rename="camel"):
    """What became of a binding."""

    conditions: tuple[Condition, ...] | None = None
    aggregated_status: tuple[MemberStatus, ...] | None = None


class ResourceBinding(msgspec.Struct, frozen=True):
    """An object with the members that it is sent to."""

    metadata: ObjectMeta
    spec: BindingSpec = BindingSpec()
    status: BindingStatus = BindingStatus()

    @property
    def scheduled(self) -> Condition | None:
        return condition(self.status.conditions, "Scheduled")


class ModelRange(msgspec.Struct, frozen=True):
    """How much of a resource a node of a grade has free at least."""

    name: str = ""
    min: str | int | float = 0


class ResourceModel(msgspec.Struct, frozen=True):
    """A grade of a member's nodes, by what they have free."""

    grade: int = 0
    ranges: tuple[ModelRange, ...] | None = None


class ModelCount(msgspec.Struct, frozen=True):
    """The number of a member's nodes of one grade."""

    grade: int = 0
    count: int = 0


class ClusterSpec(msgspec.Struct, frozen=True, rename="camel"):
    """How a member is reached."""

    api_endpoint: str = ""
    taints: tuple[NodeTaint, ...] | None = None
    resource_models: tuple[ResourceModel, ...] | None = None


class ResourceSummary(msgspec.Struct, frozen=True, rename="camel"):
    """The sums of a member's resources."""

    allocatable: Quantities | None = None
    allocated: Quantities | None = None
    allocating: Quantities | None = None
    """What pods without a node ask for."""
    allocatable_modelings: tuple[ModelCount, ...] | None = None


class NodeSummary(msgspec.Struct, frozen=True, rename="camel"):
    """The number of a member's nodes."""

    total_num: int = 0
    ready_num: int = 0


class ApiEnablement(msgspec.Struct, frozen=True, rename="camel"):
    """An API group that a member serves."""

    group_version: str = ""
    resources: tuple[BoundObject, ...] | None = None


class ClusterStatus(msgspec.Struct, frozen=True, rename="camel"):
    """What the fleet knows of a member."""

    kubernetes_version: str = ""
    conditions: tuple[Condition, ...] | None = None
    resource_summary: ResourceSummary | None = None
    node_summary: NodeSummary | None = None
    api_enablements: tuple[ApiEnablement, ...] | None = None


class MemberCluster(msgspec.Struct, frozen=True):
    """A member of the fleet."""

    metadata: ObjectMeta
    spec: ClusterSpec = ClusterSpec()
    status: ClusterStatus = ClusterStatus()

    @property
    def ready(self) -> Condition | None:
        return condition(self.status.conditions, "Ready")
