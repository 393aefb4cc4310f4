"""Whether a job could ever start on this cluster: the rules that waiting does not change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from cockpit.model.ids import NodeName
from cockpit.model.node import Node, NodeState
from cockpit.model.reasons import NeverFits, NoEligibleNode, Reason, Resource
from cockpit.model.spec import JobSpec, NodeSpec
from cockpit.sched.index import Floor, admits
from cockpit.sched.room import Room, room_of, shortfall
from cockpit.sched.shape import Shape, shape_of

Group = tuple[Room, Sequence[Node]]
"""Nodes that are equal when empty, and their empty room."""

_STAGES = (Resource.CARDS, Resource.CARD_SHARE, Resource.CPUS, Resource.MEMORY)
"""The order in which a room is judged: a node short of the last is nearest to holding the job."""


def never_fits(spec: JobSpec, nodes: Mapping[NodeName, Node]) -> Reason | None:
    """Why the job could not start on the empty cluster with every node in service; None when it could.

    For refusing at submission: being drained or down passes, being too small does not.
    """
    return _verdict(shape_of(spec), _singly(nodes.values()), in_service=False)


def infeasible(shape: Shape, floor: Floor) -> Reason | None:
    """As `never_fits`, but with only the nodes that are in service; remembered while the nodes stay what they are."""
    if shape not in floor.never:
        groups = _singly(floor.nodes) if shape.node_names else floor.sizes
        floor.never[shape] = _verdict(shape, groups, in_service=True)
    return floor.never[shape]


def wanted(spec: NodeSpec, resource: Resource) -> int:
    """How much of it one replica asks for, in the resource's unit."""
    match resource:
        case Resource.CPUS:
            return spec.cpus
        case Resource.MEMORY:
            return spec.memory_mib
        case Resource.CARDS:
            return spec.whole_cards
        case Resource.CARD_SHARE:
            return spec.card_milli
        case Resource.NODE:
            return 1


def _singly(nodes: Iterable[Node]) -> list[Group]:
    return [(room_of(node, 0, 0, ()), (node,)) for node in nodes]


def _verdict(shape: Shape, groups: Iterable[Group], *, in_service: bool) -> Reason | None:
    """None as soon as one alternative can; else why the first cannot."""
    matching = [group for group in groups if _matches(group[0].node, shape)]
    if not matching:
        return _no_eligible(shape, ())
    verdicts = [_alternative(shape, spec, matching, in_service) for spec in shape.specs]
    return None if None in verdicts else verdicts[0]


def _matches(node: Node, shape: Shape) -> bool:
    return admits(node, shape) and (not shape.node_names or node.name in shape.node_names)


def _alternative(shape: Shape, spec: NodeSpec, matching: Sequence[Group], in_service: bool) -> Reason | None:
    lacking = [shortfall(room, spec, exclusive=shape.exclusive) for room, _ in matching]
    big = [node for (_, nodes), lack in zip(matching, lacking, strict=True) if lack is None for node in nodes]
    if not big:
        return _too_small(spec, [lack for lack in lacking if lack])
    if len(big) < shape.nodes:
        return NeverFits(None, shape.nodes, len(big), spec.card_models)
    out = [node.name for node in big if node.state is not NodeState.UP]
    if in_service and len(big) - len(out) < shape.nodes:
        return _no_eligible(shape, out)
    return None


def _too_small(spec: NodeSpec, lacking: Sequence[tuple[Resource, int]]) -> NeverFits:
    resource, most = max(lacking, key=lambda lack: (_STAGES.index(lack[0]), lack[1]))
    return NeverFits(resource, wanted(spec, resource), most, spec.card_models)


def _no_eligible(shape: Shape, out_of_service: Iterable[NodeName]) -> NoEligibleNode:
    pins = tuple(NodeName(name) for name in shape.node_names)
    return NoEligibleNode(pins, shape.pool or "", shape.driver_version or "", tuple(out_of_service))
