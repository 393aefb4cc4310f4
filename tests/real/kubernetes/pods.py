"""Pods as tests submit them: on fake nodes, where annotations steer them, and on the real one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.real.kubernetes.cluster import ON_REAL_NODE
from tests.real.kubernetes.daemons import wait_until

if TYPE_CHECKING:
    from tests.real.kubernetes.api import Api

ENDED = ("Succeeded", "Failed")


def fake_pod(
    name: str,
    *,
    cards: int = 0,
    seconds: str = "",
    exit_code: int = 0,
    reason: str = "",
    stuck: str = "",
    node: str = "",
) -> dict[str, Any]:
    """A pod for the fake nodes. It runs for so long (`1s`; for ever without), ends with the exit code and the reason,
    such as OOMKilled; `stuck`: why its container never starts, such as ImagePullBackOff; `node`: where it runs, which
    is quicker for thousands of pods than to wait for the scheduler.
    """
    steering = {"seconds": seconds, "exit": str(exit_code), "reason": reason, "stuck": stuck}
    annotations = {f"test.cockpit/{name}": value for name, value in steering.items() if value}
    place = {"nodeName": node} if node else {}
    return _pod(name, {"name": "main", "image": "example/train:1"}, cards, annotations=annotations, **place)


def real_pod(name: str, *command: str, cards: int = 0, **spec: object) -> dict[str, Any]:
    """A pod whose container is a process of this machine."""
    return _pod(name, {"name": "main", "image": "none", "command": command}, cards, **ON_REAL_NODE, **spec)


def _pod(
    name: str, container: dict[str, Any], cards: int, annotations: dict[str, str] | None = None, **spec: object
) -> dict[str, Any]:
    if cards:
        container["resources"] = {"limits": {"nvidia.com/gpu": str(cards)}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "annotations": annotations or {}},
        "spec": {"containers": [container], "restartPolicy": "Never", **spec},
    }


def create_pod(api: Api, namespace: str, pod: dict[str, Any]) -> str:
    """Create it; returns its path."""
    where = f"/api/v1/namespaces/{namespace}/pods"
    api.create(where, pod)
    return f"{where}/{pod['metadata']['name']}"


def wait_for_phase(api: Api, path: str, *phases: str) -> dict[str, Any]:
    """Wait until the pod has one of the phases; returns it."""
    found: dict[str, Any] = {}

    def has_phase() -> bool:
        found.update(api.get(path))
        return found["status"]["phase"] in phases

    wait_until(f"{path} is not {' or '.join(phases)}", has_phase)
    return found
