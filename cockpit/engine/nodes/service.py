"""Nodes taken out of service and given back: by administrators, and by the engine where one of the cluster's scripts
fails on them or their disk is full."""

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
"""Begins the reason for which a node was drained that comes back by itself."""


def drain(machine: Machine, name: str, reason: str, by: str) -> list[EventBody] | Refusal:
    """Start no more jobs on the node. Running jobs continue."""
    node = _node(machine, name)
    if isinstance(node, Refusal):
        return node
    if error := text_error(reason, VALUE_BYTES):
        return Refusal(RefusalKind.INVALID, f"reason: {error}.")
    if node.drained_by:
        return Refusal(
            RefusalKind.CONFLICT, f"Node {node.name} is drained already, by {node.drained_by}: {node.state_reason}."
        )
    return [events.NodeDrained(node.name, by, reason)]


def take_back(
    machine: Machine, name: str, reason: str, by: str, now: Millis, seconds: int
) -> list[EventBody] | Refusal:
    """Start nothing more there, and have what runs go within so many seconds: the node's provider wants it. It may have
    been drained before."""
    node = _node(machine, name)
    if isinstance(node, Refusal):
        return node
    for path, error in (("reason", text_error(reason, VALUE_BYTES)), ("within", GRACE_SECONDS.error(seconds))):
        if error:
            return Refusal(RefusalKind.INVALID, f"{path}: {error}.")
    gone_at = Millis(now + 1000 * seconds)
    taken = reclaiming.taken_back(machine, node.name, gone_at, now)
    return [events.NodeDrained(node.name, by, reason, gone_at), *taken]


def resume(machine: Machine, name: str, by: str) -> list[EventBody] | Refusal:
    """Give a drained node back."""
    node = _node(machine, name)
    if isinstance(node, Refusal):
        return node
    if not node.drained_by:
        why = f"is {node.state}: {node.state_reason}" if node.state is not NodeState.UP else "is in service"
        return Refusal(RefusalKind.CONFLICT, f"Node {node.name} {why}; only one that was drained is given back.")
    return [events.NodeResumed(node.name, by)]


def drained(machine: Machine, name: NodeName, because: str) -> list[EventBody]:
    """Something has failed on the node."""
    node = machine.state.nodes.get(name)
    return [] if node is None or node.drained_by else [events.NodeDrained(name, ENGINE, because)]


def still_drained(node: Node, before: Node | None) -> Node:
    """A node as it is found, out of service for as long as it was taken out."""
    if before is None or not before.drained_by:
        return node
    return replace(node, state=before.state, state_reason=before.state_reason, drained_by=before.drained_by)


def _node(machine: Machine, name: str) -> Node | Refusal:
    found = {str(node): each for node, each in machine.state.nodes.items()}.get(name)
    if found is None:
        return Refusal(RefusalKind.NOT_FOUND, f'There is no node "{visible(name)}"; `cockpit nodes` lists them.')
    return found


def disk_filled(machine: Machine, because: str) -> list[EventBody]:
    """The disk that all nodes of this engine have their copies on is too full: nothing more starts there, until
    (`because` is empty) it is not any more."""
    nodes = machine.state.nodes.values()
    if because:
        return [events.NodeDrained(each.name, ENGINE, DISK + because) for each in nodes if not each.drained_by]
    theirs = [each for each in nodes if each.drained_by == ENGINE and each.state_reason.startswith(DISK)]
    return [events.NodeResumed(each.name, ENGINE) for each in theirs]
