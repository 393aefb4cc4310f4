"""Objects as an API server sends them, decoded into the structs that cockpit reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from cockpit.backends.kubernetes.mapping.cards.all import NodeCards, cards_of
from cockpit.backends.kubernetes.mapping.cards.scheme import NodeSource
from cockpit.backends.kubernetes.mapping.kube_jobs import KubeJob
from cockpit.backends.kubernetes.mapping.nodes import node_of
from cockpit.backends.kubernetes.mapping.quantities import offered
from cockpit.backends.kubernetes.objects.koordinator import Device
from cockpit.backends.kubernetes.objects.node import KubeNode
from cockpit.backends.kubernetes.objects.pod import Pod
from cockpit.backends.kubernetes.objects.resource_claims import ResourceSlice
from cockpit.backends.kubernetes.objects.workload import Workload
from cockpit.model.node import Node

CREATED = "2026-03-01T09:00:00Z"
STARTED = "2026-03-01T09:05:00Z"
ENDED = "2026-03-01T10:05:00Z"
GPU = "nvidia.com/gpu"


def merged(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the mapping with these changes; mappings in both are merged."""
    result = dict(base)
    for key, value in changes.items():
        both = isinstance(value, Mapping) and isinstance(result.get(key), Mapping)
        result[key] = merged(result[key], value) if both else value
    return result


def a_template(**changes: Any) -> dict[str, Any]:
    """Return a pod template that requests 8 CPUs, 64 GiB and 8 GPUs."""
    resources = {"limits": {"cpu": "8", "memory": "64Gi", GPU: 8}}
    container = {"name": "main", "image": "img:1", "command": ["python", "train.py"], "resources": resources}
    return merged({"spec": {"containers": [container]}}, changes)


def a_pod(name: str = "train-0", **changes: Any) -> Pod:
    base = {
        "metadata": {"name": name, "namespace": "team-a", "uid": f"uid-{name}", "creationTimestamp": CREATED},
        **a_template(),
        "status": {"phase": "Pending"},
    }
    return msgspec.convert(merged(base, changes), Pod, strict=False)


def a_running_pod(name: str = "train-0", node: str = "n1", **changes: Any) -> Pod:
    status = {
        "phase": "Running",
        "startTime": STARTED,
        "containerStatuses": [{"name": "main", "state": {"running": {"startedAt": STARTED}}}],
    }
    return a_pod(name, **merged({"spec": {"nodeName": node}, "status": status}, changes))


def an_ended_pod(name: str = "train-0", node: str = "n1", code: int = 0, **changes: Any) -> Pod:
    end = {"exitCode": code, "startedAt": STARTED, "finishedAt": ENDED, "reason": "Error" if code else "Completed"}
    status = {
        "phase": "Failed" if code else "Succeeded",
        "containerStatuses": [{"name": "main", "state": {"terminated": end}}],
    }
    return a_pod(name, **merged({"spec": {"nodeName": node}, "status": status}, changes))


def a_pytorch_job(workers: int = 1, **changes: Any) -> Workload:
    replicas = {"Master": {"replicas": 1, "template": a_template()}}
    if workers:
        replicas["Worker"] = {"replicas": workers, "template": a_template()}
    base = {
        "metadata": {"name": "train", "namespace": "team-a", "uid": "uid-train", "creationTimestamp": CREATED},
        "spec": {"pytorchReplicaSpecs": replicas},
    }
    return msgspec.convert(merged(base, changes), Workload, strict=False)


def a_job(*pods: Pod, workload: Workload | None = None, kind: str = "PyTorchJob") -> KubeJob:
    """Return a job of a workload and its pods; without one, of a single bare pod."""
    if workload is None:
        return KubeJob("Pod", pods[0].metadata, None, pods)
    return KubeJob(kind, workload.metadata, workload, pods)


def a_condition(kind: str, *, true: bool = True, **more: str) -> dict[str, str]:
    return {"type": kind, "status": "True" if true else "False", "lastTransitionTime": ENDED, **more}


def a_node(name: str = "n1", **changes: Any) -> KubeNode:
    base = {
        "metadata": {"name": name, "uid": f"uid-{name}", "labels": {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}},
        "status": {
            "allocatable": {"cpu": "95500m", "memory": "1000Gi", GPU: "8"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }
    return msgspec.convert(merged(base, changes), KubeNode, strict=False)


def the_cards(node: KubeNode, device: Device | None = None, *slices: ResourceSlice) -> NodeCards:
    """Return the cards of a node. `device`: Koordinator's inventory; `slices`: the devices for resource claims."""
    return cards_of(NodeSource(node.metadata, offered(node.status.allocatable), device, slices))


def model_node(node: KubeNode) -> Node:
    """Return the node with its cards, as cockpit shows it."""
    return node_of(node, the_cards(node).cards)
