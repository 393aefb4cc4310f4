"""A host whose outside is scripted: a clock moved by hand, an executor in memory, a real journal that may refuse."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

import msgspec

from cockpit.engine import decide
from cockpit.engine.access import Actor
from cockpit.engine.apply.events import apply
from cockpit.engine.effects import RemoveContainer, SignalReplica, StartReplica
from cockpit.engine.machine import Machine
from cockpit.engine.state import ClusterState
from cockpit.engine.submission.submit import submit
from cockpit.errors import StoreError
from cockpit.model.attempt import ExitStatus
from cockpit.model.events import JobSubmitted
from cockpit.model.ids import JobId, ReplicaId
from cockpit.runtime.clock import VirtualClock
from cockpit.runtime.host import Act, Host, Settings
from cockpit.runtime.serving import recover
from cockpit.store.journal import SqliteJournal
from tests.builders import ANN, NOON, a_node

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from cockpit.engine.ports import Observer
    from cockpit.model.events import EventRecord
    from cockpit.model.job import Job
    from cockpit.model.refusal import Refusal
    from cockpit.model.spec import JobSpec

BY_ANN = Act(actor="ann", origin="socket", durable=True)


class ScriptedExecutor:
    """Starts each replica at once, and ends it when the test says so. It outlives hosts, as containers do."""

    def __init__(self) -> None:
        self.observer: Observer | None = None
        self.did: list[Any] = []
        self.ended: dict[ReplicaId, ExitStatus] = {}

    def of(self, kind: type) -> list[Any]:
        return [each for each in self.did if isinstance(each, kind)]

    def end(self, job: JobId, code: int = 0, rank: int = 0, attempt: int = 1) -> None:
        replica = ReplicaId(job, attempt, rank)
        self.ended[replica] = ExitStatus(code=code)
        self._tell(replica)

    def _tell(self, replica: ReplicaId) -> None:
        assert self.observer is not None
        self.observer.replica_started(replica, "cgroup v1")
        if replica in self.ended:
            self.observer.replica_ended(replica, self.ended[replica])

    async def start(self, effect: StartReplica) -> None:
        self.did.append(effect)
        self._tell(effect.replica)

    async def signal(self, effect: SignalReplica) -> None:
        self.did.append(effect)

    async def check(self, effect: Any) -> None:
        self.did.append(effect)
        self.observer.precheck_passed(effect.replica, "")

    async def freeze(self, effect: Any) -> None:
        self.did.append(effect)

    async def thaw(self, effect: Any) -> None:
        self.did.append(effect)

    async def keep(self, effect: Any) -> None:
        self.did.append(effect)

    async def remove(self, effect: RemoveContainer) -> None:
        self.did.append(effect)

    async def adopt(self, expected: Sequence[StartReplica], kept: Sequence[Any]) -> None:
        started = {each.replica for each in self.of(StartReplica)}
        for effect in expected:
            if effect.replica in started:
                self._tell(effect.replica)
            else:
                await self.start(effect)


class FaultyJournal:
    """The real one, except for the methods that are set to refuse."""

    def __init__(self, real: SqliteJournal) -> None:
        self._real = real
        self.refusing: set[str] = set()
        self.tried: list[str] = []
        self.durable: dict[str, bool] = {}
        """By event."""
        self.slow = asyncio.Event()
        self.slow.set()
        self.under_way = 0

    def __getattr__(self, name: str) -> Any:
        async def call(*args: Any, **options: Any) -> Any:
            self.tried.append(name)
            await self.slow.wait()
            if name in self.refusing:
                raise StoreError(f"The disk is full ({name}).")
            if name == "append":
                self.durable |= {type(record.body).__name__: options["durable"] for record in args[0]}
            self.under_way += 1
            try:
                return await getattr(self._real, name)(*args, **options)
            finally:
                self.under_way -= 1

        return call


class World:
    """One cluster over several lives of its host."""

    def __init__(self, folder: Path, clock: Any = None, **settings: Any) -> None:
        self.folder = folder
        self.clock = clock or VirtualClock(NOON)
        self.settings = Settings(**{"check_invariants": True, **settings})
        self.executor = ScriptedExecutor()

    async def begin(self) -> None:
        real = await SqliteJournal.open(
            self.folder / "journal.db", self.folder / "archive", clock=self.clock, apply=apply, busy_seconds=0.1
        )
        self.journal = FaultyJournal(real)
        state, _ = await real.load()
        self.host = Host(Machine(state), self.journal, self._executor_for, self.clock, self.settings)
        await self.host.act(lambda machine, _: decide.nodes_changed(machine, [a_node(cpus=4)]), BY_ANN)
        await recover(self.host)
        await self.host.start()

    def _executor_for(self, observer: Observer) -> Any:
        self.executor.observer = observer
        return self.executor

    async def stop(self) -> None:
        await self.host.stop()
        await self.journal.close()

    async def crash(self) -> None:
        """Nothing is written any more."""
        await self.host._tasks.cancel_all()
        await self.journal.close()

    async def submit(self, *specs: JobSpec, request: str = "") -> list[JobId] | Refusal:
        act = Act(actor="ann", origin="socket", durable=True, request=request)
        outcome = await self.host.act(lambda machine, _: submit(machine, specs, Actor(ANN, admin=False)), act, _ids)
        return msgspec.json.decode(outcome, type=list[JobId]) if isinstance(outcome, bytes) else outcome

    async def run(self, spec: JobSpec) -> JobId:
        """Submit, and wait until its command runs."""
        (job,) = await self.submit(spec)
        await eventually(lambda: self.state(job) == "running")
        return job

    def job(self, job: JobId) -> Job:
        return self.host.machine.state.jobs[job]

    def state(self, job: JobId) -> str:
        return str(self.job(job).state)

    async def pass_time(self, milliseconds: int) -> None:
        """Advance from one awaited moment to the next, so that everything happens at its time."""
        end = self.clock.now() + milliseconds
        while True:
            await self.idle()
            moment = self.clock.next_wait()
            if moment is None or moment > end:
                break
            self.clock.advance(moment - self.clock.now())
        self.clock.advance(end - self.clock.now())
        await self.idle()

    async def idle(self) -> None:
        """Until nothing is left to do at this moment, however long the disk takes."""
        calm = 0
        while calm < 3:
            before = (len(self.journal.tried), self.host.machine.state.seq)
            await asyncio.sleep(0.002)
            still = before == (len(self.journal.tried), self.host.machine.state.seq) and not self.journal.under_way
            calm = calm + 1 if still else 0

    async def replayed(self) -> ClusterState:
        """What every event since the first adds up to."""
        state = ClusterState()
        for record in await self.journal.events(job=None, after=0, limit=100_000):
            apply(state, record)
        return state


def _ids(records: Sequence[EventRecord]) -> bytes:
    return msgspec.json.encode([record.body.job for record in records if isinstance(record.body, JobSubmitted)])


async def eventually(holds: Callable[[], object], seconds: float = 100) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it never came true"
        await asyncio.sleep(0.001)
