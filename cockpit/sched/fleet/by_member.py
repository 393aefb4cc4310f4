"""What each member of a fleet has free for a job, and how much of the job that is enough for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.model.fleet import BindingMode, Member, member_of
from cockpit.model.fleetoutlook import MemberOutlook
from cockpit.model.node import NodeState
from cockpit.model.reasons import Resource
from cockpit.sched.fleet.totals import Free, free_in
from cockpit.sched.nodes.node_free import shortfall
from cockpit.sched.nodes.node_layout import admits
from cockpit.sched.shape import Shape, shape_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cockpit.model.ids import NodeName
    from cockpit.model.job import Job
    from cockpit.model.node import Node
    from cockpit.model.spec import NodeSpec
    from cockpit.sched.index import Index
    from cockpit.sched.snapshot import Snapshot


def member_outlooks(index: Index, snapshot: Snapshot, job: Job) -> tuple[MemberOutlook, ...]:
    """Return a row for each member that the job may use, in the fleet's order, without forecasts; none without a
    fleet."""
    members = [each for each in snapshot.cluster.members if each.name in job.partitions]
    return tuple(_outlook(index, snapshot, job, each) for each in members)


def _outlook(index: Index, snapshot: Snapshot, job: Job, member: Member) -> MemberOutlook:
    # The first alternative: it is the one that the job prefers, and what is free is alike for the others.
    spec, shape = job.spec.specs[0], shape_of(job.spec, member.name)
    free = free_in(index, member.name, shape, spec)
    replicas = shape.nodes
    at = job.in_vain.get(member.name)
    by_nodes = member.mode is BindingMode.RESERVATION
    return MemberOutlook(
        cluster=member.name,
        mode=member.mode,
        replicas=replicas,
        fitting=min(replicas, _fitting_nodes(index, member.name, shape, spec) if by_nodes else free.replicas(spec)),
        cpus=spec.cpus * replicas,
        free_cpus=max(0, free.cpus),
        memory_mib=spec.memory_mib * replicas,
        free_memory_mib=max(0, free.memory_mib),
        card_milli=spec.card_milli * replicas,
        free_card_milli=max(0, free.card_milli),
        short=_short(free, spec, replicas),
        out=_why_out(snapshot.nodes, member.name),
        in_vain_at=at if at is not None and snapshot.freed_at.get(member.name, 0) <= at else None,
    )


def _fitting_nodes(index: Index, member: str, shape: Shape, spec: NodeSpec) -> int:
    """Return how many nodes of the member hold one replica now."""
    usable = {each.number for each in index.layout.node_classes if each.up and admits(each, shape)}
    return sum(
        node_free.node_class in usable
        and member_of(node_free.node.name) == member
        and shortfall(node_free, spec, exclusive=shape.exclusive) is None
        for node_free in index.nodes_free
    )


def _short(free: Free, spec: NodeSpec, replicas: int) -> Resource | None:
    amounts = (
        (Resource.CARD_SHARE if spec.shares_a_card else Resource.CARDS, spec.card_milli, free.card_milli),
        (Resource.CPUS, spec.cpus, free.cpus),
        (Resource.MEMORY, spec.memory_mib, free.memory_mib),
    )
    return next((resource for resource, each, there in amounts if each * replicas > there), None)


def _why_out(nodes: Mapping[NodeName, Node], member: str) -> str:
    """Return why no node of the member takes jobs; empty: some node does."""
    mine = [node for node in nodes.values() if member_of(node.name) == member]
    if any(node.state is NodeState.UP for node in mine):
        return ""
    return mine[0].state_reason if mine else "its nodes are not known yet"
