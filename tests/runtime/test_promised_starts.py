"""Latest starts that a user was shown: they outlive the engine, and their moves are noticed without a request."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

import msgspec
import pytest

from cockpit.backends.inprocess import InProcessBackend
from cockpit.engine.access import Actor
from cockpit.engine.timelimits import set_time_limit
from cockpit.model.asking import WantedLimit
from cockpit.model.forecast import EngineRestarted, PromisedStart, RanLonger, StartMove
from cockpit.model.ids import JobId, Millis
from cockpit.runtime import predicting
from cockpit.runtime.engine import Engine
from tests.builders import ANN, HOUR, NOON, SECOND, a_spec
from tests.runtime.host_world import BY_ANN, World, eventually

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

GRACE = 30
MORE = 1800
"""Seconds by which the limit of the running job is extended."""


class Promised:
    """One job runs for at most an hour, another waits for it."""

    def __init__(self, folder: Path) -> None:
        self.world = World(folder)
        self.folder = folder

    async def begin(self) -> None:
        await self.world.begin()
        self.engine = Engine(
            host=self.world.host, state_folder=self.folder, socket=self.folder, system=True, cluster="c"
        )
        await predicting.load_promises(self.engine)

    async def queue(self) -> None:
        first, second = (a_spec(name, cpus=4, time_limit_seconds=3600, grace_seconds=GRACE) for name in "ab")
        self.runs = await self.world.run(first)
        submitted = await self.world.submit(second)
        assert isinstance(submitted, list), submitted
        (self.waits,) = submitted
        await self.world.idle()

    async def restart(self) -> None:
        await self.world.crash()
        await self.begin()

    async def ask(self) -> Millis | None:
        (told,) = await InProcessBackend(self.engine, Actor(ANN, admin=True)).starts([self.waits])
        return told.forecast.latest_at

    async def extend(self) -> None:
        """Let the running job run half an hour longer."""
        actor = Actor(ANN, admin=True)
        await self.world.host.act(
            lambda machine, now: set_time_limit(
                machine, self.world.job(self.runs), WantedLimit(MORE, beside=True), actor, now
            ),
            BY_ANN,
        )
        await self.world.idle()

    @property
    def moves(self) -> tuple[StartMove, ...]:
        return self.engine.bounds.of(self.waits)

    async def stored(self) -> list[PromisedStart]:
        return await self.world.journal.promised_starts()

    def writes(self) -> int:
        return self.world.journal.tried.count("save_promised_starts")


@pytest.fixture
async def promised(tmp_path: Path) -> AsyncIterator[Promised]:
    one = Promised(tmp_path)
    await one.begin()
    await one.queue()
    yield one
    one.world.journal.refusing.clear()
    await one.world.stop()


@pytest.mark.req("SC-12")
async def test_a_changed_bound_is_recorded_without_a_request(promised: Promised) -> None:
    bound = await promised.ask()
    assert bound is not None
    await promised.extend()
    assert promised.moves == ()
    await promised.world.pass_time(predicting.WATCH_MS)
    await eventually(lambda: promised.moves)
    later = Millis(bound + MORE * SECOND)
    until = Millis(NOON + (3600 + MORE) * SECOND)
    noticed = Millis(NOON + predicting.WATCH_MS)
    assert promised.moves == (StartMove(noticed, bound, later, (RanLonger(promised.runs, until),)),)
    await eventually(lambda: promised.writes() == 2)
    assert await promised.stored() == [PromisedStart(promised.waits, later, promised.moves)]


@pytest.mark.req("SC-12", "TR-01")
async def test_a_promised_start_and_its_changes_survive_a_killed_engine(promised: Promised) -> None:
    bound = await promised.ask()
    await promised.extend()
    later = await promised.ask()
    moves = promised.moves
    assert len(moves) == 1
    await promised.restart()
    assert await promised.ask() == later
    assert promised.moves == moves
    assert await promised.stored() == [PromisedStart(promised.waits, later, moves)]
    assert bound != later


@pytest.mark.req("SC-12")
async def test_a_bound_that_changed_during_a_restart_is_reported_with_the_promised_one(
    promised: Promised,
) -> None:
    bound = await promised.ask()
    await promised.extend()
    await promised.restart()
    await promised.world.pass_time(0)
    await eventually(lambda: promised.moves)
    assert bound is not None
    (move,) = promised.moves
    assert move == StartMove(Millis(NOON), bound, Millis(bound + MORE * SECOND), (EngineRestarted(),))


@pytest.mark.req("SC-12")
async def test_an_unchanged_promised_start_is_written_once_and_not_checked_again(
    promised: Promised, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = 0

    def counted(engine: Engine, fresh: object) -> float:
        nonlocal looks
        looks += 1
        return 0.0

    monkeypatch.setattr(predicting, "_follow", counted)
    await promised.ask()
    await promised.ask()
    await promised.world.pass_time(HOUR // 2)
    assert promised.writes() == 1
    assert looks == 0


@pytest.mark.req("SC-12")
async def test_without_a_promised_start_no_check_runs(promised: Promised) -> None:
    await promised.world.pass_time(HOUR // 2)
    assert not promised.world.host.reminded
    assert promised.writes() == 0


@pytest.mark.req("SC-12")
async def test_a_promised_start_is_removed_once_the_job_has_started(promised: Promised) -> None:
    await promised.ask()
    promised.world.executor.end(promised.runs)
    await eventually(lambda: promised.world.state(promised.waits) == "running")
    await promised.world.pass_time(predicting.WATCH_MS)
    await eventually(lambda: promised.writes() == 2)
    await promised.world.idle()
    assert await promised.stored() == []
    await promised.world.pass_time(predicting.WATCH_MS)
    assert not promised.world.host.reminded


@pytest.mark.req("SC-12", "TR-01")
async def test_a_failed_write_loses_no_answer_and_the_promised_start_is_written_later(promised: Promised) -> None:
    promised.world.journal.refusing.add("save_promised_starts")
    bound = await promised.ask()
    assert bound is not None
    promised.world.journal.refusing.clear()
    await promised.world.pass_time(predicting.WATCH_MS)
    await eventually(lambda: promised.writes() >= 2)
    await promised.world.idle()
    assert await promised.stored() == [PromisedStart(promised.waits, bound)]


@pytest.mark.req("SC-12")
async def test_an_unreadable_promised_start_does_not_prevent_the_engines_start(promised: Promised) -> None:
    bound = await promised.ask()
    await promised.world.crash()
    stored = sqlite3.connect(promised.folder / "journal.db")
    stored.execute(
        "INSERT INTO promised_starts VALUES (?, ?, NULL)", (promised.waits + 1, msgspec.json.encode({}).decode())
    )
    stored.commit()
    stored.close()
    await promised.begin()
    assert dict(promised.engine.bounds.promised) == {JobId(promised.waits): bound}
