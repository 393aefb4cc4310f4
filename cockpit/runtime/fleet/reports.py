"""Report what happens at a member to its fleet, in the order in which it happened."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.engine.fleet import reports

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cockpit.engine.machine import Machine
    from cockpit.engine.ports import Observer
    from cockpit.model.attempt import ExitStatus
    from cockpit.model.events import EventBody
    from cockpit.model.fleet import FleetPart
    from cockpit.model.ids import JobId, Millis, NodeName, ReplicaId
    from cockpit.model.steps import StepReport
    from cockpit.model.usage import ReplicaTotals

    Told = Callable[[Machine, Millis], Sequence[EventBody]]
    """A decision for the fleet's machine: the events that follow from a report."""


class MemberReports:
    """An `engine.ports.Observer` that reports to the member's own engine and also to the fleet."""

    def __init__(
        self, name: str, machine: Machine, observer: Observer, tell: Callable[[Told], None], hold_seconds: int
    ) -> None:
        self._name = name
        self._machine = machine
        self._observer = observer
        self._tell = tell
        self._hold_seconds = hold_seconds

    def part(self, job: JobId) -> FleetPart | None:
        """Return which part of a fleet's job this job is; None if it is not one."""
        job_there = self._machine.state.jobs.get(job)
        return job_there.part if job_there is not None else None

    def placed(self, job: JobId) -> None:
        """Report that the member has placed the job."""
        job_there = self._machine.state.jobs.get(job)
        if job_there is not None:
            self._tell(lambda fleet, _: reports.part_placed(fleet, self._name, job_there))

    def replica_staged(self, replica: ReplicaId) -> None:
        self._observer.replica_staged(replica)

    def staging_moved(self, replica: ReplicaId) -> None:
        self._observer.staging_moved(replica)

    def disk_filled(self, because: str) -> None:
        self._observer.disk_filled(because)

    def replica_started(self, replica: ReplicaId, limits: str) -> None:
        self._observer.replica_started(replica, limits)
        part = self.part(replica.job)
        if part is not None:
            self._tell(lambda fleet, _: reports.part_started(fleet, part, replica.rank, limits))

    def precheck_passed(self, replica: ReplicaId, found: str) -> None:
        self._observer.precheck_passed(replica, found)

    def precheck_failed(self, replica: ReplicaId, node: NodeName, because: str) -> None:
        self._observer.precheck_failed(replica, node, because)

    def prolog_failed(self, replica: ReplicaId, because: str) -> None:
        self._observer.prolog_failed(replica, because)

    def worker_silent(self, replica: ReplicaId, silent_ms: int | None) -> None:
        self._observer.worker_silent(replica, silent_ms)

    def worker_stepped(self, replica: ReplicaId, report: StepReport) -> None:
        self._observer.worker_stepped(replica, report)

    def node_pressed(self, node: NodeName) -> None:
        self._observer.node_pressed(node)

    def epilog_failed(self, node: NodeName, because: str) -> None:
        self._observer.epilog_failed(node, because)

    def replica_ended(self, replica: ReplicaId, exit_status: ExitStatus, used: ReplicaTotals | None = None) -> None:
        self._observer.replica_ended(replica, exit_status, used)
        part = self.part(replica.job)
        if part is not None:
            hold = self._hold_seconds
            self._tell(lambda fleet, now: reports.part_ended(fleet, part, replica.rank, exit_status, now, hold, used))
