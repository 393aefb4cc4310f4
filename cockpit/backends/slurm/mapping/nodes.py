"""Builds nodes and their cards from the records of `scontrol -o -d show node`.

A card is a whole GPU, an instance that MIG cuts a card into, or a shard. Slurm numbers whatever it allocates: of a node
with an A100 in seven instances `gpu:a100_1g.5gb:2(IDX:0-1)` is two of the seven parts of its one card.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from cockpit.backends.slurm.mapping import values
from cockpit.backends.slurm.mapping.records import Record
from cockpit.backends.slurm.mapping.values import number, numbers
from cockpit.model.cardmodels import instances_per_card
from cockpit.model.ids import NodeName
from cockpit.model.node import Card, CardSlice, CardVendor, Node, NodeState
from cockpit.model.spec import WHOLE_CARD
from cockpit.sched.nodes.cards import slot_milli

# `gpu:a100:4(S:0-1)`; the type is optional, and what is in brackets is the sockets, which are not needed.
_HAS = re.compile(r"(gpu|mig|shard)(?::([^:(,]+))?:(\d+)")
_HOLDS = re.compile(r"(gpu|mig|shard)(?::([^:(,]+))?:(\d+)\(([^)]*)\)")
_VENDORS = {"mi": CardVendor.ROCM, "mlu": CardVendor.MLU, "ascend": CardVendor.ASCEND}


class Cards(NamedTuple):
    """A node's cards, and what Slurm calls them."""

    cards: tuple[Card, ...]
    numbered: tuple[CardSlice, ...]
    """The card, or the part of it, by Slurm's number of the GPU or instance."""
    shards_per_card: int
    """Into how many a card is cut (gres/shard); 0: into none."""

    def held(self, printed: str) -> Iterator[CardSlice]:
        """Return the cards and slices in a text such as `gpu:a100:2(IDX:0,3)`, `shard:3(IDX:2)` or
        `shard:4(4/8,0/8)`."""
        for kind, _, count, where in _HOLDS.findall(printed):
            if kind != "shard":
                yield from (self._numbered(each) for each in numbers(where.removeprefix("IDX:")))
            elif where.startswith("IDX:"):
                yield from self._shards(int(count), numbers(where.removeprefix("IDX:")))
            else:
                yield from _fractions(where, self.shards_per_card)

    def _numbered(self, index: int) -> CardSlice:
        # A number that the node's Gres does not explain still means a card in use.
        return self.numbered[index] if index < len(self.numbered) else CardSlice(index, None)

    def _shards(self, count: int, cards: tuple[int, ...]) -> Iterator[CardSlice]:
        """Return the shards of each of these cards."""
        if self.shards_per_card and cards:
            # GresUsed has the sum of the shards and the cards they are on, so the sum is divided evenly.
            milli = WHOLE_CARD * count // len(cards) // self.shards_per_card
            yield from (CardSlice(card, 0, min(milli, WHOLE_CARD)) for card in cards if milli)


NO_CARDS = Cards((), (), 0)


def cards_of(printed: str) -> Cards:
    """Return the cards of a text such as `gpu:a100:4(S:0-1),shard:16`, in Slurm's order."""
    cards: list[Card] = []
    numbered: list[CardSlice] = []
    shards = 0
    for kind, model, count in _HAS.findall(printed):
        if kind == "shard":
            shards += int(count)
            continue
        per_card = instances_per_card(model)
        for place in range(int(count)):
            # every `per_card`-th instance is the first of another card
            if not per_card or place % per_card == 0:
                named = model.lower() or "gpu"
                cards.append(Card(index=len(cards), model=named, vendor=_vendor(model), slices=per_card))
            card = cards[-1]
            part = (
                CardSlice(card.index, place % per_card, slot_milli(card)) if per_card else CardSlice(card.index, None)
            )
            numbered.append(part)
    # slurm.conf gives a node's shards as a total that gres.conf spreads evenly over its GPUs (gres.html, Sharding).
    return Cards(tuple(cards), tuple(numbered), shards // len(cards) if cards else 0)


def _fractions(where: str, shards_per_card: int) -> Iterator[CardSlice]:
    """Yield the shards of a text such as `4/8,0/8`: how many of each card are in use, and how many it has."""
    for card, part in enumerate(where.split(",")):
        used, _, all_of_it = part.partition("/")
        # The card's own number of shards may be missing in older output.
        whole = number(all_of_it) or shards_per_card
        if number(used) and whole:
            yield CardSlice(card, 0, WHOLE_CARD * (number(used) or 0) // whole)


def _vendor(model: str) -> CardVendor:
    vendors = (vendor for lead, vendor in _VENDORS.items() if model.lower().startswith(lead))
    return next(vendors, CardVendor.NVIDIA)


COMMAND = ("scontrol", "-o", "-d", "show", "node")
KEY = "NodeName"

# Compared by their beginnings: FAIL covers FAILING.
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


def slurm_nodes(records: Iterable[Record]) -> Iterator[SlurmNode]:
    """Yield the nodes; a record without a name is left out."""
    return (_node_of(record) for record in records if values.text(record.get(KEY, "")))


def _node_of(record: Record) -> SlurmNode:
    """Return the node of a record of `scontrol show node`."""
    state = record.get("State", "UNKNOWN")
    gres = cards_of(values.text(record.get("Gres", "")))
    node = Node(
        name=NodeName(record[KEY]),
        # CPUEfctv (since 22.05) leaves out the CPUs that CoreSpecCount reserves for the system.
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


def _memory(record: Record) -> int:
    """Return the node's memory without the part that is reserved for the system (MemSpecLimit)."""
    kept = values.number(record.get("MemSpecLimit", "")) or 0
    return max(0, (values.number(record.get("RealMemory", "")) or 0) - kept)


def node_state(state: str) -> NodeState:
    """Return the state that a text such as `IDLE+DRAIN` or `DOWN*` means: down where nothing can run, drained where
    nothing more starts."""
    parts = state.upper().split("+")
    # `*`: the node does not answer. The other marks are about power, reboots, maintenance and plans (sinfo(1), NODE
    # STATE CODES).
    if any(part.strip("*~#!%$@^-").startswith(_DOWN) for part in parts) or state.endswith("*"):
        return NodeState.DOWN
    return NodeState.DRAINED if any(part.startswith(_DRAINED) for part in parts) else NodeState.UP


def _reason(record: Record, state: str) -> str:
    """Return `bad disk [root@2026-11-21T08:00:00]`, else the state's own words, those that are more than how busy it is
    (`planned`, `completing`) and whether it is in service (`not responding`, `maint`)."""
    if reason := values.text(record.get("Reason", "")):
        return reason
    words = [part.strip("*~#!%$@^-").lower().replace("_", " ") for part in state.split("+")]
    silent = [_SILENT] if state.endswith("*") and _SILENT not in words else []
    reasons = [word for word in words if word not in _BUSY and word not in _SAID_BY_STATE]
    return ", ".join([*reasons, *silent])
