"""Queues and quotas of Kueue. Source: kueue.x-k8s.io v1beta1, WorkloadSpec, WorkloadStatus, ClusterQueueSpec,
ClusterQueueStatus, LocalQueueSpec."""

from __future__ import annotations

import msgspec

from cockpit.backends.kubernetes.objects.meta import Condition, ObjectMeta, condition


class KueueWorkloadSpec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """What of a workload decides about its admission."""

    queue_name: str = ""
    active: bool = True
    """False: an administrator or the user has stopped its admission."""
    priority: int | None = None
    """The number that orders the queue: the value of a WorkloadPriorityClass, else that of the pods' class."""


class KueueWorkloadStatus(msgspec.Struct, frozen=True, gc=False):
    """How far a workload is."""

    conditions: tuple[Condition, ...] | None = None


class KueueWorkload(msgspec.Struct, frozen=True, gc=False):
    """A job as Kueue sees it; the job controls it."""

    metadata: ObjectMeta
    spec: KueueWorkloadSpec = KueueWorkloadSpec()
    status: KueueWorkloadStatus = KueueWorkloadStatus()

    @property
    def is_admitted(self) -> bool:
        found = condition(self.status.conditions, "Admitted")
        return found is not None and found.is_true


Amount = str | int | float


class NamedQuota(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The quota of a resource in a flavor."""

    name: str
    nominal_quota: Amount = 0
    borrowing_limit: Amount | None = None
    """How much more the queue may borrow of its cohort; None: without bound, if it has a cohort."""


class Flavor(msgspec.Struct, frozen=True, gc=False):
    """A kind of nodes, with the quotas there."""

    name: str
    resources: tuple[NamedQuota, ...] = ()


class ResourceGroup(msgspec.Struct, frozen=True, gc=False):
    """Resources that share their flavors."""

    flavors: tuple[Flavor, ...] = ()


class ClusterQueueSpec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """What a queue may use."""

    cohort: str = ""
    cohort_name: str = ""
    """The cohort's name since v1beta2."""
    resource_groups: tuple[ResourceGroup, ...] | None = None


class UsedAmount(msgspec.Struct, frozen=True, gc=False):
    """The use of a resource in a flavor."""

    name: str
    total: Amount = 0


class UsedFlavor(msgspec.Struct, frozen=True, gc=False):
    """The use of a flavor."""

    name: str
    resources: tuple[UsedAmount, ...] = ()


class ClusterQueueStatus(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """What a queue uses."""

    flavors_usage: tuple[UsedFlavor, ...] | None = None
    pending_workloads: int = 0
    admitted_workloads: int = 0


class ClusterQueue(msgspec.Struct, frozen=True, gc=False):
    """A queue with its quotas."""

    metadata: ObjectMeta
    spec: ClusterQueueSpec = ClusterQueueSpec()
    status: ClusterQueueStatus = ClusterQueueStatus()


class LocalQueueSpec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The cluster queue of a namespace's queue."""

    cluster_queue: str = ""


class LocalQueue(msgspec.Struct, frozen=True, gc=False):
    """The queue of a namespace, which jobs name."""

    metadata: ObjectMeta
    spec: LocalQueueSpec = LocalQueueSpec()
