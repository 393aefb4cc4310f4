"""Cards of device plugins: whole cards, MIG instances, and cards that their plugin shares by time.

A resource counts them. Which of them a pod has is known to the node's kubelet alone.
"""

from __future__ import annotations

from collections.abc import Mapping

from cockpit.backends.kubernetes.mapping.cards.models import MEMORY_LABEL, card_model
from cockpit.backends.kubernetes.mapping.cards.scheme import (
    NodeSource,
    PodSource,
    SchemeCards,
    Share,
    check_number,
    whole_number,
)
from cockpit.model.cardmodels import instances_per_card
from cockpit.model.node import Card, CardVendor

CARDS: Mapping[str, CardVendor] = {
    "nvidia.com/gpu": CardVendor.NVIDIA,
    "amd.com/gpu": CardVendor.ROCM,
    "cambricon.com/mlu": CardVendor.MLU,
    "huawei.com/Ascend910": CardVendor.ASCEND,
    "huawei.com/Ascend910B": CardVendor.ASCEND,
    "huawei.com/Ascend310P": CardVendor.ASCEND,
    "gpu.intel.com/xe": CardVendor.OTHER,
    "gpu.intel.com/i915": CardVendor.OTHER,
    "google.com/tpu": CardVendor.OTHER,
}
"""Resources that count whole cards."""
MIG = "nvidia.com/mig-"
"""Beginning of resources that count MIG instances of a profile."""
GPU = "nvidia.com/gpu"
SHARED_GPU = "nvidia.com/gpu.shared"
"""The resource of cards that are shared by time, where the plugin is told to name them so."""
_REPLICAS_LABEL = "nvidia.com/gpu.replicas"
"""Label with the number of pods that share a card by time."""
_ONE_PROFILE = "-MIG-"
"""Between model and profile, in the product of nodes where `nvidia.com/gpu` counts instances of one profile."""


class DevicePlugins:
    """Resources that count cards or equal parts of them."""

    def cards(self, source: NodeSource) -> SchemeCards | None:
        """Return the node's cards; a node whose cards are all in instances of one profile counts as having the cards
        that these make."""
        labels = source.meta.labels or {}
        model, memory = card_model(labels), whole_number(labels.get(MEMORY_LABEL, "")) or 0
        cards: dict[str, Card] = {}
        units: dict[str, int] = {}
        counted: dict[str, tuple[str, ...]] = {}
        for name, count in source.offered.others:
            if count <= 0 or not counts_cards(name):
                continue
            vendor, profile = CARDS.get(name, CardVendor.NVIDIA), profile_of(name, labels)
            per_card = _per_card(name, profile, labels)
            named = model or ("gpu" if profile else name.partition("/")[2])
            units[name] = max(1, per_card)
            counted[name] = tuple(f"{name}/{place}" for place in range(check_number(-(-count // units[name]), name)))
            for each in counted[name]:
                cards[each] = Card(
                    index=len(cards),
                    model=f"{named}_{profile}" if profile else named,
                    vendor=vendor,
                    # The label tells the memory of an instance, where cards are in instances of one profile.
                    memory_mib=0 if profile else memory,
                    slices=per_card,
                )
        return SchemeCards(cards, frozenset(units), units, counted) if cards else None

    def shares(self, source: PodSource, node: SchemeCards) -> tuple[Share, ...] | None:
        """Return None: only the kubelet knows."""
        del source, node
        return None


def counts_cards(resource: str) -> bool:
    """Return whether a device plugin's resource counts cards or equal parts of them."""
    return resource in CARDS or resource.startswith(MIG) or resource == SHARED_GPU


def profile_of(resource: str, labels: Mapping[str, str]) -> str:
    """Return the MIG profile that the resource counts on a node with these labels, such as `1g.10gb`; empty: none."""
    if resource.startswith(MIG):
        return resource.removeprefix(MIG)
    return labels.get("nvidia.com/gpu.product", "").partition(_ONE_PROFILE)[2] if resource == GPU else ""


def _per_card(resource: str, profile: str, labels: Mapping[str, str]) -> int:
    """Return how many of the resource make one card; 0: it counts whole cards."""
    if profile:
        return instances_per_card(profile) or 1
    replicas = whole_number(labels.get(_REPLICAS_LABEL, "")) if resource in {GPU, SHARED_GPU} else None
    return replicas if replicas is not None and 1 < replicas <= _MOST_REPLICAS else 0


_MOST_REPLICAS = 1000
"""More pods than this cannot share a card whose parts are counted in thousandths."""
