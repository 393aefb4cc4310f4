"""Check the nodes of running jobs that can continue from checkpoints (EL-11): network interfaces, cards, and whether
the checks finish at all."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cockpit.engine import faults
from cockpit.model.ids import Millis, NodeName
from cockpit.runtime.containers.prechecking import wrong_with_cards
from cockpit.runtime.containers.shim.nat import VETH
from cockpit.runtime.host import Act
from cockpit.runtime.machine import probe_machine
from cockpit.runtime.sysfiles import read_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from cockpit.engine.machine import Machine
    from cockpit.model.events import EventBody
    from cockpit.model.node import Allocation, Node
    from cockpit.runtime.host import Host


BY: Final = Act(actor="engine", origin="runtime")
Parts = list[tuple["Node", "Allocation"]]


class FaultChecks:
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
            # A lost interface concerns all nodes, which are all on this machine.
            if wrong := of_network or wrong_with_cards(node, allocation, machine):
                faulty.setdefault(node.name, wrong)
        return faulty

    def rest(self) -> None:
        """Forget the working interfaces: while no node is watched, a lost interface is not a fault."""
        self._worked = frozenset()

    def _of_network(self) -> str:
        now = working(self._root)
        lost = sorted(self._worked - now)
        # The lost ones stay in the set, and so are reported until they work again.
        self._worked |= now
        return "; ".join(f"the network interface {name} is {state(name, self._root)}" for name in lost)


async def check_periodically(host: Host, rounds: FaultChecks, period_seconds: int) -> None:
    """Check the watched nodes once per period, until cancelled. A check that takes longer than a period is a fault."""
    while True:
        await host.clock.wait_until(Millis(host.clock.now() + 1000 * period_seconds))
        parts = _watched_parts(host)
        if not parts:
            rounds.rest()
            continue
        for node, because in (await _find_faults(rounds, parts, period_seconds)).items():
            await host.act_until_stored(partial(_faulty, node, because), BY)


def _faulty(node: NodeName, because: str, machine: Machine, now: Millis) -> list[EventBody]:
    return faults.drain_faulty(machine, node, because, now)


def _watched_parts(host: Host) -> Parts:
    machine = host.machine
    placements = (job.attempt.placement for job in faults.watched_jobs(machine) if job.attempt is not None)
    return [(machine.state.nodes[part.node], part) for each in placements for part in each]


async def _find_faults(rounds: FaultChecks, parts: Parts, period_seconds: int) -> dict[NodeName, str]:
    try:
        async with asyncio.timeout(period_seconds):
            # A thread cannot be ended: one that hangs in a driver goes on, and only the waiting for it ends.
            return await asyncio.to_thread(rounds.look, parts)
    except TimeoutError:
        return dict.fromkeys((node.name for node, _ in parts), f"it has not answered for {period_seconds} s")


_WORKS: Final = frozenset({"up", "unknown"})
"""States that count as working. Drivers that do not know the state report `unknown`."""


def working(root: Path = Path("/")) -> frozenset[str]:
    """Return the working interfaces that have hardware or a default route. `root` replaces `/` in tests."""
    folder = root / "sys/class/net"
    names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    routed = _with_default_route(root)
    # Interfaces of containers, bridges and tunnels come and go, and are no faults.
    matters = (name for name in names if name in routed or (folder / name / "device").exists())
    return frozenset(name for name in matters if not name.startswith(VETH) and state(name, root) in _WORKS)


def state(name: str, root: Path = Path("/")) -> str:
    """Return an interface's state: `up`, `down`, `unknown`, …; `gone` if there is no such interface."""
    return read_text(root / "sys/class/net" / name / "operstate").strip() or "gone"


def _with_default_route(root: Path) -> frozenset[str]:
    """Return the interfaces with a default route, from /proc/net/route (columns: interface, destination, …)."""
    lines = read_text(root / "proc/net/route").splitlines()[1:]
    rows = (line.split() for line in lines)
    return frozenset(row[0] for row in rows if len(row) > 1 and row[1] == "00000000")
