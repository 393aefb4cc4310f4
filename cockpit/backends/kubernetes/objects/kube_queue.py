"""Queues of KubeQueue and quota trees. Sources: scheduling.x-k8s.io v1alpha1, QueueSpec, QueueUnitSpec and
QueueUnitStatus, with the fields that Koord-Queue adds; scheduling.sigs.k8s.io v1beta1, ElasticQuotaTreeSpec."""

from __future__ import annotations

from typing import Any

import msgspec

from cockpit.backends.kubernetes.objects.meta import ObjectMeta
from cockpit.backends.kubernetes.objects.pod import Quantities

SUSPEND = "scheduling.x-k8s.io/suspend"
"""Annotation of a job: `true` keeps its operator from creating pods, and has KubeQueue queue it."""


class Consumer(msgspec.Struct, frozen=True, rename="camel"):
    """The job of a queue unit."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    namespace: str = ""

    @property
    def group(self) -> str:
        return self.api_version.rpartition("/")[0]


class QueueUnitSpec(msgspec.Struct, frozen=True, rename="camel"):
    """What of a queue unit decides about its turn."""

    consumer_ref: Consumer | None = None
    queue: str = ""
    priority: int | None = None
    priority_class_name: str = ""
    resource: Quantities | None = None
    """What the whole job requests."""
    request: Quantities | None = None
    """What counts instead, in Koord-Queue."""
    active: bool | None = None
    """False: it is not dequeued (Koord-Queue)."""


class QueueUnitStatus(msgspec.Struct, frozen=True):
    """How far a queue unit is."""

    phase: str = ""
    """`Enqueued`, `Reserved`, `Dequeued`, `Running`, `Succeed`, `Failed`, `TimeoutBackoff`, or another word: each
    version adds some."""
    message: str = ""


class QueueUnit(msgspec.Struct, frozen=True):
    """A job's place in a queue."""

    metadata: ObjectMeta
    spec: QueueUnitSpec = QueueUnitSpec()
    status: QueueUnitStatus | None = None

    @property
    def phase(self) -> str:
        return self.status.phase if self.status is not None else ""

    @property
    def message(self) -> str:
        return self.status.message if self.status is not None else ""

    @property
    def wants(self) -> Quantities:
        """What the whole job requests."""
        return self.spec.request or self.spec.resource or {}


class KubeQueueSpec(msgspec.Struct, frozen=True, rename="camel"):
    """How a queue orders its units."""

    queue_policy: str = ""
    priority: int | None = None


class KubeQueue(msgspec.Struct, frozen=True):
    """A queue. Where a quota tree is in force, KubeQueue makes one for each of its nodes."""

    metadata: ObjectMeta
    spec: KubeQueueSpec = KubeQueueSpec()


class ElasticQuota(msgspec.Struct, frozen=True):
    """A node of a quota tree."""

    name: str = ""
    min: Quantities | None = None
    max: Quantities | None = None
    namespaces: tuple[str, ...] | None = None
    children: tuple[ElasticQuota, ...] | None = None
    attributes: dict[str, Any] | None = None
    """What the scheduler reads, as texts: `resourceflavors` ties the node's jobs to nodes."""


class ElasticQuotaTreeSpec(msgspec.Struct, frozen=True):
    """The root of a quota tree, as it was sent: a tree that cannot be read must not end the watch of the others."""

    root: msgspec.Raw = msgspec.Raw(b"{}")


class ElasticQuotaTree(msgspec.Struct, frozen=True):
    """A quota tree."""

    metadata: ObjectMeta
    spec: ElasticQuotaTreeSpec = ElasticQuotaTreeSpec()
