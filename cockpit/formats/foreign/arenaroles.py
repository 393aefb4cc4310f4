"""The options of arena's tfjob for each of its roles: workers, parameter servers, chief and evaluator.

Source: arena's help of tfjob. With a chief or an evaluator the job is one of worker pools.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from cockpit.formats.foreign.draft import Draft, cpu_count, memory_mib
from cockpit.model.spec import PARAMETER_SERVER
from cockpit.model.text import is_whole

_ROLES: Final = ("chief", "worker", "ps", "evaluator")
"""By the position of the pool."""
_OF_ROLE: Final = ("image", "cpu", "cpu-limit", "memory", "memory-limit", "gpus", "selector")
ROLE_OPTIONS: Final = frozenset(
    {f"{role}-{each}" for role in _ROLES for each in _OF_ROLE} | {"ps", "chief", "evaluator"}
)

_SERVER: Final = (
    f"a parameter server has {PARAMETER_SERVER.cpus} CPU, {PARAMETER_SERVER.memory_mib} MiB, the job's image"
)


def take_roles(options: Mapping[str, str], draft: Draft) -> None:
    """`options`: those of the roles. What is said of all comes first, and is taken where a role says nothing."""
    own = {role: _of(role, options, draft) for role in _ROLES}
    servers = int(options["ps"]) if is_whole(options.get("ps", "")) else 0
    if _is_on(options, "chief") or _is_on(options, "evaluator"):
        _take_pools(options, own, servers, draft)
        return
    worker = own["worker"]
    draft.spec(**worker.pop("spec", {}))
    if selector := worker.pop("selector", None):
        draft.values["node_selector"] = selector
    draft.values |= worker
    if "ps" in options:
        draft.values["parameter_servers"] = servers
    for name, value in options.items():
        role = name.partition("-")[0]
        if role not in {"worker", name}:
            draft.lacks(f"--{name}={value}", _SERVER if role == "ps" else f"there is no {role}; left out")


def _is_on(options: Mapping[str, str], name: str) -> bool:
    return options.get(name, "false") in {"", "true"}


def _of(role: str, options: Mapping[str, str], draft: Draft) -> dict[str, Any]:
    """`image`, `spec` and `selector`; a limit comes before a request, which is noted."""
    spec: dict[str, Any] = {}
    for name in ("cpu", "memory"):
        asked, limit = (options.get(f"{role}-{each}") for each in (name, f"{name}-limit"))
        if asked and limit and asked != limit:
            draft.lacks(f"--{role}-{name}={asked}", f"the limit, {limit}, is taken")
        if value := limit or asked:
            mib = memory_mib(value)
            known = cpu_count(value) if name == "cpu" else f"{mib}M" if mib else None
            spec["cpus" if name == "cpu" else "memory"] = known or value
    if (cards := options.get(f"{role}-gpus", "0")) != "0":
        spec["cards"] = int(cards) if is_whole(cards) else cards
    found: dict[str, Any] = {"spec": spec} if spec else {}
    if image := options.get(f"{role}-image"):
        found["image"] = image
    if "=" in (selector := options.get(f"{role}-selector", "")):
        key, _, value = selector.partition("=")
        found["selector"] = {key: value}
    return found


def _take_pools(options: Mapping[str, str], own: dict[str, dict[str, Any]], servers: int, draft: Draft) -> None:
    """A chief, or in its place the first worker."""
    workers, whole = int(draft.values.pop("nodes", 1)), (draft.values.pop("specs", None) or [{}])[0]
    has_chief = _is_on(options, "chief")
    counts = [1, workers if has_chief else workers - 1, servers, int(_is_on(options, "evaluator"))]
    if not has_chief:
        own["chief"] = own["worker"]
    pools: list[dict[str, Any]] = []
    for role, count in zip(_ROLES, counts, strict=True):
        mine = own[role]
        if selector := mine.pop("selector", None):
            draft.lacks(f"--{role}-selector={selector}", "all replicas of a job have the same node_selector; left out")
        is_worker = role == "worker" or (role == "chief" and not has_chief)
        spec = {**(whole if is_worker else {}), **mine.pop("spec", {})}
        pools.append({"replicas": count, **({"spec": spec} if spec else {}), **mine} if count else {})
    while not pools[-1]:
        pools.pop()
    draft.values |= {"mode": "worker-pools", "worker_pools": pools}
