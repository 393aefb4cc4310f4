"""Changes of manifests, as cockpit's what-ifs and the trial's own counter-questions name them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from typing import Any, NamedTuple

from cockpit.model.forecast import Change
from tests.real.kubernetes.answers.situations import CARD, Manifest


class Wish(NamedTuple):
    """One change of a waiting job, as a `WhatIf` has it."""

    change: Change
    before: str
    after: str


def pod_spec(manifest: Manifest) -> dict[str, Any]:
    """Return the specification of the manifest's pods."""
    spec: dict[str, Any] = manifest["spec"]
    return spec["template"]["spec"] if manifest["kind"] == "Job" else spec


def count_of(manifest: Manifest) -> int:
    """Return the number of the manifest's pods."""
    return int(manifest["spec"]["parallelism"]) if manifest["kind"] == "Job" else 1


def with_wish(manifest: Manifest, wish: Wish) -> Manifest:
    """Return the manifest with the change."""
    changed = deepcopy(manifest)
    if wish.change is Change.NODES:
        changed["spec"] |= {"parallelism": int(wish.after), "completions": int(wish.after)}
    else:
        _CHANGES[wish.change](pod_spec(changed), wish)
    return changed


def _with_cards(spec: dict[str, Any], wish: Wish) -> None:
    _request(spec)[CARD if CARD in _request(spec) else "amd.com/gpu"] = wish.after


def _tolerating(spec: dict[str, Any], wish: Wish) -> None:
    key, _, value = wish.after.partition("=")
    spec["tolerations"] = [*spec.get("tolerations", ()), {"key": key, "operator": "Equal", "value": value}]


def _with_label(spec: dict[str, Any], wish: Wish) -> None:
    del spec["nodeSelector"][wish.before.partition("=")[0]]
    if wish.after:
        key, _, value = wish.after.partition("=")
        spec["nodeSelector"][key] = value


def _without_pod_rules(spec: dict[str, Any], _: Wish) -> None:
    spec.pop("topologySpreadConstraints", None)
    for name in ("podAffinity", "podAntiAffinity"):
        spec.get("affinity", {}).pop(name, None)


_CHANGES: Mapping[Change, Callable[[dict[str, Any], Wish], object]] = {
    Change.CARDS: _with_cards,
    Change.CPUS: lambda spec, wish: _request(spec).update(cpu=wish.after),
    Change.MEMORY: lambda spec, wish: _request(spec).update(memory=f"{wish.after}Mi"),
    Change.TOLERATION: _tolerating,
    Change.LABEL: _with_label,
    Change.NODE_AFFINITY: lambda spec, _: spec["affinity"].pop("nodeAffinity"),
    Change.POD_RULES: _without_pod_rules,
    Change.HOST_PORT: lambda spec, _: spec["containers"][0].pop("ports"),
    Change.PRIORITY_CLASS: lambda spec, wish: spec.update(priorityClassName=wish.after),
}


def wishes(manifest: Manifest, taints: Iterator[str]) -> Iterator[Wish]:
    """Yield changes that a user might think of, whether they help or not."""
    spec = pod_spec(manifest)
    request = _request(spec)
    if int(request.get(CARD, 0)) > 1:
        for cards in dict.fromkeys((int(request[CARD]) // 2, 1)):
            yield Wish(Change.CARDS, str(request[CARD]), str(cards))
    for taint in taints:
        yield Wish(Change.TOLERATION, "", taint)
    for key, value in spec.get("nodeSelector", {}).items():
        yield Wish(Change.LABEL, f"{key}={value}", "")
    affinity = spec.get("affinity", {})
    if "nodeAffinity" in affinity:
        yield Wish(Change.NODE_AFFINITY, "", "")
    if affinity.keys() & {"podAffinity", "podAntiAffinity"} or "topologySpreadConstraints" in spec:
        yield Wish(Change.POD_RULES, "", "")
    if "ports" in spec["containers"][0]:
        yield Wish(Change.HOST_PORT, "29500", "")


def _request(spec: Mapping[str, Any]) -> dict[str, Any]:
    limits: dict[str, Any] = spec["containers"][0]["resources"]["limits"]
    return limits
