"""Stopping the engine with its jobs and held containers, and what a machine without containers refuses."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from cockpit.engine.access import Actor
from cockpit.engine.effects import RemoveContainer, SignalReplica
from cockpit.errors import RequestRefused
from cockpit.model.ids import JobId
from cockpit.model.refusal import RefusalKind
from cockpit.protocol import messages
from cockpit.runtime import acting
from cockpit.runtime.engine import Engine
from cockpit.runtime.request_context import RequestContext
from tests.builders import ANN, a_spec
from tests.runtime.host_world import World, eventually

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

ADMIN = RequestContext(Actor(ANN, admin=True))


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    world = World(tmp_path)
    await world.begin()
    yield world
    await world.stop()


def served(world: World) -> Engine:
    return Engine(host=world.host, state_folder=world.folder, socket=world.folder / "s", system=True, cluster="test")


async def held(world: World) -> JobId:
    job = await world.run(a_spec("held", terminal=True))
    world.executor.end(job, code=3)
    await eventually(lambda: world.job(job).kept)
    return job


@pytest.mark.req("JT-60")
async def test_a_stop_with_jobs_ends_all_of_them_first(world: World) -> None:
    engine = served(world)
    running = await world.run(a_spec("running", cpus=4))
    (waiting,) = await world.submit(a_spec("waiting"))
    async with asyncio.TaskGroup() as group:
        stopping = group.create_task(acting.stop(engine, ADMIN, messages.StopArgs(jobs=True)))
        await eventually(lambda: world.executor.of(SignalReplica))
        assert not stopping.done(), "it waits for the running job"
        assert world.state(waiting) == "stopped"
        world.executor.end(running)
    assert world.state(running) == "stopped"
    await asyncio.wait_for(engine.stopping.wait(), 60)


@pytest.mark.req("JT-40")
async def test_a_stop_ends_holds_where_that_is_wanted(world: World) -> None:
    engine, job = served(world), await held(world)
    await acting.stop(engine, ADMIN, messages.StopArgs())
    assert world.job(job).kept
    await asyncio.wait_for(engine.stopping.wait(), 60)
    await acting.stop(engine, ADMIN, messages.StopArgs(holds=True))
    assert not world.job(job).kept
    assert [each.replica.job for each in world.executor.of(RemoveContainer)] == [job], "it is gone by the answer"
    before = world.host.machine.state.seq
    await acting.stop(engine, ADMIN, messages.StopArgs(holds=True))
    assert world.host.machine.state.seq == before + 1, "without holds only the stop itself is an event"


@pytest.mark.req("TR-03")
async def test_a_machine_without_containers_refuses_what_needs_one(world: World) -> None:
    engine = served(world)
    packed, plain = a_spec("packed", image="tar:/images/torch.tar"), a_spec("plain")
    engine.plain = True
    with pytest.raises(RequestRefused) as refused:
        await acting.submit(engine, ADMIN, messages.SubmitArgs((plain, packed, packed)))
    assert refused.value.refusal.kind is RefusalKind.INVALID
    assert refused.value.refusal.message == (
        "image: plain processes have no other root than this machine's; leave it out\n"
        "This machine forbids containers; `cockpit doctor` says by what."
    )
    assert not world.host.machine.state.jobs
    await world.run(a_spec("first", cpus=4))
    await acting.submit(engine, ADMIN, messages.SubmitArgs((plain,)))
    waiting = max(world.host.machine.state.jobs)
    with pytest.raises(RequestRefused, match="This machine forbids containers"):
        await acting.edit(engine, ADMIN, messages.EditArgs(waiting, packed))
    assert world.job(waiting).spec.image == plain.image
    engine.plain = False
    await acting.edit(engine, ADMIN, messages.EditArgs(waiting, packed))
    assert world.job(waiting).spec.image == packed.image
