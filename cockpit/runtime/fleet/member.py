"""The host of one member cluster of a fleet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.engine.machine import Machine
from cockpit.engine.state import ClusterState
from cockpit.runtime.fleet.gate import Gate
from cockpit.runtime.fleet.reports import MemberReports
from cockpit.runtime.host import Host

if TYPE_CHECKING:
    from collections.abc import Callable

    from cockpit.engine.ports import Journal, Observer
    from cockpit.runtime.clock import Timekeeper
    from cockpit.runtime.fleet.reports import Told
    from cockpit.runtime.host import ContainerRuntime, Settings


class MemberHost:
    """An ordinary host whose containers are behind a `Gate`. `tell` is called with reports for the fleet."""

    def __init__(
        self,
        name: str,
        tell: Callable[[Told], None],
        journal: Journal,
        executor_for: Callable[[Observer], ContainerRuntime],
        clock: Timekeeper,
        settings: Settings,
    ) -> None:
        def gated(observer: Observer) -> Gate:
            heard = MemberReports(name, machine, observer, tell, settings.hold_seconds)
            self.gate = Gate(executor_for(heard), heard, lambda job: heard.part(job) is not None)
            return self.gate

        machine = Machine(ClusterState())
        self.name = name
        self.host = Host(machine, journal, gated, clock, settings)
