"""A state folder, an executor on it, and what it observed: the double of an engine for tests with real containers."""

from __future__ import annotations

import asyncio
import os
import pwd
import shlex
import shutil
import socket
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING

from cockpit.engine.effects import KeepContainer, RemoveContainer, StartReplica
from cockpit.launch.nodescripts import PATH, ScriptFacts
from cockpit.launch.plan import launch_plan
from cockpit.model.attempt import ExitStatus
from cockpit.model.cluster import Cluster
from cockpit.model.ids import JobId, Millis, NodeName, ReplicaId, UserName
from cockpit.model.job import Submitter
from cockpit.model.node import Allocation, Card, CardSlice, Node
from cockpit.model.spec import HoldCards, JobSpec
from cockpit.model.steps import StepReport
from cockpit.model.usage import ReplicaTotals
from cockpit.runtime.containers.driver import ContainerExecutor
from cockpit.runtime.containers.entering import EnteredShell, Terminal
from cockpit.runtime.containers.nodescripts import NodeScripts
from cockpit.runtime.containers.plan import Bounds, ContainerPlan, EngineFolders, container_plan, log_file
from cockpit.runtime.containers.staging.fetching import Fetcher
from cockpit.runtime.containers.staging.staging_cache import StagingCache

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

PATIENCE_SECONDS = 60


def submitter(user: str | None = None) -> Submitter:
    entry = pwd.getpwnam(user) if user else pwd.getpwuid(os.geteuid())
    groups = tuple(os.getgrouplist(entry.pw_name, entry.pw_gid))
    return Submitter(UserName(entry.pw_name), entry.pw_uid, entry.pw_gid, groups, entry.pw_dir)


class Seen:
    """An observer that remembers, and lets a test wait."""

    def __init__(self) -> None:
        self.started: list[tuple[ReplicaId, str]] = []
        self.ended: list[tuple[ReplicaId, ExitStatus]] = []
        self.failed: list[str] = []
        self.checked: list[str] = []
        self.staged: list[ReplicaId] = []
        self.pressed: list[NodeName] = []
        self.silent: list[tuple[ReplicaId, int | None]] = []
        self.stepped: list[tuple[ReplicaId, StepReport]] = []
        self.moved: list[ReplicaId] = []
        self.full: list[str] = []
        self.used: dict[ReplicaId, ReplicaTotals | None] = {}
        self._news = asyncio.Event()

    def replica_started(self, replica: ReplicaId, limits: str) -> None:
        self.started.append((replica, limits))
        self._news.set()

    def replica_ended(self, replica: ReplicaId, exit_status: ExitStatus, used: ReplicaTotals | None = None) -> None:
        self.ended.append((replica, exit_status))
        self.used[replica] = used
        self._news.set()

    def worker_silent(self, replica: ReplicaId, silent_ms: int | None) -> None:
        self.silent.append((replica, silent_ms))
        self._news.set()

    def worker_stepped(self, replica: ReplicaId, report: StepReport) -> None:
        self.stepped.append((replica, report))
        self._news.set()

    def node_pressed(self, node: NodeName) -> None:
        self.pressed.append(node)
        self._news.set()

    def precheck_passed(self, replica: ReplicaId, found: str) -> None:
        self.checked.append(found)
        self._news.set()

    def precheck_failed(self, replica: ReplicaId, node: NodeName, because: str) -> None:
        self.failed.append(f"{node}: {because}")
        self._news.set()

    def replica_staged(self, replica: ReplicaId) -> None:
        self.staged.append(replica)
        self._news.set()

    def staging_moved(self, replica: ReplicaId) -> None:
        self.moved.append(replica)
        self._news.set()

    def disk_filled(self, because: str) -> None:
        self.full.append(because)
        self._news.set()

    def prolog_failed(self, replica: ReplicaId, because: str) -> None:
        self.failed.append(because)
        self._news.set()

    def epilog_failed(self, node: NodeName, because: str) -> None:
        self.failed.append(f"{node}: {because}")
        self._news.set()

    async def until(self, told) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not told():
                self._news.clear()
                await self._news.wait()


class StandingClock:
    """A clock that tests move."""

    def __init__(self) -> None:
        self.at = 1_000_000

    def now(self) -> Millis:
        return Millis(self.at)


class House:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.state = folder / "state"
        self.state.mkdir(mode=0o700, exist_ok=True)
        self.cards: tuple[Card, ...] = ()
        self.bounds = Bounds(pids=200, scratch_mib=64)
        self.rules = Cluster()
        self.script_seconds = 20.0
        self.script_bytes = 1 << 20
        self.podman = True
        self.placement: tuple[Allocation, ...] = ()
        """Of a job with several replicas."""
        self.clock = StandingClock()
        self._jobs = 0
        self.move_in()

    def move_in(self) -> None:
        """A new engine: nothing is remembered but what is in the state folder."""
        self.seen = Seen()
        scripts = NodeScripts(self.state, lambda: self.rules, self.facts_for, self.script_seconds, self.script_bytes)
        fetcher = Fetcher(rootless=os.geteuid() != 0, podman=self.podman)
        self.cache = StagingCache(self.state, lambda: self.rules.staging, self.clock, fetcher)
        self.executor = ContainerExecutor(
            self.state, self.plan_for, self.seen, staging_cache=self.cache, scripts=scripts, python=sys.executable
        )
        self.executor.open()

    def plan_for(self, effect: StartReplica) -> ContainerPlan:
        spec, node = effect.spec, Node(name=effect.allocation.node, cpus=1, memory_mib=1, cards=self.cards)
        placement = self.placement or (effect.allocation,)
        launch = launch_plan(spec, effect.submitter, node, effect.allocation, placement, effect.replica)
        hidden = EngineFolders(self.state, self.state)
        return container_plan(effect, launch, hidden, self.bounds, rootless=os.geteuid() != 0, may_be_plain=False)

    def facts_for(self, effect: StartReplica) -> ScriptFacts:
        return ScriptFacts("n1", 1, {"PATH": PATH, "SLURM_JOB_ID": str(effect.replica.job)})

    def job(
        self, script: str, *, memory_mib: int = 256, cpus: int = 1, user: str | None = None, **spec
    ) -> StartReplica:
        self._jobs += 1
        output = spec.pop("output", str(self.folder / f"out-{user or 'own'}"))
        return StartReplica(
            ReplicaId(JobId(self._jobs), 1, 0),
            JobSpec(name="job", command=f"bash -c {shlex.quote(script)}", output=output, **spec),
            submitter(user),
            Allocation(0, NodeName("n1"), cpus, memory_mib, tuple(CardSlice(card.index, None) for card in self.cards)),
        )

    async def run(self, effect: StartReplica) -> ExitStatus:
        await self.executor.start(effect)
        return await self.ended(effect.replica)

    async def ended(self, replica: ReplicaId) -> ExitStatus:
        await self.seen.until(lambda: any(name == replica for name, _ in self.seen.ended))
        return next(status for name, status in self.seen.ended if name == replica)

    async def started(self, replica: ReplicaId) -> str:
        await self.seen.until(lambda: any(name == replica for name, _ in self.seen.started))
        return next(limits for name, limits in self.seen.started if name == replica)

    async def kept(self, effect: StartReplica, cards: HoldCards = HoldCards.FREE) -> ExitStatus:
        status = await self.run(effect)
        await self.executor.keep(KeepContainer(effect.replica, cards))
        return status

    async def enter(self, replica: ReplicaId, *command: str, terminal: Terminal | None = None) -> EnteredShell:
        return await self.executor.enter(replica, command, terminal=terminal, label="job-0")

    async def shell(self, replica: ReplicaId, script: str) -> tuple[int, str]:
        """Run a script inside to its end; its exit code, and what it wrote to both outputs."""
        entered = await self.enter(replica, "bash", "-c", f"exec 2>&1; {script}")
        return await asyncio.to_thread(finish, entered)

    def out(self, effect: StartReplica) -> str:
        return self._log(effect, "stdout")

    def err(self, effect: StartReplica) -> str:
        return self._log(effect, "stderr")

    def _log(self, effect: StartReplica, stream: str) -> str:
        """Empty until the replica's programs have opened it."""
        path = log_file(self.state, effect.replica, stream)
        return path.read_text() if path.exists() else ""

    def folder_of(self, replica: ReplicaId) -> Path:
        return self.state / "containers" / replica.folder

    async def remove_all(self) -> None:
        for path in list((self.state / "containers").iterdir()):
            job, attempt, rank = map(int, path.name.split("."))
            await self.executor.remove(RemoveContainer(ReplicaId(JobId(job), attempt, rank)))
        self.executor.close()


async def until(told) -> None:
    """Of what only the file system tells."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not told():
            await asyncio.sleep(0.005)


def finish(entered: EnteredShell) -> tuple[int, str]:
    stdin, stdout, stderr = entered.pipe_fds
    os.close(stdin)
    with open(stdout, "rb") as stream:
        written = stream.read()
    os.close(stderr)
    return exit_code(entered), written.decode()


def exit_code(entered: EnteredShell) -> int:
    with socket.socket(fileno=entered.control_fd) as control:
        control.settimeout(PATIENCE_SECONDS)
        return int.from_bytes(control.recv(4, socket.MSG_WAITALL), "big", signed=True)


@asynccontextmanager
async def open_house() -> AsyncIterator[House]:
    folder = Path(mkdtemp(prefix="cockpit-house-", dir="/tmp"))
    folder.chmod(0o777)
    house = House(folder)
    try:
        yield house
    finally:
        await house.remove_all()
        shutil.rmtree(folder)
