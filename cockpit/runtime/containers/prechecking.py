"""Check just before a job starts that this machine still has what was allocated: CPUs, memory, disk space, and cards
whose driver answers.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Final

from cockpit.model.ids import NodeName
from cockpit.present.phrases import listed
from cockpit.present.units import counted
from cockpit.runtime.machine import probe_machine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from cockpit.model.node import Allocation, Card, Node, Placement

NOWHERE: Final = NodeName("")
_MOST_NAMED = 8
"""Most nodes that the event of a passed check describes."""

LEAST_FREE_MIB = 64
"""Least free space on the disk of the state folder, which contains containers and logs."""
_MIB = 1 << 20


class Prechecks:
    """The checks of nodes before jobs start.

    `node_of` returns a node as the engine knows it. `state`: the engine's state folder. `probe` inspects this machine,
    which takes as long as the cards' tools do.
    """

    def __init__(
        self, node_of: Callable[[NodeName], Node], state: Path, probe: Callable[[], Node] = probe_machine
    ) -> None:
        self._node_of = node_of
        self._state = state
        self._probe = probe

    def look(self, placement: Placement) -> tuple[NodeName, str]:
        """Return the first node that fails, and why; if none does, no node and a description of all nodes. Blocks."""
        # One inspection serves all parts: each node of an embedded cluster is this machine.
        machine = self._probe()
        for part in placement:
            if wrong := wrong_with(self._node_of(part.node), part, machine, self._state):
                return part.node, wrong
        return NOWHERE, "; ".join(_passed_words(self._node_of(part.node), part) for part in placement[:_MOST_NAMED])


def wrong_with(promised: Node, allocation: Allocation, machine: Node, state: Path) -> str:
    """Return what is wrong with a node, or an empty text.

    `promised`: the node as the engine knows it. `machine`: the machine as it is now.
    """
    return next(_wrong(promised, allocation, machine, state), "")


def _passed_words(promised: Node, allocation: Allocation) -> str:
    """Describe a node that passed: `n1 has its 8 CPUs, its memory and 2 cards that answer`."""
    count = len(_real(promised, allocation))
    parts = [f"its {counted(allocation.cpus, 'CPU')}", "its memory"]
    if count:
        parts.append("1 card that answers" if count == 1 else f"{count} cards that answer")
    return f"{promised.name} has {listed(parts)}"


def _wrong(promised: Node, allocation: Allocation, machine: Node, state: Path) -> Iterator[str]:
    # Virtual nodes may together have more than the machine, which proves nothing about a single one.
    if not promised.overcommitted:
        if machine.cpus < allocation.cpus:
            yield f"the machine has {counted(machine.cpus, 'CPU')} now, and {allocation.cpus} were promised"
        if machine.memory_mib < allocation.memory_mib:
            yield f"the machine has {machine.memory_mib} MiB of memory now, and {allocation.memory_mib} were promised"
    free = shutil.disk_usage(state).free // _MIB
    if free < LEAST_FREE_MIB:
        yield f"the disk of {state} has {free} MiB left, too little for a container"
    yield from _wrong_with_cards(promised, allocation, machine)


def wrong_with_cards(promised: Node, allocation: Allocation, machine: Node) -> str:
    """Return what is wrong with a node's cards, or an empty text."""
    return next(_wrong_with_cards(promised, allocation, machine), "")


def _wrong_with_cards(promised: Node, allocation: Allocation, machine: Node) -> Iterator[str]:
    for card in _real(promised, allocation):
        yield from _wrong_with_card(card, machine)


def _real(promised: Node, allocation: Allocation) -> list[Card]:
    """Return the allocated cards that are real, not only declared in the configuration."""
    # Several slices may be parts of one card, which is checked once.
    held = sorted({part.card for part in allocation.slices})
    return [card for card in promised.cards if card.index in held and not card.declared]


def _wrong_with_card(card: Card, machine: Node) -> Iterator[str]:
    named = f"card {card.index + 1} ({card.model})"
    # By identity and not by index: cards are numbered anew when one has fallen off the bus.
    now = next((each for each in machine.cards if _is(each, card)), None)
    if now is None:
        yield f"{named} does not answer any more"
        return
    if gone := [path for path in card.devices if path not in now.devices]:
        yield f"{named} has lost {', '.join(gone)}"
    if lost := set(card.slice_uuids).difference(now.slice_uuids):
        yield f"{named} has lost {len(lost)} of its {len(card.slice_uuids)} slices"


def _is(one: Card, other: Card) -> bool:
    """Return whether both are the same card, by UUID if the vendor provides one."""
    return one.uuid == other.uuid if other.uuid else one.devices == other.devices
