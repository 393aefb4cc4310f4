"""Latest starts over hours of a busy demo: each change has its cause, and no job starts later than was shown last."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from cockpit.backends.demo.backend import open_demo
from cockpit.backends.demo.fixture import read_fixture
from cockpit.backends.demo.simulated_users import actor_of
from cockpit.engine.prediction import expected
from cockpit.model.forecast import CameAhead, Forecast, Replanned, StartMove
from cockpit.model.ids import JobId, Millis

if TYPE_CHECKING:
    from cockpit.sched.forecast.predict import StartPredictor

CAMPUS = Path(__file__).parents[2] / "fixtures/clusters/campus.toml"
A_MINUTE = 6
"""Of the demo's time, in real seconds."""


def first_come_first_served(folder: Path, backfill: str) -> str:
    """The campus without priorities."""
    text = re.sub(
        r"\[rules\.priority\]\n(?:[^\[\n].*\n)+", f'[rules.backfill]\ntype = "{backfill}"\n\n', CAMPUS.read_text()
    )
    fixture = folder / "campus.toml"
    fixture.write_text(text)
    return str(fixture)


@pytest.mark.req("SC-12")
@pytest.mark.parametrize(("backfill", "minutes"), [("easy", 30), ("off", 60)])  # until bounds have moved in both
async def test_a_shown_bound_is_met_or_its_cause_is_named(backfill: str, minutes: int, tmp_path: Path) -> None:
    demo = await open_demo(first_come_first_served(tmp_path, backfill), 1, going=False)
    shown: dict[JobId, Forecast] = {}
    promised = moved = 0
    for _ in range(minutes):
        await demo.elapse(A_MINUTE)
        rows = {row.id: row for row in await demo.backend.jobs()}
        for job, forecast in shown.items():
            row = rows.get(job)
            if row is not None and row.started_at is not None and forecast.latest_at is not None:
                assert row.started_at <= forecast.latest_at
        told = await demo.backend.starts([row.id for row in rows.values() if row.queued])
        found = {each.job: each.forecast for each in told if not each.forecast.now}
        for job in shown.keys() & found.keys():
            if found[job].latest_at != shown[job].latest_at:
                last = found[job].moves[-1]
                assert (last.before, last.after) == (shown[job].latest_at, found[job].latest_at)
                assert Replanned() not in last.causes
                moved += 1
        shown = {job: each for job, each in found.items() if each.latest_at is not None}
        promised += bool(shown)
    assert promised
    assert moved
    await demo.close()


@pytest.mark.req("SC-12", "TR-03")
async def test_causes_name_no_job_hidden_from_the_user() -> None:
    demo = await open_demo("campus", 1, going=False)
    rows = [row for row in await demo.backend.jobs() if row.queued]
    own, other = next(row for row in rows if row.user == "erin"), next(row for row in rows if row.user != "erin")
    await demo.backend.starts([own.id])
    engine = demo.backend._engine
    foresight: StartPredictor | None = engine.predictor
    assert foresight is not None
    move = StartMove(Millis(0), Millis(1), Millis(2), (CameAhead(other.id), CameAhead(own.id), CameAhead(JobId(-1))))
    stranger = replace(actor_of(read_fixture("campus"), "erin"), projects=frozenset())
    moved = {"moves": (move,), "likely_moves": (move,)}
    (told,) = expected(stranger, foresight, [own.id], lambda _, forecast: replace(forecast, **moved))
    for (each,) in (told.forecast.moves, told.forecast.likely_moves):
        assert each.causes == (CameAhead(JobId(0)), CameAhead(own.id), CameAhead(JobId(0)))
    await demo.close()


@pytest.mark.req("SC-12")
async def test_likely_starts_that_moved_are_marked_with_their_cause_where_no_start_is_promised() -> None:
    demo = await open_demo("campus", 1, going=False)
    moved = 0
    shown: dict[JobId, Forecast] = {}
    for _ in range(20):
        await demo.elapse(A_MINUTE)
        queued = [row.id for row in await demo.backend.jobs() if row.queued]
        for each in await demo.backend.starts(queued):
            before, shown[each.job] = shown.get(each.job), each.forecast
            if before is not None and each.forecast.likely_moves not in ((), before.likely_moves):
                assert each.forecast.latest_at is None
                assert each.forecast.likely_moves[-1].after == each.forecast.likely_at
                assert each.forecast.likely_moves[-1].causes
                moved += 1
    assert moved
    await demo.close()
