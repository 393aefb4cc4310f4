"""Turns reports of members into the fleet's own events."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from cockpit.engine import decide
from cockpit.engine.bindings import member_placed
from cockpit.engine.fleet.parts import seen_from_fleet
from cockpit.model import events
from cockpit.model.cluster import Cluster, Partition
from cockpit.model.fleet import OVER_CLUSTERS, Member, node_in
from cockpit.model.ids import ReplicaId

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from cockpit.engine.machine import Machine
    from cockpit.model.attempt import ExitStatus
    from cockpit.model.events import EventBody
    from cockpit.model.fleet import FleetPart
    from cockpit.model.ids import Millis, NodeName
    from cockpit.model.job import Job
    from cockpit.model.node import Node
    from cockpit.model.usage import ReplicaTotals


def nodes_seen(members: Mapping[str, Machine]) -> tuple[Node, ...]:
    """Return all nodes of all members under their names in the fleet."""
    return tuple(
        replace(node, name=node_in(name, node.name))
        for name, machine in members.items()
        for node in machine.state.nodes.values()
    )


def others_held(fleet: Machine, name: str, member: Machine) -> list[events.EventBody]:
    """Return what the member's own jobs hold; nothing for jobs that the fleet knows."""
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


def placed(fleet: Machine, member: str, job: Job) -> list[EventBody]:
    """The member's scheduler found room for the job."""
    if job.part is None or job.attempt is None:
        return []
    seen = seen_from_fleet(member, job.part, job.attempt.placement)
    return member_placed(fleet, job.part.job, job.part.attempt, member, seen)


def started(fleet: Machine, part: FleetPart, rank: int, limits: str) -> list[EventBody]:
    """A replica of the part runs."""
    return decide.replica_started(fleet, replica_of(part, rank), limits)


def ended(
    fleet: Machine,
    part: FleetPart,
    rank: int,
    status: ExitStatus,
    now: Millis,
    hold: int,
    used: ReplicaTotals | None = None,
) -> list[EventBody]:
    """A replica of the part has no process left. `hold`: seconds for which a failed container is kept."""
    return decide.replica_ended(fleet, replica_of(part, rank), status, now, hold, used)


def replica_of(part: FleetPart, rank: int) -> ReplicaId:
    """The fleet's name of a member's replica."""
    return ReplicaId(part.job, part.attempt, part.ranks[rank])
