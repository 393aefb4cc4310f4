"""The demo of elastic jobs: within an afternoon they have grown, given way and gone on."""

from __future__ import annotations

import re

import pytest

from cockpit.model import events
from cockpit.model.job import JobState
from tests.backends.demo.conftest import Open, history, pass_hours


@pytest.mark.req("EL-01", "UI-50", "TR-02")
async def test_workers_join_and_leave_and_every_invariant_holds(opened: Open) -> None:
    demo = await opened("elastic")
    await pass_hours(demo, 3)
    recorded = await history(demo)
    told = [each.body for each in recorded]
    assert {type(each) for each in told} >= {events.WorkersAdded, events.WorkersRecalled, events.WorkersLeft}
    grown = {each.job for each in told if isinstance(each, events.WorkersAdded)}
    ended = {each.job: each.state for each in told if isinstance(each, events.JobEnded)}
    assert JobState.SUCCEEDED in {ended[job] for job in grown & ended.keys()}
    joined = {
        (each.job, part.rank) for each in told if isinstance(each, events.WorkersAdded) for part in each.placement
    }
    ended_well = {
        (each.body.job, each.body.rank): each.at
        for each in recorded
        if isinstance(each.body, events.ReplicaEnded) and each.body.exit.ok
    }
    late = joined & ended_well.keys()
    assert len(late) > 3
    assert all(ended_well[job, rank] == ended_well[job, 0] for job, rank in late), (
        "a late worker ends with the first one"
    )


@pytest.mark.req("EL-01", "EL-04", "UI-50")
async def test_trainings_have_steps_a_speed_for_each_size_and_likely_ends(opened: Open) -> None:
    demo = await opened("elastic")
    await pass_hours(demo, 3)
    running = [row for row in await demo.backend.jobs() if row.workers is not None and row.holds]
    details = [await demo.backend.job(row.id) for row in running]
    known = [each.training for each in details if each.training is not None and each.training.step]
    assert known
    assert all(each.total and each.step <= each.total for each in known)
    assert any(len([speed for speed in each.speeds if speed.per_second]) > 1 for each in known), "some have resized"
    for each in known:
        ends = [end.end_at for end in each.ends]
        assert None not in ends
        assert ends == sorted(ends, reverse=True), "more workers end sooner"
    for each in details:
        printed = re.findall(r"step +(\d+)/(\d+) ", each.log_tail)
        if printed and each.training is not None:
            assert int(printed[-1][0]) <= (each.training.step or 0), "the log says what the page says"
            assert int(printed[-1][1]) == each.training.total
    resumed = [each.body for each in await history(demo) if isinstance(each.body, events.TrainingResumed)]
    assert resumed
    assert any(each.reached is not None and each.reached > each.resumed for each in resumed), "some lost steps"
