"""Finds what a member keeps reserved for a part of a fleet's job: exactly the placement that the fleet chose."""

from __future__ import annotations

from cockpit.model.ids import NodeName
from cockpit.model.job import Job
from cockpit.model.node import Allocation, NodeState
from cockpit.sched.index import Index
from cockpit.sched.nodes.node_free import NodeFree
from cockpit.sched.placement import JobPlacement


def reserved_placement(index: Index, job: Job) -> JobPlacement | None:
    """Return the placement that is reserved for the job if all of it is still free; None where nothing is reserved."""
    placement = job.part.reserved if job.part is not None else ()
    if not placement or not all(_is_free(index, part) for part in placement):
        return None
    return JobPlacement(0, placement)  # the fleet has chosen among the alternatives


def _is_free(index: Index, part: Allocation) -> bool:
    order = index.layout.position.get(NodeName(part.node))
    if order is None:
        return False
    node_free = index.nodes_free[order]
    enough = node_free.cpus >= part.cpus and node_free.memory_mib >= part.memory_mib
    return enough and node_free.node.state is NodeState.UP and _cards_are_free(node_free, part)


def _cards_are_free(node_free: NodeFree, part: Allocation) -> bool:
    held = {(piece.card, piece.slot) for tenant in node_free.tenants.values() for piece in tenant.slices}
    return all(
        each.card in node_free.idle
        if each.slot is None
        else (each.card, each.slot) not in held and node_free.holes[each.card] >= each.milli
        for each in part.slices
    )
