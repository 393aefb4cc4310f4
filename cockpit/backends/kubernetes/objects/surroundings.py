"""Objects around a waiting job: the volumes that its pods name, its namespace, and the quotas of that.

Source: core/v1 PersistentVolumeClaim, PersistentVolume, Namespace, ResourceQuota; storage/v1 StorageClass.
"""

from __future__ import annotations

import msgspec

from cockpit.backends.kubernetes.objects.meta import ObjectMeta
from cockpit.backends.kubernetes.objects.placing import NodeSelector
from cockpit.backends.kubernetes.objects.pod import Quantities


class ClaimSpec(msgspec.Struct, frozen=True, rename="camel"):
    """What a claim asks for."""

    storage_class_name: str | None = None
    """None: the cluster's default class."""
    volume_name: str = ""


class ClaimStatus(msgspec.Struct, frozen=True):
    """What a claim is at present."""

    phase: str = "Pending"


class VolumeClaim(msgspec.Struct, frozen=True):
    """A PersistentVolumeClaim."""

    metadata: ObjectMeta
    spec: ClaimSpec = ClaimSpec()
    status: ClaimStatus = ClaimStatus()


class Namespace(msgspec.Struct, frozen=True):
    """A namespace, of which queues select by labels."""

    metadata: ObjectMeta


class StorageClass(msgspec.Struct, frozen=True, rename="camel"):
    """A class of storage."""

    metadata: ObjectMeta
    volume_binding_mode: str = "Immediate"
    """`WaitForFirstConsumer`: a claim gets its volume only when a pod that uses it is placed."""


class VolumeNodeAffinity(msgspec.Struct, frozen=True):
    """The nodes that can use a volume."""

    required: NodeSelector | None = None


class PersistentVolumeSpec(msgspec.Struct, frozen=True, rename="camel"):
    """What a volume is."""

    node_affinity: VolumeNodeAffinity | None = None


class PersistentVolume(msgspec.Struct, frozen=True):
    """A volume."""

    metadata: ObjectMeta
    spec: PersistentVolumeSpec = PersistentVolumeSpec()


class QuotaSpec(msgspec.Struct, frozen=True, rename="camel"):
    """What a quota allows, and to which pods of its namespace it applies; without scopes, to all."""

    hard: Quantities | None = None
    scopes: tuple[str, ...] | None = None
    scope_selector: dict[str, object] | None = None


class QuotaStatus(msgspec.Struct, frozen=True):
    """What a quota allows, and what is used of it."""

    hard: Quantities | None = None
    used: Quantities | None = None


class ResourceQuota(msgspec.Struct, frozen=True):
    """The quota of a namespace."""

    metadata: ObjectMeta
    spec: QuotaSpec = QuotaSpec()
    status: QuotaStatus = QuotaStatus()
