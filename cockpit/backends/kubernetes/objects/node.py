"""Nodes. Source: core/v1 NodeSpec, NodeStatus."""

from __future__ import annotations

from datetime import datetime

import msgspec

from cockpit.backends.kubernetes.objects.meta import Condition, ObjectMeta
from cockpit.backends.kubernetes.objects.pod import Quantities


class NodeTaint(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """A taint, which keeps pods off that do not tolerate it."""

    key: str
    value: str = ""
    effect: str = ""
    time_added: datetime | None = None


class NodeInfo(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The node's system."""

    kernel_version: str = ""
    os_image: str = ""
    kubelet_version: str = ""


class NodeSpec(msgspec.Struct, frozen=True, gc=False):
    """What an administrator sets."""

    unschedulable: bool = False
    taints: tuple[NodeTaint, ...] | None = None


class NodeStatus(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """What the kubelet reports."""

    allocatable: Quantities | None = None
    capacity: Quantities | None = None
    conditions: tuple[Condition, ...] | None = None
    node_info: NodeInfo | None = None


class KubeNode(msgspec.Struct, frozen=True, gc=False):
    """A node."""

    metadata: ObjectMeta
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()
