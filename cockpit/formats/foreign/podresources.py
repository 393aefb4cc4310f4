"""The resources of a Kubernetes container as what each node of a job must offer, and back.

Source: core/v1 ResourceRequirements. A job is given what it asks for and no more, which is what a limit says.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from cockpit.formats.foreign.draft import Draft, cpu_count, memory_mib
from cockpit.model.spec import WHOLE_CARD
from cockpit.model.text import is_whole

if TYPE_CHECKING:
    from cockpit.model.spec import NodeSpec

GPU: Final = "nvidia.com/gpu"
_CARDS: Final = re.compile(
    r"[a-z0-9.-]+/(?:gpu|mlu|npu|dcu|gcu|xpu|tpu|gaudi|neuron|vgpu-number|ascend[a-z0-9-]*)", re.IGNORECASE
)
"""Whole cards, by the maker's name."""


def read_resources(resources: Mapping[str, Any], at: str, draft: Draft) -> None:
    requests, limits = dict(resources.get("requests") or {}), dict(resources.get("limits") or {})
    for name in resources:
        if name not in {"requests", "limits"}:
            draft.lacks(f"{at}.{name}")
    for name, quantity in {**requests, **limits}.items():
        if not _take(str(name), quantity, draft):
            draft.lacks(f"{at}.{name}={quantity}")
        elif name in requests and name in limits and _amount(name, requests[name]) != _amount(name, limits[name]):
            draft.lacks(f"{at}.requests.{name}={requests[name]}", f"the limit, {limits[name]}, is taken")


def _take(name: str, quantity: object, draft: Draft) -> bool:
    if name == "cpu" and (cpus := cpu_count(quantity)):
        draft.spec(cpus=cpus)
    elif name == "memory" and (mib := memory_mib(quantity)):
        draft.spec(memory=f"{mib}M")
    elif _CARDS.fullmatch(name) and is_whole(str(quantity)):
        if int(str(quantity)):
            draft.spec(cards=int(str(quantity)))
        if not name.endswith("/gpu"):
            draft.lacks(name, "cards of any model will do; name those that are meant under card_models")
    else:
        return False
    return True


def _amount(name: str, quantity: object) -> object:
    return {"cpu": cpu_count, "memory": memory_mib}.get(name, str)(quantity)


def limits_of(spec: NodeSpec) -> dict[str, Any]:
    limits: dict[str, Any] = {"cpu": str(spec.cpus), "memory": f"{spec.memory_mib}Mi"} if spec.cpus else {}
    if spec.card_milli >= WHOLE_CARD:
        limits[GPU] = spec.whole_cards
    return limits
