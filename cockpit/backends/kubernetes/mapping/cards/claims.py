"""Dynamic resource allocation: drivers publish devices in slices, and claims of pods get some of them.

1. A device is a card if its driver's name has a word for cards, such as `gpu.nvidia.com`. Slices of several nodes
   are of no node, and their devices are left out.
2. Devices that consume counters of one set are parts of one card. The part of a device is that of its memory, else
   the largest part that it has of any counter.
3. A device that allows several allocations is shared by its capacity: the part is that of the memory, else the largest.
4. Pods that share one claim share its devices without a fixed part, so each is shown with an equal one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import NamedTuple

from cockpit.backends.kubernetes.mapping.cards.models import card_model, short_model
from cockpit.backends.kubernetes.mapping.cards.scheme import (
    NodeSource,
    Part,
    PodSource,
    SchemeCards,
    Share,
    share_milli,
)
from cockpit.backends.kubernetes.mapping.quantities import quantity
from cockpit.backends.kubernetes.objects.resource_claims import (
    AllocatedDevice,
    ClaimSpec,
    Consumed,
    DeviceRequest,
    ResourceClaim,
    ResourceSlice,
    SliceDevice,
    Value,
)
from cockpit.model.node import Card, CardVendor
from cockpit.model.spec import WHOLE_CARD

_CARD_WORD = re.compile(r"(?:^|[.-])v?(?:gpu|npu|tpu|mlu|dcu|xpu|neuron|accelerator)s?(?:[.-]|$)")
_MEMORY = "memory"
_PIECES = re.compile(r"(\D*)(\d{0,9})")
_MIB = 1024**2
_PRODUCT = ("productName", "product", "model")
"""Attributes that name the model, without the driver's domain before them."""
_UUID = "uuid"
_VENDORS = (("nvidia", CardVendor.NVIDIA), ("amd", CardVendor.ROCM), ("huawei", CardVendor.ASCEND))


class ResourceClaims:
    """Devices of resource slices."""

    def cards(self, source: NodeSource) -> SchemeCards | None:
        cards: dict[str, Card] = {}
        parts: dict[str, tuple[Part, ...]] = {}
        largest: dict[str, int] = {}
        own_model = card_model(source.meta.labels or {})
        for pool in _pools(source.slices):
            vendor = next((each for word, each in _VENDORS if word in pool.driver), CardVendor.OTHER)
            for device in pool.devices:
                parts[pool.name_of(device.name)] = own = pool.parts(device)
                for part in own:
                    # Of the devices that a card can be cut into the largest is the card itself.
                    if part.milli <= largest.get(part.card, 0):
                        continue
                    largest[part.card] = part.milli
                    cards[part.card] = Card(
                        index=cards[part.card].index if part.card in cards else len(cards),
                        model=short_model(_attribute(device, _PRODUCT)) or own_model or pool.driver.partition(".")[0],
                        vendor=vendor,
                        memory_mib=pool.memory_mib(device),
                        uuid=_attribute(device, (_UUID,)),
                    )
        return SchemeCards(cards, parts=parts) if cards else None

    def shares(self, source: PodSource, node: SchemeCards) -> tuple[Share, ...] | None:
        held = [share for claim in source.claims for share in _shares(claim, node)]
        return tuple(held) if held else None


def is_card(driver: str) -> bool:
    """Return whether a driver's, or a device class's, devices are cards, by its name."""
    return _CARD_WORD.search(driver.lower()) is not None


def claimed_milli(claim: ResourceClaim) -> int:
    """Return the cards that a claim requests, in thousandths; of an allocated one those that it has."""
    if claim.results:
        return WHOLE_CARD * sum(is_card(each.driver) for each in claim.results)
    return requested_milli(claim.spec)


def requested_milli(spec: ClaimSpec) -> int:
    """Return the cards that a claim requests before it is allocated, in thousandths."""
    return WHOLE_CARD * sum(map(_requested, spec.devices.requests or ()))


def claims_cards(claim: ResourceClaim) -> bool:
    """Return whether a claim requests cards."""
    return claimed_milli(claim) > 0


class _Pool(NamedTuple):
    """The devices of one pool of a node that are cards, or parts of cards."""

    driver: str
    pool: str
    devices: tuple[SliceDevice, ...]
    counters: Mapping[str, Mapping[str, Fraction]]
    """The counters of each set, by its name."""

    def name_of(self, device: str) -> str:
        return f"{self.driver}/{self.pool}/{device}"

    def parts(self, device: SliceDevice) -> tuple[Part, ...]:
        """Return the parts of cards that the device is (step 2)."""
        capacity = _amounts(device.capacity)
        consumed = [each for each in device.consumes_counters or () if each.counter_set in self.counters]
        if not consumed:
            return (Part(self.name_of(device.name), WHOLE_CARD, capacity),)
        return tuple(
            Part(self.name_of(each.counter_set), self._part_of(each), capacity) for each in consumed if each.counters
        )

    def memory_mib(self, device: SliceDevice) -> int:
        """Return the memory of the card that the device is, or is a part of; 0: unknown."""
        sets = (self.counters.get(each.counter_set) for each in device.consumes_counters or ())
        memory = (next(filter(None, sets), None) or _amounts(device.capacity)).get(_MEMORY, Fraction(0))
        return int(memory // _MIB)

    def _part_of(self, consumed: Consumed) -> int:
        return _largest_part(_amounts(consumed.counters), self.counters[consumed.counter_set])


def _pools(slices: Iterable[ResourceSlice]) -> Iterator[_Pool]:
    """Yield the pools of cards (step 1). A pool's slices of older generations are left from before a change."""
    by_pool: dict[tuple[str, str], list[ResourceSlice]] = {}
    for each in sorted(slices, key=lambda each: each.metadata.name):
        if is_card(each.spec.driver):
            by_pool.setdefault((each.spec.driver, each.spec.pool.name), []).append(each)
    for (driver, name), pieces in sorted(by_pool.items()):
        newest = max(each.spec.pool.generation for each in pieces)
        specs = [each.spec for each in pieces if each.spec.pool.generation == newest]
        devices = [device for each in specs for device in each.devices or ()]
        sets = [counters for each in specs for counters in each.shared_counters or ()]
        in_order = tuple(sorted(devices, key=lambda device: _natural(device.name)))
        yield _Pool(driver, name, in_order, {each.name: _amounts(each.counters) for each in sets})


def _natural(name: str) -> tuple[tuple[str, int], ...]:
    """Return a sort key by which `gpu-10` comes after `gpu-9`."""
    return tuple((text, int(digits or -1)) for text, digits in _PIECES.findall(name))


def _shares(claim: ResourceClaim, node: SchemeCards) -> Iterator[Share]:
    for result in claim.results:
        if not is_card(result.driver):
            continue
        parts = node.parts.get(f"{result.driver}/{result.pool}/{result.device}", (Part("", WHOLE_CARD),))
        for part in parts:
            # Pods that share the claim have equal parts (step 4).
            yield Share(part.card or None, max(1, _used(result, part) // claim.users))


def _used(result: AllocatedDevice, part: Part) -> int:
    """Return the thousandths of a card that an allocation takes of a device (step 3)."""
    if not result.consumed_capacity:
        return part.milli
    consumed = {name: quantity(amount) for name, amount in result.consumed_capacity.items()}
    return max(1, part.milli * _largest_part(consumed, part.capacity) // WHOLE_CARD)


def _largest_part(amounts: Mapping[str, Fraction], of: Mapping[str, Fraction]) -> int:
    names = [_MEMORY] if of.get(_MEMORY) and _MEMORY in amounts else [name for name in amounts if of.get(name)]
    return max((share_milli(amounts[name], of[name]) for name in names), default=WHOLE_CARD)


def _requested(request: DeviceRequest) -> int:
    """Return the number of cards of a request; one that takes all devices of a node counts as one."""
    wanted = request.exactly or next(iter(request.first_available or ()), None)
    if wanted is None or not is_card(wanted.device_class_name):
        return 0
    return wanted.count if wanted.allocation_mode == "ExactCount" else 1


def _amounts(given: Mapping[str, Value] | None) -> dict[str, Fraction]:
    return {name.rpartition("/")[2]: quantity(each.value) for name, each in (given or {}).items()}


def _attribute(device: SliceDevice, names: Iterable[str]) -> str:
    # Attributes may have the driver's domain before their name.
    own = {name.rpartition("/")[2]: each.string for name, each in (device.attributes or {}).items()}
    return next(filter(None, (own.get(name, "") for name in names)), "")
