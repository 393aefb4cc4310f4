"""Koordinator's inventory of a node's devices. Source: scheduling.koordinator.sh/v1alpha1 Device."""

from __future__ import annotations

import msgspec

from cockpit.backends.kubernetes.objects.meta import ObjectMeta
from cockpit.backends.kubernetes.objects.pod import Quantities

GPU = "gpu"
"""The type of devices that are cards; others are network adapters and FPGAs."""


class DeviceInfo(msgspec.Struct, frozen=True):
    """One device of the node."""

    type: str = ""
    id: str = ""
    """The UUID."""
    minor: int | None = None
    """The number by which allocations name it."""
    health: bool = False
    labels: dict[str, str] | None = None
    resources: Quantities | None = None


class DeviceSpec(msgspec.Struct, frozen=True):
    """All devices of the node."""

    devices: tuple[DeviceInfo, ...] | None = None


class Device(msgspec.Struct, frozen=True):
    """The devices of the node that has the object's name."""

    metadata: ObjectMeta
    spec: DeviceSpec = DeviceSpec()
