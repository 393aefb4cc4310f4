"""Check the nodes of running jobs that can continue from checkpoints (EL-11): network interfaces, cards, and whether
the checks finish at all."""

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
    """The state between two checks, by which a fault is distinguished from an interface that never worked.

    `probe` inspects this machine, which all nodes are on. `root`: the folder that is read instead of `/`.
    """

    def __init__(self, probe: Callable[[], Node] = probe_machine, root: Path = Path("/")) -> None:
        self._probe = probe
        self._root = root
        self._worked: frozenset[str] = frozenset()

    def look(self, parts: Parts) -> dict[NodeName, str]:
        """Return the faulty nodes, with what is wrong. Blocks."""
        machine = self._probe()
        of_network = self._of_network()
        faulty: dict[NodeName, str] = {}
        for node, allocation in parts:
            if wrong := of_network or wrong_with_cards(node, allocation, machine):
                faulty.setdefault(node.name, wrong)
        return faulty

    def rest(self) -> None:
        """Forget the working interfaces: while no node is watched, a lost interface is not a fault."""
        self._worked = frozenset()

    def _of_network(self) -> str:
        now = interfaces.working(self._root)
        lost = sorted(self._worked - now)
        self._worked |= now
        return "; ".join(f"the network interface {name} is {interfaces.state(name, self._root)}" for name in lost)


async def go_round(host: Host, rounds: Rounds, period_seconds: int) -> None:
    """Check the watched nodes once per period, until cancelled. A check that takes longer than a period is a fault."""
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
