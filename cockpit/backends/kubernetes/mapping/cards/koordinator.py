"""Koordinator: a Device object has the cards of a node, and an annotation of the pod which parts of them it has."""

from __future__ import annotations

import msgspec

from cockpit.backends.kubernetes.mapping.cards.models import card_model, short_model
from cockpit.backends.kubernetes.mapping.cards.scheme import (
    NodeSource,
    PodSource,
    SchemeCards,
    Share,
    Unreadable,
    share_milli,
)
from cockpit.backends.kubernetes.mapping.quantities import quantity
from cockpit.backends.kubernetes.objects.koordinator import GPU, DeviceInfo
from cockpit.backends.kubernetes.objects.pod import Quantities
from cockpit.model.node import Card, CardVendor

ALLOCATION = "scheduling.koordinator.sh/device-allocated"
NUMBER, BOTH = "koordinator.sh/gpu.shared", "koordinator.sh/gpu"
CORES, MEMORY = "koordinator.sh/gpu-core", "koordinator.sh/gpu-memory"
MEMORY_PERCENT = "koordinator.sh/gpu-memory-ratio"
VENDOR = "node.koordinator.sh/gpu-vendor"
_VENDORS = {"huawei": CardVendor.ASCEND, "cambricon": CardVendor.MLU, "": CardVendor.NVIDIA}
_WHOLE = frozenset({"nvidia.com/gpu", "amd.com/gpu"})
"""Resources of whole cards that the scheduler allocates likewise."""


class _Allocated(msgspec.Struct, frozen=True):
    minor: int
    resources: Quantities | None = None


_ALLOCATION = msgspec.json.Decoder(dict[str, tuple[_Allocated, ...] | None])


class Koordinator:
    """Cards of Koordinator's devices."""

    def cards(self, source: NodeSource) -> SchemeCards | None:
        devices = (source.device.spec.devices or ()) if source.device is not None else ()
        cards: dict[str, Card] = {}
        labels = source.meta.labels or {}
        for each in sorted((each for each in devices if each.type == GPU), key=lambda each: each.minor or 0):
            if each.health and each.minor is not None:
                vendor = labels.get(VENDOR, "")
                cards[str(each.minor)] = Card(
                    index=len(cards),
                    model=card_model(labels) or short_model((each.labels or {}).get("model", "")) or "gpu",
                    vendor=_VENDORS.get(vendor, CardVendor(vendor) if vendor in set(CardVendor) else CardVendor.OTHER),
                    memory_mib=_mib(each),
                    uuid=each.id,
                )
        if not cards:
            return None
        most = max(card.memory_mib for card in cards.values()) * 1024**2
        units = {MEMORY_PERCENT: 100, CORES: 100, BOTH: 100, **({MEMORY: most} if most else {})}
        return SchemeCards(cards, frozenset({*units, NUMBER, MEMORY, *_WHOLE}), units)

    def shares(self, source: PodSource, node: SchemeCards) -> tuple[Share, ...] | None:
        text = source.pod.metadata.annotation(ALLOCATION)
        if not text:
            return None
        try:
            held = _ALLOCATION.decode(text).get(GPU)
        except msgspec.DecodeError as error:
            raise Unreadable(f"{ALLOCATION}: {error}") from None
        # Other devices, such as network adapters, stand in the same annotation.
        return tuple(_share(each, node) for each in held) if held else None


def _share(each: _Allocated, node: SchemeCards) -> Share:
    """Return the part of the card by its memory, else by its cores; without either it is the whole card."""
    amounts = {name: quantity(amount) for name, amount in (each.resources or {}).items()}
    card = node.cards.get(str(each.minor))
    if MEMORY_PERCENT in amounts:
        milli = share_milli(float(amounts[MEMORY_PERCENT]), 100)
    elif MEMORY in amounts and card is not None and card.memory_mib:
        milli = share_milli(float(amounts[MEMORY]), card.memory_mib * 1024**2)
    else:
        milli = share_milli(float(amounts.get(CORES, 100)), 100)
    return Share(str(each.minor), milli, MEMORY_PERCENT)


def _mib(each: DeviceInfo) -> int:
    return int(quantity((each.resources or {}).get(MEMORY, 0)) // 1024**2)
