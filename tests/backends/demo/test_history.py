"""What a demo lives through is computed, and the same for the same seed."""

from __future__ import annotations

from collections import Counter

import pytest

from cockpit.backends.demo.fixture import nodes_of, read_fixture
from cockpit.model import events
from cockpit.model.attempt import EndCause
from cockpit.model.job import JobState
from cockpit.runtime.host import Settings
from cockpit.sched.cycle import cycle
from tests.backends.demo.conftest import HOUR, LAB, Open, history, pass_hours

WEEK_HOURS = 7 * 24


@pytest.mark.req("UI-50")
async def test_the_same_seed_gives_the_same_history(opened: Open) -> None:
    one, two = await opened(seed=7), await opened(seed=7)
    await pass_hours(one, 12)
    for _ in range(12 * 60):
        await pass_hours(two, 1 / 60)
    assert await history(one) == await history(two)


@pytest.mark.req("UI-50")
async def test_another_seed_gives_another_history(opened: Open) -> None:
    histories = [await history(await opened(seed=seed)) for seed in (1, 2, 3)]
    assert all(len(each) > 20 for each in histories)
    assert histories[0] != histories[1] != histories[2]


@pytest.mark.req("UI-50", "TR-02")
async def test_every_invariant_holds_after_every_event_of_a_week(opened: Open) -> None:
    demo = await opened()
    await pass_hours(demo, WEEK_HOURS)
    assert demo.host.machine.state.seq > 3_000
    ended = [record.body for record in await history(demo) if isinstance(record.body, events.JobEnded)]
    assert {body.state for body in ended} == {
        JobState.SUCCEEDED,
        JobState.ERROR,
        JobState.EXPIRED,
        JobState.STOPPED,
    }
    assert {body.cause for body in ended} >= {EndCause.EXIT, EndCause.STOP, EndCause.TIME_LIMIT, EndCause.LOST}
    assert any(body.exit is not None and body.exit.oom for body in ended)


@pytest.mark.parametrize("seed", [2, 3, 99])
@pytest.mark.req("UI-50", "TR-02")
async def test_every_invariant_holds_for_other_seeds(opened: Open, seed: int) -> None:
    demo = await opened(seed=seed)
    await pass_hours(demo, 24)
    assert demo.host.machine.state.seq > 400


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.req("UI-50")
async def test_the_campus_demo_opens_with_running_jobs(opened: Open, seed: int) -> None:
    demo = await opened("campus", seed)
    overview = await demo.backend.overview()
    counts = Counter(overview.jobs_by_state)
    assert overview.cluster == "campus · DEMO"
    assert overview.nodes == 24
    assert 40 <= counts["queued"] <= 130
    assert 35 <= counts["running"] <= 110
    assert counts["succeeded"] > 10
    assert counts["error"] > 2
    assert overview.held > 2
    assert overview.used_card_milli > 0.7 * overview.card_milli


async def test_the_campus_demo_stays_busy_day_and_night(opened: Open) -> None:
    demo = await opened("campus", settings=Settings())
    for _ in range(4):
        await pass_hours(demo, 6)
        counts = Counter((await demo.backend.overview()).jobs_by_state)
        assert counts["running"] >= 5
        assert 10 <= counts["queued"] <= 160


async def test_every_job_of_a_fixture_could_run(opened: Open) -> None:
    demo = await opened("campus", settings=Settings())
    kinds = {type(row.reason).__name__ for row in await demo.backend.jobs() if row.reason is not None}
    assert "NotEnoughFree" in kinds
    assert not kinds & {"NeverFits", "NoEligibleNode", "NotEvaluated"}


async def test_no_job_waits_that_could_start(opened: Open) -> None:
    """The host schedules after what could let a job start, and not after everything: that must leave nothing out."""
    demo = await opened(settings=Settings())
    for _ in range(600):
        await demo.pace.step()
        await demo.pace.reach(demo.now())
        assert cycle(demo.host.machine.peek(demo.now()), None, Settings().policy).starts == ()


async def test_after_the_opening_the_demo_does_not_act_for_the_user(opened: Open) -> None:
    demo = await opened()
    opening = demo.now()
    await pass_hours(demo, 48)
    submitted = [each for each in await history(demo) if isinstance(each.body, events.JobSubmitted)]
    assert any(each.actor == "ann" and each.at < opening for each in submitted)
    assert not any(each.actor == "ann" and each.at > opening for each in submitted)
    assert any(each.at > opening + 24 * HOUR for each in submitted)


def test_hardware_sliced_cards_are_never_allocated_whole() -> None:
    cards = [card for node in nodes_of(read_fixture(LAB)) for card in node.cards if card.slices]
    assert [len(card.slice_uuids) for card in cards] == [4, 4]
