"""Arrays in the Jobs view: one row, or their tasks."""

from __future__ import annotations

import pytest

from cockpit.model.spec import Array
from tests.tui.driver import under_cursor
from tests.tui.lab import a_lab, job

SWEEP = job("sweep", array=Array(indices=(0, 1, 2, 3), at_once=2))
JOBS = (job("first"), SWEEP, job("last"))
"""Jobs 1, 2 to 5, and 6: two tasks run, two wait for their array."""


@pytest.mark.req("UI-01")
async def test_an_array_is_one_row_that_counts_its_tasks() -> None:
    async with a_lab(*JOBS) as lab:
        screen = await lab.cockpit.sees("2_[0-3%2]", "sweep [4]", "◌ 2 ● 2")
        assert len([line for line in screen.splitlines() if "sweep" in line]) == 1
        await lab.cockpit.press("j").sees("2_2 sweep  2 tasks of its array may run at once")


@pytest.mark.req("UI-01", "UI-23")
async def test_enter_shows_the_tasks_and_z_folds_them_from_any_of_them() -> None:
    async with a_lab(*JOBS) as lab:
        cockpit = lab.cockpit
        screen = await cockpit.sees("sweep [4]").press("j", "Enter").sees("2_0", "2_1", "2_2", "2_3").misses("[4]")
        assert "2_0" in under_cursor(screen)
        await cockpit.press("j", "j").stands_on("2_2").press("z").sees("sweep [4]").stands_on("2_[0-3%2]")
        await cockpit.press("z").sees("2_3").press("j", "Enter").sees("Why", "2_1 sweep").press("Esc").stands_on("2_1")


@pytest.mark.req("UI-23")
async def test_a_filter_does_not_move_the_array_or_its_cursor() -> None:
    async with a_lab(*JOBS) as lab:
        cockpit = lab.cockpit
        await cockpit.sees("sweep [4]").press("j").press("/").type("state:queued").press("Enter").sees("2_[2-3%2]")
        await cockpit.stands_on("sweep [2]").press("Esc").stands_on("sweep [4]")


@pytest.mark.req("UI-23")
async def test_marks_apply_to_all_tasks_of_an_array_or_none() -> None:
    async with a_lab(*JOBS) as lab:
        cockpit = lab.cockpit
        await cockpit.sees("sweep [4]").press("j", "Space", "x").sees("Stop 4 jobs?").press("n").misses("Stop 4")
        await cockpit.press("k", "z").sees("2_3").press("x").sees("Stop 4 jobs?").press("n").misses("Stop 4")
        await cockpit.press("j", "Space", "z").sees("sweep [4]").press("x").sees("Stop 4 jobs?").press("y")
        await cockpit.lives(60).sees("■ 4")


async def test_folding_a_job_of_no_array_shows_a_message() -> None:
    async with a_lab(*JOBS) as lab:
        await lab.cockpit.sees("sweep [4]").press("z").sees("Job 1 is not a task of an array.")
        await lab.cockpit.press(":").type("4").press("Enter").stands_on("sweep [4]")


@pytest.mark.req("SC-10", "UI-23")
async def test_the_first_task_alone_is_no_array() -> None:
    async with a_lab(*JOBS) as lab:
        cockpit = lab.cockpit
        await cockpit.sees("sweep [4]").press("j", "Enter").sees("2_0").press("x").sees("Stop job 2").press("y")
        await cockpit.lives(60).sees("■ stopped")
        states = {row.id: str(row.state) for row in await lab.backend.jobs(ended=True)}
        assert [states[task] for task in (2, 3, 4, 5)].count("stopped") == 1


@pytest.mark.req("UI-01", "UI-30")
async def test_the_command_line_opens_a_task_or_an_array_by_the_listed_ids() -> None:
    async with a_lab(*JOBS) as lab:
        cockpit = lab.cockpit
        await cockpit.sees("sweep [4]").press("G").stands_on("last")
        await cockpit.press(":").type("2_[0-3]").press("Enter").stands_on("sweep [4]")
        await cockpit.press("z").sees("2_3").press(":").type("2_2").press("Enter").stands_on("2_2")
        await cockpit.press("G", ":").type("2_[1-2]").press("Enter").stands_on("2_1")
        await cockpit.press("G", ":").type("sweep").press("Enter").stands_on("2_0")
        await cockpit.press("z", "G", ":").type("2_3").press("Enter").stands_on("sweep [4]")
        await cockpit.press(":").type("2_[8-9]").press("Enter").sees("no action 2_[8-9]").stands_on("sweep [4]")
