"""Effects of many replicas at once."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from cockpit.engine.effects import SignalKind, SignalReplica, StartReplica
from cockpit.model.ids import JobId, NodeName, ReplicaId
from cockpit.model.node import Allocation
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
