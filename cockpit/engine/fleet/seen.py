"""What a fleet sees of its members: their nodes, and the rules under which it binds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from cockpit.model import events
from cockpit.model.cluster import Cluster, Partition
from cockpit.model.fleet import OVER_CLUSTERS, Member, node_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from cockpit.engine.machine import Machine
    from cockpit.model.ids import NodeName
    from cockpit.model.node import Node


def nodes_seen(members: Mapping[str, Machine]) -> tuple[Node, ...]:
    """Every node of every member, as the fleet calls it."""
    return tuple(
        replace(node, name=node_in(name, node.name))
        for name, machine in members.items()
        for node in machine.state.nodes.values()
    )


def others_held(fleet: Machine, name: str, member: Machine) -> list[events.EventBody]:
    """What the member's own jobs hold; nothing where the fleet knows it."""
    held = tuple(
        tuple(replace(each, node=node_in(name, each.node)) for each in placement)
        for job, placement in member.occupied.items()
        if member.state.jobs[job].part is None
    )
    return [] if fleet.state.others.get(name, ()) == held else [events.OthersHeld(name, held)]


def fleet_rules(members: Sequence[Member], nodes: Iterable[Node], rules: Cluster | None = None) -> Cluster:
    """The fleet's rules: a partition for each member, and one of all of them for jobs that may be divided."""
    found = list(nodes)
    partitions = [Partition(name=each.name, nodes=_names(found, each.name)) for each in members]
    return replace(
        rules or Cluster(),
        members=tuple(members),
        partitions=(*partitions, Partition(name=OVER_CLUSTERS, nodes=tuple(node.name for node in found))),
    )


def _names(nodes: Iterable[Node], member: str) -> tuple[NodeName, ...]:
    return tuple(node.name for node in nodes if node.name.startswith(f"{member}/"))
