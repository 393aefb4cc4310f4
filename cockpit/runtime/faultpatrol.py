"""Looks after the nodes of jobs that go on from their checkpoints, while these run (EL-11): their network interfaces,
their cards, and whether they answer at all."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cockpit.engine.nodes import patrol
from cockpit.model.ids import Millis, NodeName
from cockpit.runtime import interfaces
from cockpit.runtime.containers.prechecking import wrong_with_cards
from cockpit.runtime.host import Act
from cockpit.runtime.machine import probe_machine

if TYPE_CHECKING:
    from collections.abc import Callable

    from cockpit.engine.machine import Machine
    from cockpit.model.events import EventBody
    from cockpit.model.node import Allocation, Node
    from cockpit.runtime.host import Host

BY: Final = Act(actor="engine", origin="runtime")
Parts = list[tuple["Node", "Allocation"]]


class Rounds:
    """What was found at the last round, to tell a fault from what never was. `probe` looks at this machine, on which
    all nodes are; `root` stands for `/`."""

    def __init__(self, probe: Callable[[], Node] = probe_machine, root: Path = Path("/")) -> None:
        self._probe = probe
        self._root = root
        self._worked: frozenset[str] = frozenset()

    def look(self, parts: Parts) -> dict[NodeName, str]:
        """What is wrong with which node. Blocks."""
        machine = self._probe()
        of_network = self._of_network()
        found: dict[NodeName, str] = {}
        for node, allocation in parts:
            if wrong := of_network or wrong_with_cards(node, allocation, machine):
                found.setdefault(node.name, wrong)
        return found

    def rest(self) -> None:
        """Nothing is watched: what changes until something is, is nobody's fault."""
        self._worked = frozenset()

    def _of_network(self) -> str:
        now = interfaces.working(self._root)
        lost = sorted(self._worked - now)
        self._worked |= now
        return "; ".join(f"the network interface {name} is {interfaces.state(name, self._root)}" for name in lost)


async def go_round(host: Host, rounds: Rounds, period_seconds: int) -> None:
    """For ever, every period. A node of which nothing is heard within one does not answer."""
    while True:
        await host.clock.wait_until(Millis(host.clock.now() + 1000 * period_seconds))
        parts = _watched(host)
        if not parts:
            rounds.rest()
            continue
        for node, because in (await _found(rounds, parts, period_seconds)).items():
            await host.insist(partial(_faulty, node, because), BY)


def _faulty(node: NodeName, because: str, machine: Machine, now: Millis) -> list[EventBody]:
    return patrol.faulty(machine, node, because, now)


def _watched(host: Host) -> Parts:
    machine = host.machine
    placements = (job.attempt.placement for job in patrol.watched(machine) if job.attempt is not None)
    return [(machine.state.nodes[part.node], part) for each in placements for part in each]


async def _found(rounds: Rounds, parts: Parts, period_seconds: int) -> dict[NodeName, str]:
    try:
        async with asyncio.timeout(period_seconds):
            return await asyncio.to_thread(rounds.look, parts)
    except TimeoutError:
        return dict.fromkeys((node.name for node, _ in parts), f"it has not answered for {period_seconds} s")
