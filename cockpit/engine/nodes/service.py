"""Drains and resumes nodes: for administrators, and by itself when a cluster script fails or a disk is full."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from cockpit.engine.nodes import reclaiming
from cockpit.model import events
from cockpit.model.ids import Millis
from cockpit.model.node import NodeState
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.model.rules.bounds import GRACE_SECONDS, VALUE_BYTES
from cockpit.model.rules.text import text_error
from cockpit.model.text import visible

if TYPE_CHECKING:
    from cockpit.engine.machine import Machine
    from cockpit.model.events import EventBody
    from cockpit.model.ids import NodeName
    from cockpit.model.node import Node

ENGINE = "engine"
DISK = "the disk for staged copies: "
"""Start of the reason of a drain that ends by itself."""


def drain(machine: Machine, name: str, reason: str, by: str) -> list[EventBody] | Refusal:
    """Drain the node: no more jobs start there, and running jobs continue."""
    node = _node(machine, name)
    if isinstance(node, Refusal):
        return node
    if error := text_error(reason, VALUE_BYTES):
        return Refusal(RefusalKind.INVALID, f"reason: {error}.")
    # A second reason would replace the first, which may be a fault that must not be forgotten.
    if node.drained_by:
        return Refusal(
            RefusalKind.CONFLICT, f"Node {node.name} is drained already, by {node.drained_by}: {node.state_reason}."
        )
    return [events.NodeDrained(node.name, by, reason)]


def take_back(
    machine: Machine, name: str, reason: str, by: str, now: Millis, seconds: int
) -> list[EventBody] | Refusal:
    """Drain a node that its provider reclaims, and end its jobs within `seconds`. It may be drained already."""
    node = _node(machine, name)
    if isinstance(node, Refusal):
        return node
    for path, error in (("reason", text_error(reason, VALUE_BYTES)), ("within", GRACE_SECONDS.error(seconds))):
        if error:
            return Refusal(RefusalKind.INVALID, f"{path}: {error}.")
    gone_at = Millis(now + 1000 * seconds)
    taken = reclaiming.leave_reclaimed_node(machine, node.name, gone_at, now)
    # Drained first, so that none of its jobs is placed there again.
    return [events.NodeDrained(node.name, by, reason, gone_at), *taken]


def reclaim_by_notice(machine: Machine, name: NodeName, reason: str, gone_at: Millis, now: Millis) -> list[EventBody]:
    """Return the events for a provider's notice that a node is gone at `gone_at`, which may be past; none if the
    notice was carried out already, also by an earlier engine, whether or not the node was resumed since."""
    node = machine.state.nodes.get(name)
    if node is None or (node.drained_by == ENGINE and node.state_reason == reason):
        return []
    if machine.state.notices.get(name) == gone_at:
        return []
    # Drained first, so that none of its jobs is placed there again.
    at = max(gone_at, now)
    return [
        events.NodeDrained(name, ENGINE, reason, at, notice_at=gone_at),
        *reclaiming.leave_reclaimed_node(machine, name, at, now),
    ]


def resume(machine: Machine, name: str, by: str) -> list[EventBody] | Refusal:
    """Resume a drained node: jobs may start there again, also those for which it was excluded. A node in service is
    only readmitted to these jobs."""
    node = _node(machine, name)
    if isinstance(node, Refusal):
        return node
    excluded_for = machine.state.failed_prechecks.get(node.name, {})
    readmitted: list[EventBody] = [events.NodeReadmitted(job, node.name, by) for job in excluded_for]
    if readmitted and not node.drained_by and node.state is NodeState.UP:
        return readmitted
    if not node.drained_by:
        why = f"is {node.state}: {node.state_reason}" if node.state is not NodeState.UP else "is in service"
        return Refusal(RefusalKind.CONFLICT, f"Node {node.name} {why}; only a drained node can be resumed.")
    return [events.NodeResumed(node.name, by), *readmitted]


def drain_for_fault(machine: Machine, name: NodeName, because: str) -> list[EventBody]:
    """Return the event that drains a node because of a fault; none if it is drained, or no longer configured."""
    node = machine.state.nodes.get(name)
    return [] if node is None or node.drained_by else [events.NodeDrained(name, ENGINE, because)]


def still_drained(node: Node, before: Node | None) -> Node:
    """Return a detected node with its present price, and still drained if it was before: only `resume` ends a drain."""
    if before is None:
        return node
    if before.price_milli is not None:
        node = replace(node, price_milli=before.price_milli)
    if not before.drained_by:
        return node
    return replace(node, state=before.state, state_reason=before.state_reason, drained_by=before.drained_by)


def _node(machine: Machine, name: str) -> Node | Refusal:
    # A request has any text as a name, and must be compared with names as text.
    node = {str(each): node for each, node in machine.state.nodes.items()}.get(name)
    if node is None:
        return Refusal(RefusalKind.NOT_FOUND, f'There is no node "{visible(name)}"; `cockpit nodes` lists them.')
    return node


def disk_filled(machine: Machine, because: str) -> list[EventBody]:
    """Drain all nodes while the disk for staged copies, which they share, is too full.

    Empty `because`: the disk has space again, and the nodes that were drained for this are resumed.
    """
    nodes = machine.state.nodes.values()
    if because:
        return [events.NodeDrained(each.name, ENGINE, DISK + because) for each in nodes if not each.drained_by]
    # Drains by administrators, and those for other faults, stay.
    drained_for_disk = [each for each in nodes if each.drained_by == ENGINE and each.state_reason.startswith(DISK)]
    return [events.NodeResumed(each.name, ENGINE) for each in drained_for_disk]
