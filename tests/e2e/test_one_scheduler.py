"""Replay, demo and the local engine start jobs by the same few lines: where these change, all three do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cockpit.backends.demo.backend import DemoCluster
from cockpit.backends.demo.fixture import read_fixture
from cockpit.engine.replay.jobs import Arrival, Replay
from cockpit.formats.traces.swf import machine
from cockpit.model.events import JobSubmitted
from cockpit.model.ids import JobId, Millis
from cockpit.model.job import JobState
from cockpit.model.reasons import BehindHead
from cockpit.sched.backfill.easy import Easy
from cockpit.sched.policy import Policy
from tests.builders import ANN, HOUR, a_spec
from tests.runtime.host_world import World

if TYPE_CHECKING:
    from pathlib import Path

LAB = "tests/backends/demo/lab.toml"


def started_by_replay() -> int:
    coming = Arrival(Millis(0), JobSubmitted(JobId(1), a_spec(memory_mib=0), ANN, "ann"), 1000)
    replay = Replay([machine(4)], [coming], Policy())
    assert list(replay.moments())
    return len(replay.started_at)


async def started_by_demo(folder: Path) -> int:
    demo = DemoCluster(read_fixture(LAB), 1, folder)
    await demo.begin(going=False)
    await demo.pace.reach(Millis(demo.now() + HOUR))
    started = sum(job.state is not JobState.QUEUED for job in await demo.backend.jobs())
    await demo.close()
    return started


async def started_by_engine(folder: Path) -> int:
    world = World(folder)
    await world.begin()
    await world.submit(a_spec())
    await world.idle()
    started = len(world.host.machine.occupied)
    await world.stop()
    return started


@pytest.mark.req("SC-20", "UI-50", "SC-14")
@pytest.mark.parametrize("broken", [False, True])
async def test_without_the_common_placement_step_no_backend_starts_a_job(
    tmp_path: Path, monkeypatch, broken: bool
) -> None:
    if broken:
        monkeypatch.setattr(Easy, "place", lambda _self, _index, job, _shape: BehindHead(job.id))
    (tmp_path / "engine").mkdir()
    started = [
        started_by_replay(),
        await started_by_demo(tmp_path / "demo"),
        await started_by_engine(tmp_path / "engine"),
    ]
    assert [count > 0 for count in started] == [not broken] * 3
