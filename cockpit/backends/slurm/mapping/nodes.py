"""`scontrol -o -d show node` as nodes with their cards."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from cockpit.backends.slurm.mapping import values
from cockpit.backends.slurm.mapping.records import words
from cockpit.model.ids import NodeName
from cockpit.model.node import Card, CardVendor, Node, NodeState

COMMAND = ("scontrol", "-o", "-d", "show", "node")

_GRES = re.compile(r"(gpu|mig|shard)(?::([^:(,]+))?:(\d+)")
_DOWN = ("DOWN", "FAIL", "ERROR", "NOT_RESPONDING", "POWERED_DOWN", "POWERING_DOWN", "POWER_DOWN", "UNKNOWN", "FUTURE")
_DRAINED = ("DRAIN", "MAINT", "REBOOT", "RESERVED_DOWN")
_VENDORS = {"mi": CardVendor.ROCM, "mlu": CardVendor.MLU, "ascend": CardVendor.ASCEND}


class Seen(NamedTuple):
    """A node, and what the model's node has no place for."""

    node: Node
    shards_per_card: int
    """Into how many a card is cut (gres/shard); 0: into none."""


def seen(printed: str) -> Iterator[Seen]:
    """One a line. A line that names no node is left out."""
    for line in printed.splitlines():
        record = words(line)
        if values.text(record.get("NodeName", "")):
            yield _seen(record)


def _seen(record: dict[str, str]) -> Seen:
    state = record.get("State", "UNKNOWN")
    gres = _GRES.findall(values.text(record.get("Gres", "")))
    shards = sum(int(count) for kind, _, count in gres if kind == "shard")
    cards = tuple(_cards(gres))
    node = Node(
        name=NodeName(record["NodeName"]),
        cpus=values.number(record.get("CPUEfctv", "")) or values.number(record.get("CPUTot", "")) or 0,
        memory_mib=_memory(record),
        cards=cards,
        os=values.text(record.get("OS", "")).split(" #")[0],
        state=node_state(state),
        state_reason=_reason(record, state),
        virtual=False,
    )
    per_card = shards // len(cards) if cards else 0
    return Seen(node, per_card)


def _memory(record: dict[str, str]) -> int:
    """Without what is kept for the system."""
    kept = values.number(record.get("MemSpecLimit", "")) or 0
    return max(0, (values.number(record.get("RealMemory", "")) or 0) - kept)


def _cards(gres: list[tuple[str, str, str]]) -> Iterator[Card]:
    index = 0
    for kind, model, count in gres:
        for _ in range(int(count) if kind != "shard" else 0):
            yield Card(index=index, model=model.lower() or "gpu", vendor=_vendor(model))
            index += 1


def _vendor(model: str) -> CardVendor:
    found = (vendor for lead, vendor in _VENDORS.items() if model.lower().startswith(lead))
    return next(found, CardVendor.NVIDIA)


def node_state(state: str) -> NodeState:
    """`IDLE+DRAIN`, `DOWN*`: down where it cannot run anything, drained where nothing more starts."""
    parts = state.upper().split("+")
    if any(part.strip("*~#!%$@^-").startswith(_DOWN) for part in parts) or state.endswith("*"):
        return NodeState.DOWN
    return NodeState.DRAINED if any(part.startswith(_DRAINED) for part in parts) else NodeState.UP


def _reason(record: dict[str, str], state: str) -> str:
    """`bad disk [root@2026-11-21T08:00:00]`, else the state's own word."""
    reason = values.text(record.get("Reason", ""))
    if reason or node_state(state) is NodeState.UP:
        return reason
    return state.lower()
