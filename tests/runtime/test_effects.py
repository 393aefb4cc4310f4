"""Effects of many replicas at once."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from cockpit.engine.effects import (
    CheckNodes,
    FreezeReplica,
    KeepContainer,
    RemoveContainer,
    SignalKind,
    SignalReplica,
    StageReplica,
    StartReplica,
    ThawReplica,
    WriteWorkersFile,
)
from cockpit.model.ids import JobId, NodeName, ReplicaId
from cockpit.model.node import Allocation
from cockpit.model.spec import HoldCards
from cockpit.runtime.effects import AT_ONCE, EffectRunner
from cockpit.runtime.tasks import Tasks
from tests.builders import ANN, a_spec

if TYPE_CHECKING:
    from cockpit.engine.ports import Executor


class Slow:
    """Its starts last until they are released."""

    def __init__(self) -> None:
        self.go, self.signalled = asyncio.Event(), asyncio.Event()
        self.starting = 0

    async def start(self, _effect: StartReplica) -> None:
        self.starting += 1
        await self.go.wait()

    async def signal(self, _effect: SignalReplica) -> None:
        self.signalled.set()


def replica(number: int) -> ReplicaId:
    return ReplicaId(JobId(number), 1, 0)


@pytest.mark.req("JT-24", "JT-36")
async def test_a_job_is_stopped_though_many_nodes_are_being_prepared() -> None:
    slow, tasks = Slow(), Tasks()
    executor: Executor = slow  # type: ignore[assignment]  # as much of one as is used
    runner = EffectRunner(executor, tasks)
    for number in range(AT_ONCE + 5):
        where = Allocation(0, NodeName("n1"), 1, 1)
        runner.run(StartReplica(replica(number), a_spec(), ANN, where))
    runner.run(SignalReplica(replica(1000), SignalKind.TERM))
    async with asyncio.timeout(60):
        await slow.signalled.wait()
    assert slow.starting <= AT_ONCE
    slow.go.set()
    await tasks.cancel_all()


START = StartReplica(replica(7), a_spec(), ANN, Allocation(0, NodeName("n1"), 1, 1))


class Noting:
    """An executor that notes what it is asked to do, and fails at some of it."""

    def __init__(self, *failing: str) -> None:
        self.did: list[tuple[str, Any]] = []
        self._failing = failing

    def __getattr__(self, name: str) -> Any:
        async def call(effect: Any) -> None:
            await asyncio.sleep(0)
            self.did.append((name, effect))
            if name in self._failing:
                raise OSError(name)

        return call


@pytest.mark.parametrize(
    ("effect", "name"),
    [
        (StageReplica(START), "stage"),
        (START, "start"),
        (CheckNodes(replica(7), (START.allocation,)), "check"),
        (SignalReplica(replica(7), SignalKind.TERM), "signal"),
        (FreezeReplica(replica(7)), "freeze"),
        (ThawReplica(replica(7)), "thaw"),
        (WriteWorkersFile(replica(7)), "write_workers_file"),
        (KeepContainer(replica(7), HoldCards.KEEP), "keep"),
        (RemoveContainer(replica(7)), "remove"),
    ],
)
@pytest.mark.req("JT-36")
async def test_every_effect_reaches_the_executor(effect: Any, name: str) -> None:
    noting: Any = Noting()
    runner = EffectRunner(noting, Tasks())
    runner.run(effect)
    await runner.settled(replica(7), 60)
    assert noting.did == [(name, effect)]
    await asyncio.sleep(0)
    assert runner._last == {}


@pytest.mark.req("JT-36")
async def test_the_effects_of_a_replica_are_carried_out_in_order_also_after_one_that_failed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    noting: Any = Noting("start")
    runner = EffectRunner(noting, Tasks())
    for effect in (START, SignalReplica(replica(7), SignalKind.KILL), RemoveContainer(replica(7))):
        runner.run(effect)
    await runner.settled(replica(8), 60)
    assert noting.did == [], "another replica has nothing to wait for"
    await runner.settled(replica(7), 60)
    assert [name for name, _ in noting.did] == ["start", "signal", "remove"]
    await asyncio.sleep(0)
    assert "StartReplica" in capsys.readouterr().err
