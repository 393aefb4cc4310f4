"""Names of card models, as labels and registers of nodes have them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

MEMORY_LABEL = "nvidia.com/gpu.memory"
MODEL_LABELS = (
    "nvidia.com/gpu.product",
    "aliyun.accelerator/nvidia_name",
    "cloud.google.com/gke-accelerator",
    "cloud.google.com/gke-tpu-accelerator",
    "k8s.amazonaws.com/accelerator",
    "gpu.nvidia.com/model",
    "amd.com/gpu.product-name",
    "node.koordinator.sh/gpu-model",
    "accelerator",
)
"""Labels that name the model of a node's cards, as GPU feature discovery, ACK, GKE, EKS, AMD and Koordinator set
them."""
_MAKER = re.compile(r"^(?:NVIDIA|nvidia|Tesla|tesla)[-_ ]")
_FAMILY = re.compile(r"^(?:[A-Z]?[A-Z]{0,3}\d{1,4}[A-Za-z]{0,2})(?=[-_ ]|$)")


def card_model(labels: Mapping[str, str]) -> str:
    """Return the model of a node's cards by its labels, shortened as people write it (`H100`); empty: unknown."""
    return short_model(next(filter(None, map(labels.get, MODEL_LABELS)), "") or "")


@lru_cache(maxsize=256)
def short_model(named: str) -> str:
    """Return `H100` for `NVIDIA-H100-80GB-HBM3`, `A100` for `nvidia-tesla-a100`, else the name without its maker."""
    plain = named
    # A register names the maker of the plugin and then that of the card: `NVIDIA-NVIDIA H100 80GB HBM3`.
    while (shorter := _MAKER.sub("", plain)) != plain:
        plain = shorter
    family = _FAMILY.match(plain.upper())
    return family[0] if family is not None else plain
