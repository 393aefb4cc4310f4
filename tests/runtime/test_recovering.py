"""What an engine that starts again asks of the containers, by what the journal says of each job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from cockpit.engine import decide
from cockpit.engine.effects import (
    CheckNodes,
    FreezeReplica,
    KeepContainer,
    SignalKind,
    SignalReplica,
    StageReplica,
    ThawReplica,
)
from cockpit.model import events
from cockpit.model.attempt import Suspension
from cockpit.model.ids import JobId, ReplicaId
from cockpit.model.resilience import Resume
from tests.builders import a_node, a_spec
from tests.runtime.host_world import BY_ANN, ScriptedExecutor, World, eventually

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

pytestmark = pytest.mark.req("TR-01")


class Adopting(ScriptedExecutor):
    """Notes what it is to adopt, and reports neither checks nor copies by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.expected: list[ReplicaId] = []
        self.kept: list[ReplicaId] = []

    async def adopt(self, expected: Any, kept: Any) -> None:
        self.expected = [each.replica for each in expected]
        self.kept = [each.replica for each in kept]
        self.did.clear()

    async def stage(self, effect: Any) -> None:
        self.did.append(effect)

    async def check(self, effect: Any) -> None:
        self.did.append(effect)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    world = World(tmp_path)
    world.executor = Adopting()
    await world.begin()
    yield world
    await world.stop()


async def restarted(world: World) -> Any:
    """The engine is killed; what the next one has asked of the executor."""
    await world.idle()
    await world.crash()
    await world.begin()
    await world.idle()
    executor: Any = world.executor
    return executor


async def reaches(world: World, state: str, **fields: Any) -> JobId:
    made = await world.submit(a_spec(**fields))
    assert isinstance(made, list), made
    await eventually(lambda: world.state(made[0]) == state)
    return made[0]


async def happens(world: World, *bodies: Any) -> None:
    await world.host.act(lambda _machine, _now: bodies, BY_ANN)


async def test_only_replicas_that_have_not_ended_are_expected_to_run(world: World) -> None:
    nodes = [a_node("n1", cpus=4), a_node("n2", cpus=4)]
    await world.host.act(lambda machine, _now: decide.nodes_changed(machine, nodes), BY_ANN)
    job = await reaches(world, "running", nodes=2, cpus=4)
    world.executor.end(job, rank=1)
    await eventually(lambda: world.job(job).attempt.replicas[1].ended_at is not None)  # type: ignore[union-attr] # it runs
    executor = await restarted(world)
    assert (executor.expected, executor.kept) == ([ReplicaId(job, 1, 0)], [])
    assert executor.did == [], "nothing else has to be repeated"


async def test_a_held_container_is_held_again(world: World) -> None:
    job = await reaches(world, "running", terminal=True)
    world.executor.end(job, code=3)
    await eventually(lambda: world.job(job).kept)
    executor = await restarted(world)
    assert (executor.expected, executor.kept) == ([], [ReplicaId(job, 1, 0)])
    assert executor.of(KeepContainer) == []


async def test_checks_and_copies_that_were_begun_are_begun_again(world: World) -> None:
    pool = a_node(cpus=4, pool="a")
    await world.host.act(lambda machine, _now: decide.nodes_changed(machine, [pool]), BY_ANN)
    resume = Resume(max_resumes=1, grace_seconds=60)
    checked = await reaches(world, "prechecking", name="checked", pool="a", resume=resume)
    staged = await reaches(world, "staging", name="staged", pool="a", image="tar:/images/torch.tar")
    executor = await restarted(world)
    assert (executor.expected, executor.kept) == ([], [])
    assert [each.replica.job for each in executor.of(CheckNodes)] == [checked]
    assert [each.replica for each in executor.of(StageReplica)] == [ReplicaId(staged, 1, 0)]


async def test_a_suspended_container_is_frozen_again_and_a_resumed_one_thawed(world: World) -> None:
    job = await reaches(world, "running")
    await happens(world, events.JobSuspended(job, Suspension(by="ann")))
    executor = await restarted(world)
    assert [each.replica for each in executor.of(FreezeReplica)] == [ReplicaId(job, 1, 0)]
    assert executor.of(ThawReplica) == []
    await happens(world, events.JobResumed(job))
    executor = await restarted(world)
    assert [each.replica for each in executor.of(ThawReplica)] == [ReplicaId(job, 1, 0)]
    assert executor.of(FreezeReplica) == []


async def test_the_signal_of_an_end_that_has_begun_is_sent_again(world: World) -> None:
    job = await reaches(world, "running", grace_seconds=30)
    await world.host.act(lambda _machine, now: decide.cancel(world.job(job), now, None), BY_ANN)
    executor = await restarted(world)
    assert [(each.replica, each.force) for each in executor.of(SignalReplica)] == [
        (ReplicaId(job, 1, 0), SignalKind.TERM)
    ]


async def test_an_ended_job_is_written_into_accounting_again(world: World) -> None:
    world.journal.refusing.add("record_ended")
    job = await reaches(world, "running")
    world.executor.end(job)
    await eventually(lambda: world.state(job) == "succeeded")
    await world.crash()
    await world.begin()
    await eventually(lambda: "record_ended" in world.journal.tried)
    await world.idle()
    assert await world.host.ended_job(job) is not None
