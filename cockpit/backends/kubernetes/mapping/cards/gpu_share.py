"""GPU share of ACK, and its open-source extender: pods share cards by memory.

A node offers the memory of all its cards and their number. The scheduler writes into the pod which card gives how much
to which container; older ones write the index of the pod's one card. Units are GiB, or MiB where the plugin is
configured so: cockpit needs only the part of the card, and takes large numbers for MiB.
"""

from __future__ import annotations

import msgspec

from cockpit.backends.kubernetes.mapping.cards.models import card_model
from cockpit.backends.kubernetes.mapping.cards.scheme import (
    NodeSource,
    PodSource,
    SchemeCards,
    Share,
    Unreadable,
    check_number,
    share_milli,
    whole_number,
)
from cockpit.backends.kubernetes.mapping.quantities import requested
from cockpit.model.node import Card, CardVendor

MEMORY = "aliyun.com/gpu-mem"
COUNT = "aliyun.com/gpu-count"
CORES = "aliyun.com/gpu-core.percentage"
ALLOCATION = "scheduler.framework.gpushare.allocation"
"""Annotation of a pod: container → card → memory, such as `{"0":{"1":3}}`."""
INDEX = "ALIYUN_COM_GPU_MEM_IDX"
"""Annotation of older schedulers: the index of the pod's card; -1: none."""
POD_MEMORY = "ALIYUN_COM_GPU_MEM_POD"
"""Annotation of older schedulers: the pod's memory on that card."""
_FROM_MIB = 1024
"""From here on memory of a card is in MiB: no card has a TiB."""
_ALLOCATION = msgspec.json.Decoder(dict[str, dict[str, int]])


class GpuShare:
    """Cards that share their memory."""

    def cards(self, source: NodeSource) -> SchemeCards | None:
        offered = dict(source.offered.others)
        count, memory = offered.get(COUNT, 0), offered.get(MEMORY, 0)
        if count <= 0 or memory <= 0:
            return None
        per_card = max(1, memory // count)
        model = card_model(source.meta.labels or {}) or "gpu"
        mib = per_card if per_card >= _FROM_MIB else per_card * 1024
        cards = {
            str(place): Card(index=place, model=model, vendor=CardVendor.NVIDIA, memory_mib=mib)
            for place in range(check_number(count, COUNT))
        }
        # A node that shares its cards may offer them as whole ones, too: they are the same cards.
        resources = frozenset({MEMORY, COUNT, CORES, "nvidia.com/gpu"})
        return SchemeCards(cards, resources, {MEMORY: per_card, CORES: 100})

    def shares(self, source: PodSource, node: SchemeCards) -> tuple[Share, ...] | None:
        meta, whole = source.pod.metadata, node.units[MEMORY]
        if (text := meta.annotation(ALLOCATION)) != "":
            held: dict[str, int] = {}
            for container in _allocation(text).values():
                for card, memory in container.items():
                    held[card] = held.get(card, 0) + memory
            return tuple(Share(card, share_milli(memory, whole), MEMORY) for card, memory in held.items() if memory > 0)
        index = meta.annotation(INDEX)
        if index in {"", "-1"}:
            return None
        if whole_number(index) is None:
            raise Unreadable(f"{INDEX}: {index!r} is no number of a card")
        memory = whole_number(meta.annotation(POD_MEMORY)) or dict(requested(source.pod.spec).others).get(MEMORY, 0)
        return (Share(index, share_milli(memory, whole), MEMORY),)


def _allocation(text: str) -> dict[str, dict[str, int]]:
    try:
        return _ALLOCATION.decode(text)
    except msgspec.DecodeError as error:
        raise Unreadable(f"{ALLOCATION}: {error}") from None
