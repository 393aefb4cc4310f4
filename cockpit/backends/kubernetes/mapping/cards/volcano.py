"""Volcano's vGPUs: like HAMi, with annotations and resources of its own."""

from __future__ import annotations

from collections.abc import Iterator

from cockpit.backends.kubernetes.mapping.cards.registers import Registered, allocated, cards_of, number, records
from cockpit.backends.kubernetes.mapping.cards.scheme import NodeSource, PodSource, SchemeCards, Share
from cockpit.model.node import CardVendor

REGISTER = "volcano.sh/node-vgpu-register"
ALLOCATION = "volcano.sh/vgpu-ids-new"
NUMBER, MEMORY, CORES = "volcano.sh/vgpu-number", "volcano.sh/vgpu-memory", "volcano.sh/vgpu-cores"
MEMORY_PERCENT = "volcano.sh/vgpu-memory-percentage"
_FIELDS = 5
"""UUID, pods that may share it, memory in MiB, type, health; then, in newer versions, how it is shared."""


class VolcanoVgpu:
    """Cards that Volcano's device plugin shares."""

    def cards(self, source: NodeSource) -> SchemeCards | None:
        text = source.meta.annotation(REGISTER)
        if not text:
            return None
        cards = cards_of(_registered(text), CardVendor.NVIDIA)
        most = max((card.memory_mib for card in cards.values()), default=0)
        return SchemeCards(cards, frozenset({NUMBER, MEMORY, CORES}), {MEMORY: most} if most else {})

    def shares(self, source: PodSource, node: SchemeCards) -> tuple[Share, ...] | None:
        text = source.pod.metadata.annotation(ALLOCATION)
        return tuple(allocated(text, node.cards, ALLOCATION, MEMORY)) if text else None


def _registered(text: str) -> Iterator[Registered]:
    for fields in records(text, _FIELDS, REGISTER):
        yield Registered(fields[0], number(fields[2], REGISTER), fields[3], fields[4] == "true")
