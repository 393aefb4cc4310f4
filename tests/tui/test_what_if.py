"""A job that waits is made to start sooner by one key."""

from __future__ import annotations

import pytest

from cockpit.model.job import JobState
from tests.tui.lab import the_lab


@pytest.mark.req("UI-02", "SC-13")
async def test_w_offers_a_changed_request_and_any_key_but_yes_declines() -> None:
    async with the_lab() as lab:
        cockpit = lab.cockpit
        await lab.backend.hold(6)
        await lab.backend.hold(7)
        await lab.backend.cancel(1, grace_seconds=0)
        await cockpit.press("G", "k", "k").stands_on("wide").sees("w on 1 node instead of 2: now")
        for refusal in ("Enter", "n"):
            await cockpit.press("w").sees("what would start it sooner", "on 1 node instead of 2").press("Enter")
            await cockpit.sees("Change job 5 wide?", "starts now").press(refusal).misses("Change job")
            assert (await lab.backend.job(5)).job.spec.nodes == 2
        await (
            cockpit.press("w")
            .sees("what would start it sooner", "on 1 node instead of 2")
            .press("Enter")
            .sees("Change job 5 wide?")
            .press("y")
        )
        await cockpit.sees("changed job 5 wide")
        found = (await lab.backend.job(5)).job
        assert (found.spec.nodes, found.state is JobState.QUEUED) == (1, False)


async def test_a_job_that_is_not_queued_has_no_what_if() -> None:
    async with the_lab() as lab:
        await lab.cockpit.press("g", "w").sees("Job 1 is running: this is for queued jobs")
