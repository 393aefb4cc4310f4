"""Turns reports of members into the fleet's own events."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from cockpit.engine import decide
from cockpit.engine.fleet.parts import seen_from_fleet
from cockpit.model import events
from cockpit.model.cluster import Cluster, Partition
from cockpit.model.fleet import OVER_CLUSTERS, Member, node_in
from cockpit.model.ids import ReplicaId
from cockpit.model.job import OCCUPYING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from cockpit.engine.machine import Machine
    from cockpit.model.attempt import ExitStatus
    from cockpit.model.events import EventBody
    from cockpit.model.fleet import FleetPart
    from cockpit.model.ids import JobId, Millis, NodeName
    from cockpit.model.job import Job
    from cockpit.model.node import Node, Placement
    from cockpit.model.usage import ReplicaTotals


def fleet_nodes(members: Mapping[str, Machine]) -> tuple[Node, ...]:
    """Return all nodes of all members under their names in the fleet."""
    return tuple(
        replace(node, name=node_in(name, node.name))
        for name, machine in members.items()
        for node in machine.state.nodes.values()
    )


def nodes_reported(fleet: Machine, nodes: Sequence[Node]) -> list[EventBody]:
    """Return the events after the members' nodes were read; none if they are the same. A member's partition has all of
    its nodes, which for one that is reached over a link are known only now."""
    changed = decide.nodes_changed(fleet, nodes)
    rules = fleet.state.cluster
    after = fleet_rules(rules.members, nodes, rules)
    return changed if after.partitions == rules.partitions else [*changed, events.ClusterConfigured(after)]


def others_held(fleet: Machine, name: str, member: Machine) -> list[events.EventBody]:
    """Return the event that the resources held by the member's own jobs have changed; none if they have not.

    Jobs that the fleet has submitted to the member do not count.
    """
    held = tuple(
        tuple(replace(each, node=node_in(name, each.node)) for each in placement)
        for job, placement in member.occupied.items()
        if member.state.jobs[job].part is None
    )
    return [] if fleet.state.others.get(name, ()) == held else [events.OthersHeld(name, held)]


def fleet_rules(members: Sequence[Member], nodes: Iterable[Node], rules: Cluster | None = None) -> Cluster:
    """Return the fleet's rules: a partition for each member, and one of all of them for jobs that may be divided."""
    all_nodes = list(nodes)
    partitions = [Partition(name=each.name, nodes=_names(all_nodes, each.name)) for each in members]
    return replace(
        rules or Cluster(),
        members=tuple(members),
        partitions=(*partitions, Partition(name=OVER_CLUSTERS, nodes=tuple(node.name for node in all_nodes))),
    )


def _names(nodes: Iterable[Node], member: str) -> tuple[NodeName, ...]:
    return tuple(node.name for node in nodes if node.name.startswith(f"{member}/"))


def part_placed(fleet: Machine, member: str, job: Job) -> list[EventBody]:
    """Return the events after a member's scheduler has placed its part of a job."""
    if job.part is None or job.attempt is None:
        return []
    seen = seen_from_fleet(member, job.part, job.attempt.placement)
    return _member_placed(fleet, job.part.job, job.part.attempt, member, seen)


def _member_placed(machine: Machine, job_id: JobId, attempt: int, member: str, placement: Placement) -> list[EventBody]:
    """Return the event that the member has placed its part; none if that is recorded, or the attempt is over.

    The placement has the ranks and node names of the fleet.
    """
    job = machine.state.jobs.get(job_id)
    if job is None or job.attempt is None or job.state not in OCCUPYING or job.attempt.number != attempt:
        return []
    # `awaits` loses the member with the first such event, so that a report which comes twice is dropped.
    return [events.MemberPlaced(job_id, attempt, member, placement)] if member in job.attempt.awaits else []


def part_started(fleet: Machine, part: FleetPart, rank: int, limits: str) -> list[EventBody]:
    """Return the events after a replica of the part has started."""
    return decide.replica_started(fleet, replica_of(part, rank), limits)


def part_ended(
    fleet: Machine,
    part: FleetPart,
    rank: int,
    status: ExitStatus,
    now: Millis,
    hold: int,
    used: ReplicaTotals | None = None,
) -> list[EventBody]:
    """Return the events after all processes of a replica have ended. `hold`: seconds to hold a failed container."""
    return decide.replica_ended(fleet, replica_of(part, rank), status, now, hold, used)


def replica_of(part: FleetPart, rank: int) -> ReplicaId:
    """Return the id that a member's replica has in the fleet."""
    return ReplicaId(part.job, part.attempt, part.ranks[rank])
