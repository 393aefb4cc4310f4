"""The members of a demo's fleet: embedded clusters of their own with simulated containers."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from cockpit.backends.demo.fixture import grouped
from cockpit.engine import decide
from cockpit.runtime.fleet.members import Members
from cockpit.runtime.host import Act
from cockpit.runtime.memory_journal import MemoryJournal

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cockpit.backends.demo.fixture import Fixture
    from cockpit.engine.machine import Machine
    from cockpit.engine.ports import Observer
    from cockpit.model.events import EventBody
    from cockpit.model.ids import Millis
    from cockpit.model.node import Node
    from cockpit.runtime.clock import Timekeeper
    from cockpit.runtime.host import ContainerRuntime, Host, Settings

ENGINE = Act(actor="engine", origin="engine")


def joined(
    fixture: Fixture, pretending: Callable[[str, Observer], ContainerRuntime], clock: Timekeeper, settings: Settings
) -> Members | None:
    """Return the members, each with the simulated containers of `pretending`; None if the fixture is no fleet."""
    members = Members() if fixture.members else None
    for each in fixture.members if members is not None else ():
        assert members is not None
        members.join(each.name, MemoryJournal(), partial(pretending, each.name), clock, settings)
    return members


async def begin(fixture: Fixture, members: Members, fleet: Host) -> None:
    """Give the members their nodes, and start them under the fleet's host."""
    for each, host in zip(fixture.members, members.hosts, strict=True):
        await host.act(partial(_have, grouped(each.nodes)), ENGINE)
    await members.begin(fleet)


def _have(nodes: Sequence[Node], machine: Machine, _now: Millis) -> list[EventBody]:
    return decide.nodes_changed(machine, nodes)
