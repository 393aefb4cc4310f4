"""The demo: a simulated cluster. The embedded engine runs on a clock of its own, with the jobs of a fixture.

Scheduling, rules and views are the real ones; only containers and users are simulated.
"""

from __future__ import annotations

import asyncio
import atexit
import shutil
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from cockpit.backends.blocking import Blocking
from cockpit.backends.demo.executor import ScriptedExecutor
from cockpit.backends.demo.fixture import catalogue_of, grouped, nodes_of, quota_of, read_fixture, rules_of
from cockpit.backends.demo.loads import with_loads
from cockpit.backends.demo.pace import DEFAULT_SPEED, DemoPace
from cockpit.backends.demo.past import past
from cockpit.backends.demo.printing import LogFiles
from cockpit.backends.demo.sandbox import Sandboxes
from cockpit.backends.demo.scripts import HOUR_MS, Scripts
from cockpit.backends.demo.simulated_users import SimulatedUsers, actor_of
from cockpit.backends.inprocess import InProcessBackend
from cockpit.engine import configure, decide
from cockpit.engine.machine import Machine
from cockpit.engine.state import ClusterState
from cockpit.engine.views.rows import overview
from cockpit.model import events
from cockpit.model.ids import JobId, Millis
from cockpit.model.view import ClusterRow
from cockpit.model.view import ClusterState as Standing
from cockpit.runtime.clock import VirtualClock
from cockpit.runtime.engine import Engine
from cockpit.runtime.exit_signals import exit_on_signals
from cockpit.runtime.fleet.members import Members
from cockpit.runtime.host import Act, Host, Settings
from cockpit.runtime.logs import LOOK_SECONDS
from cockpit.runtime.memory_journal import MemoryJournal
from cockpit.runtime.tasks import Tasks

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cockpit.backends.demo.fixture import Fixture
    from cockpit.engine.access import Actor
    from cockpit.engine.ports import Observer
    from cockpit.model.asking import LogChunk, LogMatches, LogRequest, LogSearch
    from cockpit.model.events import EventBody
    from cockpit.model.jobdetail import JobDetail
    from cockpit.model.node import Node
    from cockpit.model.view import EngineStatus, NodeRow, Overview
    from cockpit.runtime.clock import Timekeeper
    from cockpit.runtime.host import ContainerRuntime


DEFAULT_FIXTURE = "campus"
DEFAULT_SEED = 1
BADGE = "DEMO"
CONTAINERS = "demo: jobs only pretend to run"
SETTINGS = Settings()


async def open_demo(
    fixture: str = DEFAULT_FIXTURE,
    seed: int = DEFAULT_SEED,
    folder: Path | None = None,
    *,
    speed: float = DEFAULT_SPEED,
    settings: Settings = SETTINGS,
    going: bool = True,
) -> DemoCluster:
    """Open a demo whose first hours are simulated at once, and which then continues in the running event loop.

    `going`: False: its clock advances only by `elapse`. `folder`: a folder for its files that does not exist yet; None:
    one below the temporary folder. It is removed by `close`, or when the interpreter exits. Raises `SpecErrors` for a
    fixture that does not exist or is wrong.
    """
    demo = DemoCluster(read_fixture(fixture), seed, _own_folder(folder), speed=speed, settings=settings)
    try:
        await demo.begin(going=going)
    except BaseException:
        await demo.close()
        raise
    return demo


class DemoCluster:
    """One demo with its own engine, journal and clock, independent of all real clusters."""

    is_complete = True

    def __init__(
        self,
        fixture: Fixture,
        seed: int,
        folder: Path,
        *,
        speed: float = DEFAULT_SPEED,
        settings: Settings = SETTINGS,
    ) -> None:
        opening = _moment(fixture)
        self.name = f"{fixture.name} · {BADGE}"
        self.person = fixture.person
        self.folder = folder
        self._opening = opening
        # The clock starts `lived_hours` early; `begin` simulates them in a few seconds.
        self._clock = VirtualClock(Millis(opening - int(fixture.lived_hours * HOUR_MS)))
        self._tasks = Tasks()
        scripts = Scripts(fixture, seed)
        self._fixture = fixture
        self.host = self._host(fixture, scripts, settings)
        self.pace = DemoPace(self._clock, self._is_resting, speed=speed)
        engine = Engine(host=self.host, state_folder=folder, socket=folder, system=True, cluster=self.name)
        engine.members = self._members
        self._feed = engine.feed
        logs = LogFiles(engine.logs, scripts, self._clock, self.host.steps)
        # An administrator, so that every action of cockpit can be tried in a demo.
        self.backend = DemoBackend(engine, actor_of(fixture, fixture.person, admin=True), logs, self.now)
        self._nodes = nodes_of(fixture)
        self._rules, self._accounts = rules_of(fixture)
        self._catalogue = catalogue_of(fixture)
        self._quota = quota_of(fixture)
        self._crowd = SimulatedUsers(
            fixture,
            scripts.chance("crowd"),
            opening=opening,
            clock=self._clock,
            seats={user.name: InProcessBackend(engine, actor_of(fixture, user.name)) for user in fixture.users},
            queued=lambda: len(self.host.machine.queue),
            tasks=self._tasks,
        )

    def now(self) -> Millis:
        """Return the time of the demo's clock."""
        return self._clock.now()

    @property
    def members(self) -> list[Host]:
        """The hosts of the fleet's members, in their order; empty if the demo is no fleet."""
        return self._members.hosts if self._members is not None else []

    async def clusters(self) -> list[ClusterRow]:
        """Return the demo itself and its fleet's members; a demo shows no real cluster."""
        fixture = self._fixture.name
        return [
            self._cluster_row(fixture, f"demo {fixture}", await self.backend.overview()),
            *(
                self._cluster_row(name, f"member of {fixture}", overview(machine, name), fleet=fixture)
                for name, machine in (self._members.machines if self._members is not None else {}).items()
            ),
        ]

    def _cluster_row(self, name: str, way: str, seen: Overview, fleet: str = "") -> ClusterRow:
        return ClusterRow(name=name, way=way, state=Standing.LIVE, heard_at=self.now(), overview=seen, fleet=fleet)

    async def begin(self, *, going: bool = True) -> None:
        """Simulate the first hours at once; then, if `going`, continue at the demo's speed."""
        if self._members is not None:
            await begin(self._fixture, self._members, self.host)
        await self.host.act(lambda machine, _: self._first_events(machine), ENGINE)
        # Before the host starts to schedule: the first pass finds a full queue.
        await self._crowd.begin()
        await self.host.start()
        await self.pace.reach(self._opening)
        if going:
            self._tasks.start(self.pace.run(), "the demo's pace")

    def _first_events(self, machine: Machine) -> Sequence[EventBody]:
        return [
            *decide.nodes_changed(machine, self._nodes),
            events.ClusterConfigured(self._rules),
            *configure.take_over_accounts(machine.state, self._accounts),
            *([events.CatalogueChanged(self._catalogue)] if self._catalogue else []),
            *([events.QuotaApplied(self._quota)] if self._quota is not None else []),
        ]

    async def elapse(self, seconds: float) -> None:
        """Simulate at once what `seconds` real seconds would bring; return when every watcher has received it."""
        await self.pace.elapse(seconds)
        while not self._feed.is_up_to_date:  # noqa: ASYNC110 - the feed sends by itself, ten times a second
            await asyncio.sleep(LOOK_SECONDS)

    async def close(self) -> None:
        """Stop everything and remove the folder."""
        await self._tasks.cancel_all()
        await self.host.stop()
        if self._members is not None:
            await self._members.stop()
        for executor in self._executors:
            await executor.close()
        _remove(self.folder)

    def _is_resting(self) -> bool:
        return self.host.resting and (self._members is None or self._members.resting)

    def _host(self, fixture: Fixture, scripts: Scripts, settings: Settings) -> Host:
        """Return a host with simulated containers; a fleet's host has member clusters in their place."""
        self._executors: list[ScriptedExecutor] = []
        groups = (*fixture.nodes, *(group for member in fixture.members for group in member.nodes))
        nodes = {node.name: node for node in grouped(groups)}

        def pretending(name: str, observer: Observer) -> ScriptedExecutor:
            executor = ScriptedExecutor(observer, self._clock, scripts, Sandboxes(self.folder / name / "rooms"), nodes)
            self._executors.append(executor)
            return executor

        def executor_for(observer: Observer) -> ContainerRuntime:
            return self._members if self._members is not None else pretending("", observer)

        # Before the host, which asks `executor_for` as soon as it is made.
        self._members = joined(fixture, pretending, self._clock, settings)
        accounts = rules_of(fixture)[1]
        held = tuple(past(fixture, scripts, nodes_of(fixture), accounts, self._clock.now()))
        return Host(Machine(ClusterState()), MemoryJournal(past=held), executor_for, self._clock, settings)


class DemoBackend(InProcessBackend):
    """The demo's backend. The log of a job is written up to the present time whenever it is read."""

    def __init__(self, engine: Engine, actor: Actor, logs: LogFiles, now: Callable[[], Millis]) -> None:
        super().__init__(engine, actor)
        self._logs = logs
        self._now = now

    async def status(self) -> EngineStatus:
        # The engine of a demo has no socket; its folder, which the engine got in its place, would only mislead.
        return replace(await super().status(), socket="", containers=CONTAINERS)

    async def nodes(self) -> list[NodeRow]:
        return [with_loads(row, self._now()) for row in await super().nodes()]

    async def job(self, job: JobId, *, task: int | None = None) -> JobDetail:
        # Twice: the detail has the end of the log, which is written in between.
        record = (await super().job(job, task=task)).job
        self._logs.bring_up(record)
        return await super().job(record.id)

    async def logs(self, request: LogRequest) -> LogChunk:
        while True:
            await self._bring_up(JobId(request.job))
            # The engine would wait until the file grows, but only `_bring_up` makes it grow.
            chunk = await super().logs(replace(request, wait=False))
            if chunk.data or chunk.ended or not request.wait or chunk.size < request.offset:
                return chunk
            await asyncio.sleep(LOOK_SECONDS)

    async def search_log(self, request: LogSearch) -> LogMatches:
        await self._bring_up(JobId(request.job))
        return await super().search_log(request)

    async def _bring_up(self, job: JobId) -> None:
        host = self._engine.host
        record = host.machine.state.jobs.get(job) or await host.ended_job(job)
        if record is not None:
            self._logs.bring_up(record)


class BlockingDemo(Blocking[DemoBackend]):
    """Opens a demo for one-shot commands, which ends with the command. Its time is the demo's own."""

    def __init__(self, runner: asyncio.Runner, demo: DemoCluster) -> None:
        super().__init__(runner, demo.backend)
        self._demo = demo
        self.now = demo.now

    @classmethod
    def open(
        cls, fixture: str = DEFAULT_FIXTURE, seed: int = DEFAULT_SEED, speed: float = DEFAULT_SPEED
    ) -> BlockingDemo:
        """Open a demo; the arguments are those of `open_demo`."""
        exit_on_signals()
        runner = asyncio.Runner()
        return cls(runner, runner.run(open_demo(fixture, seed, speed=speed)))

    async def close(self) -> None:
        self._run(self._demo.close())
        self._runner.close()


def _moment(fixture: Fixture) -> Millis:
    return Millis(int(fixture.opens_at.astimezone().timestamp() * 1000))


def _own_folder(folder: Path | None) -> Path:
    """Create the demo's folder, a temporary one if none is given, and have it removed when the process ends."""
    if folder is None:
        own = Path(tempfile.mkdtemp(prefix="cockpit-demo-"))
    else:
        own = folder
        own.mkdir(mode=0o700)
    # Also for a demo that is not closed in order.
    atexit.register(_remove, own)
    return own


def _remove(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)


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
