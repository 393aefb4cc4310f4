"""Nodes and their cards out of the API server's nodes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from cockpit.backends.kubernetes.mapping.quantities import PodAmounts, offered
from cockpit.backends.kubernetes.objects.meta import condition
from cockpit.backends.kubernetes.objects.node import KubeNode
from cockpit.model.cardmodels import instances_per_card
from cockpit.model.ids import NodeName
from cockpit.model.labels import Taint
from cockpit.model.node import Card, CardVendor, Node, NodeState
from cockpit.model.spec import WHOLE_CARD

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
DRAINED_BECAUSE = "cockpit/drained-because"
"""Annotation with the reason of a drain; Kubernetes' cordon has none."""
_MODEL_LABELS = (
    "nvidia.com/gpu.product",
    "aliyun.accelerator/nvidia_name",
    "cloud.google.com/gke-accelerator",
    "cloud.google.com/gke-tpu-accelerator",
    "k8s.amazonaws.com/accelerator",
    "gpu.nvidia.com/model",
    "amd.com/gpu.product-name",
    "accelerator",
)
"""Labels that name the model of a node's cards, as GPU feature discovery, ACK, GKE, EKS and AMD set them."""
_MEMORY_LABEL = "nvidia.com/gpu.memory"
_DRIVER_LABELS = ("nvidia.com/cuda.driver-version.full", "nvidia.com/cuda.driver.major")
_MAKER = re.compile(r"^(?:NVIDIA|nvidia|Tesla|tesla)[-_ ]")
_FAMILY = re.compile(r"^(?:[A-Z]?[A-Z]{0,3}\d{1,4}[A-Za-z]{0,2})(?=[-_ ]|$)")


class NodeCards(NamedTuple):
    """The number of a node's cards, and which resources count them."""

    cards: tuple[Card, ...]
    resources: tuple[str, ...]


def node_of(each: KubeNode) -> Node:
    """Return the node with the amounts that pods can have (allocatable)."""
    own = offered(each.status.allocatable)
    labels = each.metadata.labels or {}
    info = each.status.node_info
    state, why = _state(each)
    return Node(
        name=NodeName(each.metadata.name),
        cpus=own.milli_cpus // 1000,
        memory_mib=own.memory_mib,
        cards=cards_of(own, labels).cards,
        labels=labels,
        taints=tuple(
            Taint(taint.key, taint.value) for taint in each.spec.taints or () if _keeps_off(taint.key, taint.effect)
        ),
        os=info.os_image if info is not None else "",
        kernel=info.kernel_version if info is not None else "",
        driver_version=next(filter(None, map(labels.get, _DRIVER_LABELS)), "") or "",
        state=state,
        state_reason=why,
    )


def cards_of(own: PodAmounts, labels: Mapping[str, str]) -> NodeCards:
    """Return the cards that a node's device plugins offer.

    Whole cards and MIG instances are resources of their own. A node whose cards are all in instances of one profile
    counts as having the cards that these make.
    """
    model, memory = card_model(labels), labels.get(_MEMORY_LABEL, "")
    cards: list[Card] = []
    counted: list[str] = []
    for name, count in own.others:
        if count <= 0:
            continue
        first = len(cards)
        if (vendor := CARDS.get(name)) is not None:
            named = model or name.partition("/")[2]
            cards += (
                Card(
                    index=first + place,
                    model=named,
                    vendor=vendor,
                    memory_mib=int(memory) if memory.isascii() and memory.isdigit() else 0,
                )
                for place in range(count)
            )
        elif name.startswith(MIG):
            profile = name.removeprefix(MIG)
            per_card = instances_per_card(profile) or 1
            cards += (
                Card(
                    index=first + place,
                    model=f"{model or 'gpu'}_{profile}",
                    vendor=CardVendor.NVIDIA,
                    slices=per_card,
                )
                for place in range(-(-count // per_card))
            )
        else:
            continue
        counted.append(name)
    return NodeCards(tuple(cards), tuple(counted))


def card_milli(wanted: PodAmounts) -> int:
    """Return the cards that a pod requests, in thousandths; a MIG instance counts as its part of a card."""
    total = 0
    for name, count in wanted.others:
        if name in CARDS:
            total += WHOLE_CARD * count
        elif name.startswith(MIG):
            per_card = instances_per_card(name.removeprefix(MIG)) or 1
            total += WHOLE_CARD * count // per_card
    return total


def card_model(labels: Mapping[str, str]) -> str:
    """Return the model of a node's cards by its labels, shortened as people write it (`H100`); empty: unknown."""
    named = next(filter(None, map(labels.get, _MODEL_LABELS)), "") or ""
    return _short(named)


@lru_cache(maxsize=256)
def _short(named: str) -> str:
    """Return `H100` for `NVIDIA-H100-80GB-HBM3`, `A100` for `nvidia-tesla-a100`, else the name without its maker."""
    plain = _MAKER.sub("", _MAKER.sub("", named))
    family = _FAMILY.match(plain.upper())
    return family[0] if family is not None else plain


def _keeps_off(key: str, effect: str) -> bool:
    # PreferNoSchedule is only a preference. A cordon is the state of the node, not a taint that jobs can tolerate.
    return effect in {"NoSchedule", "NoExecute"} and not key.startswith("node.kubernetes.io/")


def _state(each: KubeNode) -> tuple[NodeState, str]:
    ready = condition(each.status.conditions, "Ready")
    if ready is None or not ready.is_true:
        return NodeState.DOWN, (ready.message or ready.reason) if ready is not None else "its kubelet has not reported"
    if each.spec.unschedulable:
        return NodeState.DRAINED, each.metadata.annotation(DRAINED_BECAUSE) or "cordoned"
    return NodeState.UP, ""
