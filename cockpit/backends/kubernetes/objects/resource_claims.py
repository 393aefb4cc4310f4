"""Dynamic resource allocation. Source: resource.k8s.io/v1 ResourceSlice, ResourceClaim."""

from __future__ import annotations

import msgspec

from cockpit.backends.kubernetes.objects.meta import ObjectMeta


class Value(msgspec.Struct, frozen=True):
    """An amount of a capacity or a counter."""

    value: str = "0"


class Attribute(msgspec.Struct, frozen=True):
    """A property of a device; only texts are read."""

    string: str = ""


class Consumed(msgspec.Struct, frozen=True, rename="camel"):
    """What a device takes of a counter set: devices that take from one set are parts of one piece of hardware."""

    counter_set: str = ""
    counters: dict[str, Value] | None = None


class SliceDevice(msgspec.Struct, frozen=True, rename="camel"):
    """A device of a pool."""

    name: str = ""
    attributes: dict[str, Attribute] | None = None
    capacity: dict[str, Value] | None = None
    consumes_counters: tuple[Consumed, ...] | None = None
    allow_multiple_allocations: bool | None = None


class CounterSet(msgspec.Struct, frozen=True):
    """The counters of one piece of hardware that can be cut."""

    name: str = ""
    counters: dict[str, Value] | None = None


class Pool(msgspec.Struct, frozen=True, rename="camel"):
    """The pool that the slice is a piece of. Only slices of its highest generation count."""

    name: str = ""
    generation: int = 0
    resource_slice_count: int = 1


class SliceSpec(msgspec.Struct, frozen=True, rename="camel"):
    """Devices of a pool."""

    driver: str = ""
    pool: Pool = Pool()
    node_name: str = ""
    """The node that has the devices; empty: several nodes reach them."""
    devices: tuple[SliceDevice, ...] | None = None
    shared_counters: tuple[CounterSet, ...] | None = None


class ResourceSlice(msgspec.Struct, frozen=True):
    """Some or all devices of a pool."""

    metadata: ObjectMeta
    spec: SliceSpec = SliceSpec()


class ExactRequest(msgspec.Struct, frozen=True, rename="camel"):
    """A number of devices of one class."""

    device_class_name: str = ""
    allocation_mode: str = "ExactCount"
    count: int = 1


class DeviceRequest(msgspec.Struct, frozen=True, rename="camel"):
    """Devices of one class, or of the first of several classes that has some."""

    name: str = ""
    exactly: ExactRequest | None = None
    first_available: tuple[ExactRequest, ...] | None = None


class ClaimDevices(msgspec.Struct, frozen=True):
    """The requested devices."""

    requests: tuple[DeviceRequest, ...] | None = None


class ClaimSpec(msgspec.Struct, frozen=True):
    """What is requested."""

    devices: ClaimDevices = ClaimDevices()


class ClaimTemplateSpec(msgspec.Struct, frozen=True):
    """The claim that is made for each pod."""

    spec: ClaimSpec = ClaimSpec()


class ResourceClaimTemplate(msgspec.Struct, frozen=True):
    """A claim that each pod which names it gets for itself."""

    metadata: ObjectMeta
    spec: ClaimTemplateSpec = ClaimTemplateSpec()


class AllocatedDevice(msgspec.Struct, frozen=True, rename="camel"):
    """A device, or a part of one, that the claim got."""

    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool | None = None
    """Whether it is only looked at: it occupies nothing then."""
    consumed_capacity: dict[str, str | int] | None = None
    """The part of a device that several claims share."""


class AllocatedDevices(msgspec.Struct, frozen=True):
    """All devices that the claim got."""

    results: tuple[AllocatedDevice, ...] | None = None


class Allocation(msgspec.Struct, frozen=True):
    """The result of the scheduler."""

    devices: AllocatedDevices = AllocatedDevices()


class Consumer(msgspec.Struct, frozen=True):
    """A pod that uses the claim."""

    resource: str = ""
    uid: str = ""


class ClaimStatus(msgspec.Struct, frozen=True, rename="camel"):
    """What the claim has."""

    allocation: Allocation | None = None
    reserved_for: tuple[Consumer, ...] | None = None


class ResourceClaim(msgspec.Struct, frozen=True):
    """A request for devices, for one pod or shared by several."""

    metadata: ObjectMeta
    spec: ClaimSpec = ClaimSpec()
    status: ClaimStatus = ClaimStatus()

    @property
    def results(self) -> tuple[AllocatedDevice, ...]:
        """The devices that it occupies."""
        allocation = self.status.allocation
        results = (allocation.devices.results or ()) if allocation is not None else ()
        return tuple(each for each in results if not each.admin_access)

    @property
    def users(self) -> int:
        """The number of pods that share it; at least 1."""
        return max(1, sum(each.resource == "pods" for each in self.status.reserved_for or ()))
