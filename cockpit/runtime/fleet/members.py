"""Carry out the effects of a fleet's engine by orders to its member clusters."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from cockpit.engine.fleet.orders import FLEET, MemberDecision, Open, orders
from cockpit.engine.fleet.parts import job_of, parts_of, replica_there
from cockpit.engine.fleet.reports import fleet_nodes, nodes_reported, others_held
from cockpit.engine.machine import Machine
from cockpit.engine.state import ClusterState
from cockpit.errors import RequestRefused
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.runtime.fleet.gate import Gate
from cockpit.runtime.fleet.linked_replicas import in_fleet, linked_replica
from cockpit.runtime.fleet.remote import MemberLink, RemoteMember
from cockpit.runtime.fleet.reports import MemberReports
from cockpit.runtime.host import Act, Host
from cockpit.runtime.tasks import Tasks

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cockpit.engine.effects import (
        CheckNodes,
        FreezeReplica,
        KeepContainer,
        RemoveContainer,
        SignalReplica,
        StageReplica,
        StartReplica,
        ThawReplica,
        WriteWorkersFile,
    )
    from cockpit.engine.fleet.orders import ReplicaEffect
    from cockpit.engine.ports import Journal, Observer
    from cockpit.model.attempt import Attempt
    from cockpit.model.events import EventRecord
    from cockpit.model.ids import ReplicaId
    from cockpit.model.job import Job
    from cockpit.model.jobdetail import ReplicaUse
    from cockpit.model.node import Node
    from cockpit.model.staging import Progress, StagedCopy
    from cockpit.runtime.clock import Timekeeper
    from cockpit.runtime.containers.entering import EnteredShell, Terminal
    from cockpit.runtime.fleet.linked_replicas import LinkedReplica
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
        # Called by `Host` below, which makes its executor; by then `machine` exists.
        def gated(observer: Observer) -> Gate:
            heard = MemberReports(name, machine, observer, tell, settings.hold_seconds)
            self.gate = Gate(executor_for(heard), heard, lambda job: heard.part(job) is not None)
            return self.gate

        machine = Machine(ClusterState())
        self.name = name
        self.host = Host(machine, journal, gated, clock, settings)


class Members:
    """The `runtime.host.ContainerRuntime` of the fleet's host, which is constructed with it."""

    def __init__(self) -> None:
        self._members: dict[str, MemberHost] = {}
        self.remote: dict[str, RemoteMember] = {}
        """The members that are reached over a link, by name."""
        self._fleet: Host | None = None
        self._reports: asyncio.Queue[Told] = asyncio.Queue()
        self._unread_reports = 0
        self._tasks = Tasks()
        self._shells = Tasks()

    @property
    def machines(self) -> dict[str, Machine]:
        """The state machines of the members in this process by name, in the fleet's order."""
        return {name: each.host.machine for name, each in self._members.items()}

    @property
    def hosts(self) -> list[Host]:
        """The members' hosts, in the fleet's order."""
        return [each.host for each in self._members.values()]

    @property
    def resting(self) -> bool:
        """Whether all members are idle and no report to the fleet is pending."""
        return not self._unread_reports and all(each.host.resting for each in self._members.values())

    def join(
        self,
        name: str,
        journal: Journal,
        executor_for: Callable[[Observer], ContainerRuntime],
        clock: Timekeeper,
        settings: Settings,
    ) -> None:
        """Add a member."""
        self._members[name] = MemberHost(name, self._queue_report, journal, executor_for, clock, settings)

    def of(self, _: Observer) -> Members:
        """Return the members as the executor of the fleet's host, to which they report by themselves."""
        return self

    def join_over_link(self, name: str, link: MemberLink, fleet_id: str, clock: Timekeeper) -> None:
        """Add a member that is reached over a link. `fleet_id`: see `model.fleetorder.Order`."""
        self.remote[name] = RemoteMember(name, link, fleet_id, clock)

    @property
    def nodes(self) -> tuple[Node, ...]:
        """All nodes of all members under their names in the fleet."""
        over_links = (node for member in self.remote.values() for node in member.nodes)
        return (*fleet_nodes(self.machines), *over_links)

    async def begin(self, fleet: Host) -> None:
        """Start the members, and report their changes to the fleet from now on, beginning with their nodes."""
        self._fleet = fleet
        self._tasks.start(self._apply_reports(), "news of the fleet's members")
        for member in self._members.values():
            await member.host.start()
            self._tasks.start(self._watch(member), f"watching {member.name}")
        for name, remote in self.remote.items():
            self._tasks.start(remote.follow(fleet, self._report_nodes), f"looking at {name}")

    async def stop(self) -> None:
        """Stop the members' hosts."""
        await self._tasks.cancel_all()
        await self._shells.cancel_all()
        for remote in self.remote.values():
            await remote.stop()
        for member in self._members.values():
            await member.host.stop()

    async def stage(self, effect: StageReplica) -> None:
        """Do nothing: each member stages by itself."""

    def staging(self, replica: ReplicaId) -> Progress | None:
        there = self._there(replica)
        return self._members[there[0]].gate.staging(there[1]) if there is not None else None

    async def copies(self) -> list[StagedCopy]:
        """Return the staged copies of all members."""
        copies = [await member.gate.copies() for member in self._members.values()]
        return [copy for of_member in copies for copy in of_member]

    async def remove_copy(self, key: str) -> bool:
        return any([await each.gate.remove_copy(key) for each in self._members.values()])

    async def start(self, effect: StartReplica) -> None:
        await self._order(effect)

    async def signal(self, effect: SignalReplica) -> None:
        await self._order(effect)

    async def check(self, effect: CheckNodes) -> None:
        """Do nothing: nodes are not checked for a fleet's jobs."""

    async def freeze(self, effect: FreezeReplica) -> None:
        await self._order(effect)

    async def thaw(self, effect: ThawReplica) -> None:
        await self._order(effect)

    async def write_workers_file(self, effect: WriteWorkersFile) -> None:
        """Do nothing: a fleet's jobs never change their number of workers."""

    async def used(self, replica: ReplicaId) -> ReplicaUse | None:
        there = self._there(replica)
        return await self._members[there[0]].gate.used(there[1]) if there is not None else None

    async def keep(self, effect: KeepContainer) -> None:
        """Do nothing: a member holds the container of a failed replica by itself, since the part's spec asks for it."""

    async def remove(self, effect: RemoveContainer) -> None:
        await self._order(effect)

    async def adopt(self, expected: Sequence[StartReplica], kept: Sequence[KeepContainer]) -> None:
        """Repeat the orders after an engine start; a repeated order has no effect.

        Members over links need none: each look at them leads to what they are told.
        """
        del kept  # by the members, see `keep`
        for start in expected:
            await self._order(start)

    async def enter(
        self, replica: ReplicaId, command: Sequence[str], *, terminal: Terminal | None, label: str
    ) -> EnteredShell:
        if (linked := self._linked(replica)) is not None:
            job = self._job(replica)
            return await linked.enter(command, terminal, self._shells, kept=job is not None and job.kept)
        there = self._there(replica)
        if there is None:
            raise RequestRefused(Refusal(RefusalKind.CONFLICT, f"{replica} has no container to enter"))
        return await self._members[there[0]].gate.enter(there[1], command, terminal=terminal, label=label)

    def linked(self, attempt: Attempt, rank: int) -> LinkedReplica | None:
        """Return where a replica is that runs on a member over a link; None: it does not."""
        return linked_replica(self.remote, attempt, rank)

    async def events(self, job: Job, rank: int, *, after: int, limit: int) -> list[EventRecord]:
        """Return what the member reports of its part of a job: the member that has, or last had, this replica."""
        attempt = job.attempt
        if attempt is None or rank >= len(attempt.members):
            return []
        if (linked := self.linked(attempt, rank)) is not None:
            return await linked.events(job.id, after=after, limit=limit)
        host, part = self._members[attempt.members[rank]].host, parts_of(job)[attempt.members[rank]]
        there = job_of(host.machine, job, part)
        if there is None:
            return []
        return in_fleet(await host.journal.events(job=there.id, after=after, limit=limit), job.id, part.ranks)

    def _linked(self, replica: ReplicaId) -> LinkedReplica | None:
        job = self._job(replica)
        attempt = job.attempt if job is not None else None
        is_current = attempt is not None and attempt.number == replica.attempt
        return self.linked(attempt, replica.rank) if attempt is not None and is_current else None

    def _job(self, replica: ReplicaId) -> Job | None:
        assert self._fleet is not None
        return self._fleet.machine.state.jobs.get(replica.job)

    def _there(self, replica: ReplicaId) -> tuple[str, ReplicaId] | None:
        assert self._fleet is not None
        return replica_there(self._fleet.machine, self.machines, replica)

    def _report_nodes(self) -> None:
        """Report the nodes of all members if they have changed."""
        assert self._fleet is not None
        if nodes_reported(self._fleet.machine, self.nodes):
            self._queue_report(lambda machine, _: nodes_reported(machine, self.nodes))

    async def _order(self, effect: ReplicaEffect) -> None:
        for remote in self.remote.values():
            remote.wake()
        if not self._members:
            return
        assert self._fleet is not None
        for order in orders(effect, self._fleet.machine, self.machines):
            member = self._members[order.member]
            match order:
                case MemberDecision():
                    await member.host.act(order.decision, Act(actor=FLEET, origin="engine"))
                case Open():
                    await member.gate.open(order.job)

    def _queue_report(self, report: Told) -> None:
        self._unread_reports += 1
        self._reports.put_nowait(report)

    async def _apply_reports(self) -> None:
        """Apply the members' reports in their order: resources are released before another job gets them."""
        assert self._fleet is not None
        while True:
            report = await self._reports.get()
            await self._fleet.act(report, Act(actor="engine", origin="runtime"))
            # Only now: while a report is being applied, the members are not at rest.
            self._unread_reports -= 1

    async def _watch(self, member: MemberHost) -> None:
        """Report changes of the member's nodes and of the resources that its own jobs use."""
        assert self._fleet is not None
        fleet, host = self._fleet, member.host
        while True:
            seen = host.machine.state.seq
            # Asked here only in order to report nothing without a change; it is decided again when the report is
            # applied.
            if others_held(fleet.machine, member.name, host.machine):
                self._queue_report(lambda machine, _: others_held(machine, member.name, host.machine))
            self._report_nodes()
            async with host.changed:
                await host.changed.wait_for(lambda seen=seen: host.machine.state.seq != seen)  # type: ignore[misc] # mypy infers no lambda's defaults
