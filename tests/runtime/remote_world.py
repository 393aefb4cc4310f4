"""A fleet whose members are reached over links that break: real engines behind links, on one virtual clock."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from cockpit.backends.fleet.link import BackendLink
from cockpit.backends.inprocess import InProcessBackend
from cockpit.engine import decide
from cockpit.engine.access import Actor
from cockpit.engine.effects import StartReplica
from cockpit.engine.fleet.reports import fleet_rules
from cockpit.engine.machine import Machine
from cockpit.engine.state import ClusterState
from cockpit.engine.submission.submit import submit
from cockpit.errors import CockpitError, Unreachable
from cockpit.model import events
from cockpit.model.fleet import Member
from cockpit.model.fleetorder import order_of
from cockpit.model.ids import JobId, ReplicaId
from cockpit.model.job import JobState
from cockpit.runtime.clock import VirtualClock
from cockpit.runtime.engine import Engine
from cockpit.runtime.fleet.members import Members
from cockpit.runtime.host import Act, Host, Settings
from cockpit.runtime.memory_journal import MemoryJournal
from cockpit.runtime.serving import recover
from tests.builders import ANN, NOON, a_node
from tests.runtime.host_world import ScriptedExecutor

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from pathlib import Path

    from cockpit.engine.ports import Observer
    from cockpit.model.job import Job
    from cockpit.model.spec import JobSpec
    from cockpit.runtime.fleet.remote import MemberLink

FLEET_ID = "f0a1b2c"
BY_TEST = Act(actor="root", origin="socket")
REQUEST, ANSWER, LATE = "request", "answer", "late"
"""What a break loses: the request; the answer to a request that was carried out; or the request until the next one."""


class CutLink:
    """A link that breaks where the test says."""

    def __init__(self, real: MemberLink) -> None:
        self.real = real
        self.calls = 0
        self.cut: Callable[[int, str], str] = lambda _number, _operation: ""
        """Given the number of the call, from 1, and its name: which loss it suffers; empty: none."""
        self._delayed: list[Callable[[], Awaitable[Any]]] = []

    def __getattr__(self, name: str) -> Any:
        async def call(*args: Any) -> Any:
            self.calls += 1
            loss = self.cut(self.calls, name)
            delayed, self._delayed = self._delayed, []
            if loss != REQUEST:
                for each in delayed:
                    await _quietly(each)
            else:
                self._delayed = delayed
            if loss == LATE:
                self._delayed.append(partial(getattr(self.real, name), *args))
            answer = await getattr(self.real, name)(*args) if not loss or loss == ANSWER else None
            if loss:
                raise Unreachable(f"The link broke at call {self.calls} ({name}).")
            return answer

        return call


async def _quietly(call: Callable[[], Awaitable[Any]]) -> None:
    with suppress(CockpitError):
        await call()


class Cluster:
    """A member: an engine of its own, whose containers begin at once and end when the test says so."""

    def __init__(self, name: str, nodes: int, cards: int, clock: VirtualClock, folder: Path) -> None:
        self.name, self.executor = name, ScriptedExecutor()
        self._nodes = [a_node(f"n{number}", cards=cards) for number in range(nodes)]
        self._clock, self._folder, self.is_up = clock, folder, True
        self._make(Machine(ClusterState()))
        self.link = CutLink(BackendLink(self._opened))

    def _make(self, machine: Machine) -> None:
        self.host = Host(machine, MemoryJournal(), self._with, self._clock, Settings(check_invariants=True))
        folder = self._folder
        engine = Engine(host=self.host, state_folder=folder, socket=folder, system=True, cluster=self.name)
        self.backend = InProcessBackend(engine, Actor(ANN, admin=True))

    async def _opened(self) -> Any:
        return _Up(self)

    def _with(self, observer: Observer) -> Any:
        self.executor.observer = observer
        return self.executor

    async def begin(self) -> None:
        await self.host.act(lambda machine, _: decide.nodes_changed(machine, self._nodes), BY_TEST)
        await self.host.start()

    async def kill(self) -> None:
        """Its engine is gone; the containers go on."""
        self.is_up = False
        await self.host.stop()

    async def come_back(self) -> None:
        """A new engine takes over the record and the containers of the last one."""
        self._make(Machine(self.host.machine.state))
        await recover(self.host)
        await self.host.start()
        self.is_up = True

    def end(self, code: int = 0) -> None:
        """All running parts of a fleet end."""
        for job in self.parts():
            for rank in range(len(job.attempt.replicas) if job.attempt is not None and not job.ended else 0):
                if ReplicaId(job.id, 1, rank) not in self.executor.ended and job.state is not JobState.QUEUED:
                    self.executor.end(job.id, code, rank=rank)

    def parts(self) -> list[Job]:
        return [job for job in self.host.machine.state.jobs.values() if order_of(job.spec.name) is not None]

    def job_of(self, job: JobId) -> Job:
        return self.host.machine.state.jobs[job]

    def starts(self) -> list[tuple[JobId, int, JobId]]:
        """The fleet's job and attempt of each replica that was ever started here, and the job that it was here."""
        begun = [(order_of(each.spec.name), each.replica.job) for each in self.executor.of(StartReplica)]
        return [(order.job, order.attempt, own) for order, own in begun if order is not None]


class _Up:
    """The backend of the engine that runs now."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def __getattr__(self, name: str) -> Any:
        if not self._cluster.is_up:
            raise Unreachable(f"{self._cluster.name} is down.")
        return getattr(self._cluster.backend, name)


class Fleet:
    """The fleet's own engine, over its members."""

    def __init__(
        self, clusters: Sequence[Cluster], clock: VirtualClock, machine: Machine | None = None, hub: int = 0
    ) -> None:
        """`hub`: the nodes of 8 cards of a member in the fleet's own process; 0: there is none."""
        self.clusters, self.clock = {each.name: each for each in clusters}, clock
        self.members = Members()
        self.hub_executor, self._hub = ScriptedExecutor(), hub
        if hub:
            self.members.join("hub", MemoryJournal(), self._with, clock, Settings(check_invariants=True))
        for each in clusters:
            self.members.join_over_link(each.name, each.link, FLEET_ID, clock)
        self.journal = MemoryJournal()
        self.host = Host(
            machine or Machine(ClusterState()),
            self.journal,
            lambda _: self.members,
            clock,
            Settings(check_invariants=True),
        )

    async def begin(self) -> None:
        for host in self.members.hosts:
            nodes = [a_node(f"n{number}", cards=8) for number in range(self._hub)]
            await host.act(lambda machine, _, nodes=nodes: decide.nodes_changed(machine, nodes), BY_TEST)
        embedded = [Member(name=name) for name in self.members.machines]
        rules = fleet_rules([*embedded, *(Member(name=name, over_link=True) for name in self.clusters)], ())
        await self.host.act(lambda _machine, _now: [events.ClusterConfigured(rules)], BY_TEST)
        await self.host.start()
        await self.members.begin(self.host)

    def _with(self, observer: Observer) -> Any:
        self.hub_executor.observer = observer
        return self.hub_executor

    async def stop(self) -> None:
        await self.host.stop()
        await self.members.stop()

    async def submit(self, spec: JobSpec) -> JobId:
        actor = Actor(ANN, admin=True)
        made = await self.host.act(lambda machine, now: submit(machine, [spec], actor, now=now), BY_TEST, _job)
        assert isinstance(made, bytes), made
        return msgspec.json.decode(made, type=JobId)

    def job(self, job: JobId) -> Job:
        return self.host.machine.state.jobs[job]

    async def pass_time(self, milliseconds: int) -> None:
        """Advance from one awaited moment to the next; everything happens at its time."""
        end = self.clock.now() + milliseconds
        while True:
            await self.calm()
            moment = self.clock.next_wait()
            if moment is None or moment > end:
                break
            self.clock.advance(moment - self.clock.now())
        self.clock.advance(max(0, end - self.clock.now()))
        await self.calm()

    async def calm(self) -> None:
        """Until nothing more happens at this moment: all state is in memory, so a few turns of the loop show it."""
        still = 0
        while still < 12:
            before = self._versions()
            await asyncio.sleep(0)
            still = still + 1 if before == self._versions() else 0

    def _versions(self) -> list[int]:
        hosts = [self.host, *self.members.hosts, *(each.host for each in self.clusters.values())]
        links = [each.link.calls for each in self.clusters.values()]
        rounds = [each.rounds for each in self.members.remote.values()]
        return [*(each.machine.state.seq for each in hosts), *links, *rounds]


def _job(records: Any) -> bytes:
    return msgspec.json.encode(records[0].body.job)


async def a_fleet(folder: Path, *sizes: tuple[str, int, int], hub: int = 0) -> Fleet:
    """A fleet over clusters of these names, numbers of nodes, and cards of each node."""
    clock = VirtualClock(NOON)
    clusters = [Cluster(name, nodes, cards, clock, folder) for name, nodes, cards in sizes]
    for each in clusters:
        await each.begin()
    fleet = Fleet(clusters, clock, hub=hub)
    await fleet.begin()
    await fleet.pass_time(3_000)
    return fleet


async def stopped(fleet: Fleet) -> None:
    await fleet.stop()
    for each in fleet.clusters.values():
        await each.host.stop()
