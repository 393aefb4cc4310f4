"""Passes: large ones beside the event loop, and again when time alone may let something start."""

from __future__ import annotations

import gc
import os
import sys
import threading
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from cockpit.model import events
from cockpit.model.cluster import Cluster, Priority, PriorityKind, Reservation
from cockpit.model.ids import NodeName
from cockpit.model.job import JobState, Submitter
from cockpit.runtime import pass_runner
from cockpit.runtime.host import Act
from tests.builders import HOUR, MINUTE, NOON, a_spec
from tests.runtime.host_world import World, eventually
from tests.runtime.served import ServedEngine

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

SYSTEM = Act(actor="root", origin="socket")


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    world = World(tmp_path)
    await world.begin()
    yield world
    await world.stop()


def state(world: World, job: int) -> JobState:
    return world.host.machine.state.jobs[job].state


@pytest.mark.req("PF-01", "SC-14")
def test_the_socket_answers_while_a_large_pass_computes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    computing, done = threading.Event(), threading.Event()
    usual, next_plan = (sys.getswitchinterval(), gc.isenabled()), pass_runner.next_plan

    def slow(*given: Any) -> Any:
        computing.set()
        assert done.wait(60)
        return next_plan(*given)

    with ServedEngine(tmp_path) as engine, engine.client() as acting, engine.client() as asking:
        monkeypatch.setattr(pass_runner, "LARGE_QUEUE", 1)
        monkeypatch.setattr(pass_runner, "next_plan", slow)
        submitted = [events.JobSubmitted(1, a_spec(), _somebody(), "ann")]
        engine.run(engine.engine.host.act(lambda _machine, _now: submitted, SYSTEM))
        assert computing.wait(60)
        acting.say(_request("hold", {"job": 1}))
        assert asking.ask("overview").no is None
        assert asking.ask("job", {"job": 1}).no is None
        assert sys.getswitchinterval() == pytest.approx(pass_runner.SWITCH_SECONDS)
        acting.socket.settimeout(0.05)
        with pytest.raises(TimeoutError):
            acting.answer()
        done.set()
        acting.socket.settimeout(60)
        refused = acting.answer().no
        assert refused is not None
        assert "only a queued job can be held" in refused.message
        assert (sys.getswitchinterval(), gc.isenabled()) == usual
        assert engine.complaints == ""


@pytest.mark.req("SC-14")
async def test_the_plan_before_a_large_pass_shares_no_cache_with_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pass_runner, "LARGE_QUEUE", 1)
    await world.run(a_spec(cpus=4))
    await world.submit(a_spec("waiting", cpus=2))
    await eventually(lambda: world.host.plan is not None and len(world.host.plan.refusals))
    before = world.host.plan
    assert before is not None
    await world.submit(a_spec("later", cpus=3))
    await eventually(lambda: world.host.plan is not before)
    after = world.host.plan
    assert after is not None
    assert before.refusals.index.layout is not after.index.layout
    assert before.refusals.index.equivalence is not after.index.equivalence
    assert before.refusals.gates is not after.refusals.gates


def _somebody() -> Submitter:
    return Submitter("ann", os.geteuid(), os.getegid(), (os.getegid(),), "/")


def _request(op: str, args: dict[str, Any]) -> bytes:
    return msgspec.msgpack.encode({"id": 1, "op": op, "args": args, "request": "r1"})


@pytest.mark.req("SC-10")
async def test_jobs_start_at_their_begin_times(world: World) -> None:
    first, second = await world.submit(
        a_spec("first", begin_at=NOON + HOUR),
        a_spec("second", begin_at=NOON + 2 * HOUR),
    )
    await world.pass_time(HOUR - 1)
    assert state(world, first) is JobState.QUEUED
    await world.pass_time(1)
    await eventually(lambda: state(world, first) is JobState.RUNNING)
    await world.pass_time(HOUR)
    await eventually(lambda: state(world, second) is JobState.RUNNING)


@pytest.mark.req("SC-10")
async def test_a_job_starts_when_a_reservation_is_over(world: World) -> None:
    (node,) = world.host.machine.state.nodes
    kept = Reservation(name="upkeep", nodes=(NodeName(node),), start_at=NOON, end_at=NOON + HOUR, maintenance=True)
    await world.host.act(lambda _machine, _now: [events.ReservationMade(kept)], SYSTEM)
    (job,) = await world.submit(a_spec(time_limit_seconds=60))
    await world.pass_time(MINUTE)
    assert state(world, job) is JobState.QUEUED
    await world.pass_time(HOUR)
    await eventually(lambda: state(world, job) is JobState.RUNNING)
    assert world.host.machine.state.reservations == {}


@pytest.mark.req("SC-02")
async def test_usage_decays_by_the_clock(world: World) -> None:
    rules = Cluster(priority=Priority(kind=PriorityKind.MULTIFACTOR, calc_period_seconds=60))
    await world.host.act(lambda _machine, _now: [events.ClusterConfigured(rules)], SYSTEM)
    await world.run(a_spec())
    for minute in range(1, 4):
        await world.pass_time(MINUTE)
        await eventually(lambda minute=minute: world.host.machine.state.usage_at == NOON + minute * MINUTE)


def test_overlapping_computations_leave_the_interpreter_as_it_was() -> None:
    before = (sys.getswitchinterval(), gc.isenabled())
    first, second = pass_runner.yield_to_event_loop(), pass_runner.yield_to_event_loop()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert (sys.getswitchinterval(), gc.isenabled()) == (pytest.approx(pass_runner.SWITCH_SECONDS), False)
    second.__exit__(None, None, None)
    assert (sys.getswitchinterval(), gc.isenabled()) == before
