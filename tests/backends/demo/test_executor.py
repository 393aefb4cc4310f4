"""The course of a simulated replica: its start and end, signals, and the time for which it is suspended."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from cockpit.backends.demo.executor import KILLED, LIMITS, TERMINATED, ScriptedExecutor
from cockpit.backends.demo.fixture import nodes_of, read_fixture
from cockpit.backends.demo.pace import DemoPace
from cockpit.backends.demo.sandbox import Sandboxes
from cockpit.backends.demo.scripts import Scripts
from cockpit.backends.demo.simulated_users import actor_of
from cockpit.engine.effects import FreezeReplica, SignalKind, SignalReplica, StartReplica, ThawReplica
from cockpit.model.attempt import ExitStatus
from cockpit.model.ids import JobId, Millis, ReplicaId
from cockpit.model.node import Allocation
from cockpit.model.spec import JobKind, JobSpec
from cockpit.runtime.clock import VirtualClock
from tests.backends.demo.conftest import LAB
from tests.runtime.containers.house import Seen

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

FIXTURE = read_fixture(LAB)
REPLICA = ReplicaId(JobId(7), 1, 0)
SPEC = JobSpec(name="mine", command="sleep 100", output="/o")
START = StartReplica(REPLICA, SPEC, actor_of(FIXTURE, "ann").who, Allocation(0, nodes_of(FIXTURE)[0].name, 4, 1024))


class Stage:
    def __init__(self, folder: Path) -> None:
        self.clock, self.seen = VirtualClock(), Seen()
        nodes = {node.name: node for node in nodes_of(FIXTURE)}
        self.executor = ScriptedExecutor(self.seen, self.clock, Scripts(FIXTURE, 1), Sandboxes(folder), nodes)
        self._pace = DemoPace(self.clock, lambda: True)

    async def until(self, seconds: float) -> list[ExitStatus]:
        """Let the time pass, and return how the replica has ended, if it has."""
        await self._pace.reach(Millis(int(seconds * 1000)))
        await asyncio.sleep(0)
        return [status for _, status in self.seen.ended]

    async def signal(self, kind: SignalKind) -> None:
        await self.executor.signal(SignalReplica(REPLICA, kind))


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    made = Stage(tmp_path / "rooms")
    yield made
    await made.executor.close()


async def test_a_replica_starts_after_its_container_is_made_and_ends_after_its_run(stage: Stage) -> None:
    await stage.executor.start(START)
    await stage.executor.start(START)
    await stage.until(1.999)
    assert stage.seen.started == []
    assert await stage.until(2) == []
    assert stage.seen.started == [(REPLICA, LIMITS)]
    assert await stage.until(101.999) == []
    assert await stage.until(102) == [ExitStatus(code=0)]
    used = stage.seen.used[REPLICA]
    assert used is not None
    assert used.cpu_ms


async def test_a_replica_that_is_asked_to_end_winds_down_first(stage: Stage) -> None:
    await stage.executor.start(START)
    await stage.until(10)
    await stage.signal(SignalKind.EARLY)
    await stage.signal(SignalKind.TERM)
    assert await stage.until(11.999) == []
    assert await stage.until(200) == [TERMINATED]
    assert (TERMINATED.signal, KILLED.signal) == (15, 9)
    await stage.signal(SignalKind.KILL)
    assert await stage.until(300) == [TERMINATED]


async def test_a_killed_replica_ends_at_once(stage: Stage) -> None:
    await stage.executor.start(START)
    await stage.until(10)
    await stage.signal(SignalKind.KILL)
    assert await stage.until(10) == [KILLED]
    assert await stage.until(200) == [KILLED]


async def test_a_replica_without_an_end_runs_until_a_signal(stage: Stage) -> None:
    await stage.executor.start(replace(START, spec=replace(SPEC, kind=JobKind.INTERACTIVE)))
    assert await stage.until(1_000_000) == []
    await stage.executor.freeze(FreezeReplica(REPLICA))
    await stage.executor.thaw(ThawReplica(REPLICA))
    assert await stage.until(2_000_000) == []
    await stage.signal(SignalKind.TERM)
    assert await stage.until(2_000_002) == [TERMINATED]


async def test_the_time_of_a_suspended_replica_stands_still(stage: Stage) -> None:
    await stage.executor.start(START)
    await stage.until(22)
    for _ in range(2):
        await stage.executor.freeze(FreezeReplica(REPLICA))
    assert await stage.until(1000) == []
    for _ in range(2):
        await stage.executor.thaw(ThawReplica(REPLICA))
    assert await stage.until(1079.999) == []
    assert await stage.until(1080) == [ExitStatus(code=0)]


async def test_a_suspended_replica_can_be_killed(stage: Stage) -> None:
    await stage.executor.start(START)
    await stage.until(22)
    await stage.executor.freeze(FreezeReplica(REPLICA))
    await stage.signal(SignalKind.KILL)
    assert await stage.until(23) == [KILLED]
    await stage.executor.thaw(ThawReplica(REPLICA))
    assert await stage.until(1000) == [KILLED]


async def test_only_a_running_replica_has_figures_of_its_use(stage: Stage) -> None:
    assert await stage.executor.used(REPLICA) is None
    await stage.executor.start(START)
    await stage.until(1)
    assert await stage.executor.used(REPLICA) is None
    await stage.until(50)
    use = await stage.executor.used(REPLICA)
    assert use is not None
    assert sum(each.lasted_ms for each in use.course) == 48_000
    await stage.until(102)
    assert await stage.executor.used(REPLICA) is None
