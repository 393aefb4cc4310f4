"""Keys that come faster than the screen: pasted, or typed ahead over a slow line."""

from __future__ import annotations

import pytest

from cockpit.model.job import JobState
from tests.tui.lab import the_lab


@pytest.mark.req("UI-21")
async def test_a_filter_typed_ahead_goes_completely_into_the_filter() -> None:
    async with the_lab() as lab:
        await lab.cockpit.type("/state:queued user:bob").misses("broken").sees("eval").press("Enter").stands_on("eval")
        await lab.cockpit.press("Esc").type(":nodes").press("Enter").sees("n01")
        assert not lab.cockpit.player.over


async def test_each_key_acts_after_the_effect_of_the_previous_one() -> None:
    async with the_lab() as lab:
        await lab.cockpit.type("jjj").stands_on("tune").type("gjl").sees("2 broken", "stderr")


@pytest.mark.req("UI-20")
async def test_keys_typed_before_a_question_was_visible_do_not_answer_it() -> None:
    async with the_lab() as lab:
        await lab.cockpit.type("xyyy").sees("Stop job 1 train?")
        assert next(row.state for row in await lab.backend.jobs() if row.id == 1) is JobState.RUNNING
        await lab.cockpit.press("y").sees("■ stopped")
