"""A member's host as its fleet has it: what happens there is heard of, in the order in which it happened."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.engine.fleet import reports
from cockpit.engine.machine import Machine
from cockpit.engine.state import ClusterState
from cockpit.runtime.fleet.gate import Gate
from cockpit.runtime.host import Host

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cockpit.engine.ports import Journal, Observer
    from cockpit.model.events import EventBody
    from cockpit.model.fleet import FleetPart
    from cockpit.model.ids import JobId, Millis, ReplicaId
    from cockpit.model.job import ExitStatus
    from cockpit.runtime.clock import Timekeeper
    from cockpit.runtime.host import ContainerRuntime, Settings

    Told = Callable[[Machine, Millis], Sequence[EventBody]]
    """What follows for the fleet."""


class MemberHost:
    """An ordinary host with a gate in front of its containers. `tell` takes what the fleet has to hear."""

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


class MemberReports:
    """Implements `engine.ports.Observer`: for the member's own engine, and for the fleet beside it."""

    def __init__(
        self, name: str, machine: Machine, observer: Observer, tell: Callable[[Told], None], hold_seconds: int
    ) -> None:
        self._name = name
        self._machine = machine
        self._observer = observer
        self._tell = tell
        self._hold_seconds = hold_seconds

    def part(self, job: JobId) -> FleetPart | None:
        """What of the fleet's it is; None: nothing."""
        found = self._machine.state.jobs.get(job)
        return found.part if found is not None else None

    def placed(self, job: JobId) -> None:
        """The member has found room for the job."""
        found = self._machine.state.jobs.get(job)
        if found is not None:
            self._tell(lambda fleet, _: reports.placed(fleet, self._name, found))

    def replica_started(self, replica: ReplicaId, limits: str) -> None:
        self._observer.replica_started(replica, limits)
        part = self.part(replica.job)
        if part is not None:
            self._tell(lambda fleet, _: reports.started(fleet, part, replica.rank, limits))

    def replica_ended(self, replica: ReplicaId, exit_status: ExitStatus) -> None:
        self._observer.replica_ended(replica, exit_status)
        part = self.part(replica.job)
        if part is not None:
            hold = self._hold_seconds
            self._tell(lambda fleet, now: reports.ended(fleet, part, replica.rank, exit_status, now, hold))
