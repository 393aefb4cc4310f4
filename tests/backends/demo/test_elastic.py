"""The demo of elastic jobs: within an afternoon they have grown, given way and gone on."""

from __future__ import annotations

import pytest

from cockpit.model import events
from cockpit.model.job import JobState
from tests.backends.demo.conftest import Open, history, pass_hours


@pytest.mark.req("EL-01", "UI-50", "TR-02")
async def test_workers_join_and_leave_and_every_invariant_holds(opened: Open) -> None:
    demo = await opened("elastic")
    await pass_hours(demo, 3)
    told = [each.body for each in await history(demo)]
    assert {type(each) for each in told} >= {events.WorkersAdded, events.WorkersRecalled, events.WorkersLeft}
    grown = {each.job for each in told if isinstance(each, events.WorkersAdded)}
    ended = {each.job: each.state for each in told if isinstance(each, events.JobEnded)}
    assert JobState.SUCCEEDED in {ended[job] for job in grown & ended.keys()}
