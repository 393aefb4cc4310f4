"""What the executor reports of nodes and containers becomes events of the engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from cockpit.engine import decide
from cockpit.engine.effects import CheckNodes, StageReplica
from cockpit.model import events
from cockpit.model.ids import NodeName, ReplicaId
from cockpit.model.resilience import Resume
from tests.builders import a_node, a_spec
from tests.runtime.host_world import BY_ANN, ScriptedExecutor, World, eventually

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

NODE = NodeName("n1")


class Waiting(ScriptedExecutor):
    """Begins what it is told to, and reports nothing by itself."""

    def _tell(self, replica: ReplicaId) -> None:
        del replica

    async def stage(self, effect: StageReplica) -> None:
        self.did.append(effect)

    async def check(self, effect: Any) -> None:
        self.did.append(effect)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    world = World(tmp_path)
    world.executor = Waiting()
    await world.begin()
    yield world
    await world.stop()


async def placed(world: World, state: str, **fields: Any) -> ReplicaId:
    submitted = await world.submit(a_spec(**fields))
    assert isinstance(submitted, list), submitted
    (job,) = submitted
    await eventually(lambda: world.state(job) == state)
    return ReplicaId(job, 1, 0)


def drain(world: World) -> str:
    """Why the node is drained; empty: it is not."""
    node = world.host.machine.state.nodes[NODE]
    return node.state_reason if node.drained_by else ""


@pytest.mark.req("SC-15")
async def test_a_job_starts_when_its_copies_are_made(world: World) -> None:
    replica = await placed(world, "staging", image="tar:/images/torch.tar")
    await eventually(lambda: len(world.executor.of(StageReplica)) == 1)
    world.host.replica_staged(replica)
    await eventually(lambda: world.state(replica.job) == "starting")


@pytest.mark.req("SC-15")
async def test_a_disk_that_is_full_takes_the_node_out_of_service_until_it_has_room(world: World) -> None:
    world.host.disk_filled("/fast is filled to 95 %")
    await eventually(lambda: "/fast is filled to 95 %" in drain(world))
    world.host.disk_filled("")
    await eventually(lambda: drain(world) == "")


@pytest.mark.req("JT-24")
async def test_a_failed_prolog_drains_the_node_and_a_failed_epilog_too(world: World) -> None:
    replica = await placed(world, "starting")
    world.host.prolog_failed(replica, "prolog 1 ended with 3 on n1: no mount")
    await eventually(lambda: "no mount" in drain(world))
    assert world.state(replica.job) == "queued"
    await world.host.act(lambda _machine, _now: [events.NodeResumed(NODE, "root")], BY_ANN)
    assert drain(world) == ""
    world.host.epilog_failed(NODE, "epilog 1 ended with 1 on n1")
    await eventually(lambda: "epilog 1 ended with 1" in drain(world))


@pytest.mark.req("JT-24")
async def test_the_result_of_a_precheck_starts_the_job_or_excludes_the_node(world: World) -> None:
    pool = a_node(cpus=4, pool="a")
    await world.host.act(lambda machine, _now: decide.nodes_changed(machine, [pool]), BY_ANN)
    checked = {"pool": "a", "resume": Resume(max_resumes=1, grace_seconds=60)}
    replica = await placed(world, "prechecking", **checked)
    world.host.precheck_failed(replica, NODE, "no card answers")
    await eventually(lambda: world.state(replica.job) == "queued")
    assert [type(each) for each in world.executor.of(CheckNodes)] == [CheckNodes]
    other = await placed(world, "prechecking", name="other", **checked)
    world.host.precheck_passed(other, "all cards answer")
    await eventually(lambda: world.state(other.job) == "starting")
