"""Chooses the node of an elastic job's launcher. The launcher is allocated nothing, so it fits on every node that it
may use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from cockpit.model.labels import tolerated
from cockpit.model.node import NodeState

if TYPE_CHECKING:
    from cockpit.model.ids import NodeName
    from cockpit.model.node import Node, Placement
    from cockpit.sched.shape import Shape


def may_launch(node: Node, shape: Shape, *, in_service: bool = True) -> bool:
    """Whether the launcher may run on the node."""
    return (
        (not in_service or node.state is NodeState.UP)
        and all(node.labels.get(key) == value for key, value in shape.launcher)
        and all(tolerated(each, shape.tolerations) for each in node.taints)
    )


def launcher_node(shape: Shape, placement: Placement, nodes: Mapping[NodeName, Node]) -> NodeName:
    """Return the node of a worker, if the launcher may run there; else the first node of the cluster where it may."""
    workers = (part.node for part in placement if part.node in nodes)
    others: Iterable[NodeName] = nodes
    usable = (name for group in (workers, others) for name in group if may_launch(nodes[name], shape))
    return next(usable, placement[0].node)
