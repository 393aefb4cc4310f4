"""Nodes out of the API server's nodes."""

from __future__ import annotations

from cockpit.backends.kubernetes.mapping.quantities import offered
from cockpit.backends.kubernetes.objects.meta import condition
from cockpit.backends.kubernetes.objects.node import KubeNode
from cockpit.model.ids import NodeName
from cockpit.model.labels import Taint
from cockpit.model.node import Card, Node, NodeState

DRAINED_BECAUSE = "cockpit/drained-because"
"""Annotation with the reason of a drain; Kubernetes' cordon has none."""
_DRIVER_LABELS = ("nvidia.com/cuda.driver-version.full", "nvidia.com/cuda.driver.major")


def node_of(each: KubeNode, cards: tuple[Card, ...]) -> Node:
    """Return the node with the amounts that pods can have (allocatable), and these cards."""
    own = offered(each.status.allocatable)
    labels = each.metadata.labels or {}
    info = each.status.node_info
    state, why = _state(each)
    return Node(
        name=NodeName(each.metadata.name),
        cpus=own.milli_cpus // 1000,
        memory_mib=own.memory_mib,
        cards=cards,
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
