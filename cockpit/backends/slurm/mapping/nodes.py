"""Reads nodes and their cards out of `scontrol -o -d show node`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from cockpit.backends.slurm.mapping import values
from cockpit.backends.slurm.mapping.gres import Cards, cards_of
from cockpit.backends.slurm.mapping.records import blocks, words
from cockpit.model.ids import NodeName
from cockpit.model.node import CardSlice, Node, NodeState

COMMAND = ("scontrol", "-o", "-d", "show", "node")

_DOWN = ("DOWN", "FAIL", "ERROR", "NOT_RESPONDING", "POWERED_DOWN", "POWERING_DOWN", "POWER_DOWN", "UNKNOWN", "FUTURE")
_BUSY = frozenset({"idle", "mixed", "allocated", "dynamic norm", "cloud"})
_SAID_BY_STATE = frozenset({"down", "drain", "drained", "draining", "unknown"})
_SILENT = "not responding"
_DRAINED = ("DRAIN", "MAINT", "REBOOT", "RESERVED_DOWN")


class SlurmNode(NamedTuple):
    """A node, with facts that the model's node does not have."""

    node: Node
    gres: Cards
    """The node's cards by Slurm's names."""
    in_use: tuple[CardSlice, ...] = ()
    """Card slices in use by any job."""
    host: str = ""
    """Host name of its machine; empty: the node's name."""


def parse_nodes(printed: str) -> Iterator[SlurmNode]:
    """Yield the nodes of the output, which has one line for each unless a reason contains line breaks."""
    for block in blocks(printed, "NodeName"):
        record = words(block)
        if values.text(record.get("NodeName", "")):
            yield _node_of(record)


def _node_of(record: dict[str, str]) -> SlurmNode:
    state = record.get("State", "UNKNOWN")
    gres = cards_of(values.text(record.get("Gres", "")))
    node = Node(
        name=NodeName(record["NodeName"]),
        cpus=values.number(record.get("CPUEfctv", "")) or values.number(record.get("CPUTot", "")) or 0,
        memory_mib=_memory(record),
        cards=gres.cards,
        os=values.text(record.get("OS", "")).split(" #")[0],
        state=node_state(state),
        state_reason=_reason(record, state),
        virtual=False,
    )
    return SlurmNode(
        node, gres, tuple(gres.held(record.get("GresUsed", ""))), values.text(record.get("NodeHostName", ""))
    )


def _memory(record: dict[str, str]) -> int:
    """Return the node's memory without the part that is reserved for the system (MemSpecLimit)."""
    kept = values.number(record.get("MemSpecLimit", "")) or 0
    return max(0, (values.number(record.get("RealMemory", "")) or 0) - kept)


def node_state(state: str) -> NodeState:
    """`IDLE+DRAIN`, `DOWN*`: down where it cannot run anything, drained where nothing more starts."""
    parts = state.upper().split("+")
    if any(part.strip("*~#!%$@^-").startswith(_DOWN) for part in parts) or state.endswith("*"):
        return NodeState.DOWN
    return NodeState.DRAINED if any(part.startswith(_DRAINED) for part in parts) else NodeState.UP


def _reason(record: dict[str, str], state: str) -> str:
    """`bad disk [root@2026-11-21T08:00:00]`, else the state's own words, those that are more than how busy it is
    (`planned`, `completing`) and whether it is in service (`not responding`, `maint`)."""
    if reason := values.text(record.get("Reason", "")):
        return reason
    words = [part.strip("*~#!%$@^-").lower().replace("_", " ") for part in state.split("+")]
    silent = [_SILENT] if state.endswith("*") and _SILENT not in words else []
    reasons = [word for word in words if word not in _BUSY and word not in _SAID_BY_STATE]
    return ", ".join([*reasons, *silent])
