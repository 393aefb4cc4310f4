"""Replay, demo and engine start jobs by one piece of code alone: where its placement step says no, none does."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from cockpit.backends.demo.backend import DemoCluster
from cockpit.backends.demo.fixture import read_fixture
from cockpit.engine.replay.jobs import Arrival, Replay
from cockpit.engine.replay.pods import PodReplay
from cockpit.model.events import JobSubmitted
from cockpit.model.ids import JobId, Millis
from cockpit.model.job import JobState
from cockpit.model.reasons import BehindHead
from cockpit.model.spec import JobSpec
from cockpit.sched.policy import Policy
from cockpit.sched.scheduling_pass import SchedulingPass
from tests.backends.demo.conftest import LAB, pass_hours
from tests.builders import ANN, a_node, a_spec
from tests.runtime.host_world import World

PACKAGE = Path(__file__).parents[2] / "cockpit"

pytestmark = pytest.mark.req("SC-14", "SC-20")


@pytest.fixture(params=[False, True], ids=["as it is", "replaced"])
def replaced(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether the placement step is replaced by one that lets nobody pass."""
    if request.param:
        monkeypatch.setattr(SchedulingPass, "place", lambda *_: BehindHead(JobId(0)))
    return bool(request.param)


def test_replay(replaced: bool) -> None:
    submitted = JobSubmitted(JobId(1), a_spec(), ANN, "ann")
    replay = Replay([a_node()], [Arrival(Millis(0), submitted, 1000)], Policy())
    list(replay.moments())
    assert (JobId(1) in replay.started_at) is not replaced


def test_replay_of_pods(replaced: bool) -> None:
    (arrived,) = PodReplay([a_node(cards=1)], Policy()).arrivals([a_spec(card_milli=500)])
    assert (arrived.placed == 1) is not replaced


async def test_demo(replaced: bool, tmp_path: Path) -> None:
    demo = DemoCluster(read_fixture(LAB), 1, tmp_path)
    await demo.begin(going=False)
    (job,) = await demo.backend.submit([JobSpec(name="mine", command="sleep 60", output="/home/ann/out")])
    await pass_hours(demo, 2)
    started = (await demo.backend.job(job)).job.attempt is not None
    await demo.close()
    assert started is not replaced


async def test_engine(replaced: bool, tmp_path: Path) -> None:
    world = World(tmp_path)
    await world.begin()
    (job,) = await world.submit(a_spec())
    await world.idle()
    waits = world.state(job) == JobState.QUEUED
    await world.stop()
    assert waits is replaced


WRITTEN_DOWN = "backends/job_history.py"
"""What another scheduler was seen to have started."""


def test_only_plans_become_starts() -> None:
    making = {
        str(path.relative_to(PACKAGE))
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("JobPlaced")
    }
    assert making == {"engine/decide.py", WRITTEN_DOWN}
