"""Which job a request means, and when it is told that the job has changed."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from cockpit.engine.access import Actor
from cockpit.errors import RequestRefused
from cockpit.model.cluster import Cluster, Project
from cockpit.model.events import ClusterConfigured, JobSubmitted
from cockpit.model.ids import JobId
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.model.spec import Access, Array
from cockpit.protocol import messages
from cockpit.runtime.engine import Engine
from cockpit.runtime.request_context import RequestContext, allow, request_key, visible_job, wait_for_change
from tests.builders import ANN, BOB, HOUR, a_spec
from tests.runtime.host_world import BY_ANN, World, eventually

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

pytestmark = pytest.mark.req("TR-02", "TR-13")
OWNER, STRANGER = Actor(ANN, admin=False), Actor(BOB, admin=False)
MEMBER = Actor(BOB, admin=False, projects=frozenset({"nlp"}))


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    world = World(tmp_path)
    await world.begin()
    yield world
    await world.stop()


@pytest.fixture
def engine(world: World) -> Engine:
    return Engine(host=world.host, state_folder=world.folder, socket=world.folder / "s", system=True, cluster="lab")


async def refusal_of(engine: Engine, actor: Actor, job: int, index: int | None = None) -> str:
    with pytest.raises(RequestRefused) as refused:
        await visible_job(engine, actor, job, index)
    assert refused.value.refusal.kind is RefusalKind.NOT_FOUND
    return refused.value.refusal.message


async def test_a_task_is_found_by_its_index_live_and_in_accounting(world: World, engine: Engine) -> None:
    tasks = await world.submit(a_spec("array", array=Array(indices=(2, 5, 9))))
    assert isinstance(tasks, list)
    alone = await world.run(a_spec("alone"))
    await eventually(lambda: [world.state(each) for each in tasks] == ["running"] * 3)
    for number in (0, 1):
        assert (await visible_job(engine, OWNER, tasks[0], 5)).id == tasks[1]
        assert (await visible_job(engine, OWNER, tasks[2], 2)).id == tasks[0]
        assert (await visible_job(engine, OWNER, tasks[1])).id == tasks[1]
        said = await refusal_of(engine, OWNER, tasks[0], 4)
        assert said == f"There is no job {tasks[0]}_4: array {tasks[0]} has no task 4."
        said = await refusal_of(engine, OWNER, alone, 0)
        assert said == f"There is no job {alone}_0: job {alone} is no array."
        if number == 0:
            for job in (*tasks, alone):
                world.executor.end(job)
            await eventually(lambda: world.state(alone) == "succeeded")
            await world.pass_time(24 * HOUR)
            assert not world.host.machine.state.jobs
    assert (await refusal_of(engine, STRANGER, tasks[0], 5)) == await refusal_of(engine, STRANGER, tasks[0])
    assert (await refusal_of(engine, STRANGER, 99)).startswith("There is no job 99.")


async def test_a_member_of_the_project_may_look_and_not_act(world: World, engine: Engine) -> None:
    rules = Cluster(projects=(Project(name="nlp", users=("ann", "bob")),))
    shared = JobSubmitted(JobId(1), a_spec(access=Access.RO, cpus=4), ANN, "nlp")
    await world.host.act(lambda _machine, _now: [ClusterConfigured(rules), shared], BY_ANN)
    looks, acts = messages.JobArgs(1), messages.CancelArgs(1)
    await allow(engine, RequestContext(MEMBER), "job", looks)
    await allow(engine, RequestContext(OWNER), "cancel", acts)
    await allow(engine, RequestContext(MEMBER), "overview", messages.NoArgs())
    with pytest.raises(RequestRefused) as refused:
        await allow(engine, RequestContext(MEMBER), "cancel", acts)
    assert refused.value.refusal.kind is RefusalKind.DENIED
    for operation, arguments in (("job", looks), ("cancel", acts)):
        with pytest.raises(RequestRefused, match="There is no job 1"):
            await allow(engine, RequestContext(STRANGER), operation, arguments)
    with pytest.raises(RequestRefused):
        await allow(engine, RequestContext(OWNER), "drain_node", messages.DrainArgs("n1", "x"))


async def test_who_waits_for_a_job_hears_of_its_next_change_and_of_the_end_of_all(world: World, engine: Engine) -> None:
    job = await world.run(a_spec(cpus=4))
    known = world.job(job)
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(wait_for_change(engine, known))
        await world.submit(a_spec("other", cpus=4))
        await world.idle()
        assert not waiting.done(), "another job has changed"
        world.executor.end(job)
    assert world.job(job) is not known
    await wait_for_change(engine, known)
    world.host.given_up = Refusal(RefusalKind.UNAVAILABLE, "contradictory")
    with pytest.raises(RequestRefused, match="contradictory"):
        await wait_for_change(engine, world.job(job))
    world.host.given_up = None


def test_a_request_id_belongs_to_its_user() -> None:
    assert request_key(OWNER, "r1") == f"{ANN.uid}:r1"
    assert request_key(OWNER, "r1") != request_key(STRANGER, "r1")
    act = RequestContext(OWNER, "1001:r1", "hold", b"digest").act(durable=True)
    assert (act.actor, act.origin, act.request, act.op, act.digest, act.durable) == (
        "ann",
        "socket",
        "1001:r1",
        "hold",
        b"digest",
        True,
    )
    assert not RequestContext(OWNER).act().durable
