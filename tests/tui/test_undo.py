"""`u` undoes the last act where it can be undone, and says why where not."""

from __future__ import annotations

import pytest

from cockpit.headless.node_words import node_requests
from cockpit.model.reasons import Held
from cockpit.model.spec import Array, PriorityWord
from cockpit.tui.controllers.nodes import way_back
from cockpit.tui.controllers.ways_back import details_of, of_priority
from cockpit.tui.undo import WayBack
from tests.tui.lab import a_lab, job, seat_of, the_lab
from tests.tui.test_slurm_acts import cluster

NOTHING = "There is nothing to undo"


async def _reason(lab, number: int):
    return (await lab.backend.job(number)).row.reason


@pytest.mark.req("UI-31")
async def test_a_hold_and_a_release_are_undone_once() -> None:
    async with the_lab() as lab:
        cockpit = lab.cockpit
        await cockpit.press("u").sees(NOTHING)
        await cockpit.press("G", "k", "k").stands_on("wide").press("H").sees("held job 5 wide · u releases it")
        assert isinstance(await _reason(lab, 5), Held)
        await cockpit.press("u").sees("released job 5 wide")
        assert not isinstance(await _reason(lab, 5), Held)
        await cockpit.press("u").sees("The last act is undone already.")
        assert not isinstance(await _reason(lab, 5), Held)


@pytest.mark.req("UI-31")
async def test_an_act_on_some_that_were_held_and_some_that_were_not_is_undone_job_by_job() -> None:
    async with a_lab(job("fills", cards=4, nodes=2), job("first", cards=4), job("second", cards=4)) as lab:
        await lab.backend.hold(2)
        cockpit = lab.cockpit
        await cockpit.sees("second").press("G").stands_on("second").press("space").press("k").stands_on("first")
        await cockpit.press("space").press("H").sees("held job 3 second and released job 2 first")
        await cockpit.press("u").sees("held job 2 first and released job 3 second")
        assert isinstance(await _reason(lab, 2), Held)
        assert not isinstance(await _reason(lab, 3), Held)


@pytest.mark.req("UI-31")
async def test_a_stopped_job_is_submitted_again_and_the_cursor_is_on_it() -> None:
    async with the_lab() as lab:
        cockpit = lab.cockpit
        await cockpit.press("g").stands_on("train").press("x").sees("Stop job 1").press("y")
        await cockpit.sees("stopped job 1 train · u submits it again", "was stopped by")
        await cockpit.press("u").sees("submitted again as 8")
        await cockpit.stands_on(" 8  train")
        again, former = (await lab.backend.job(8)).job, (await lab.backend.job(1)).job
        assert again.spec == former.spec


@pytest.mark.req("UI-31")
async def test_stopped_tasks_of_an_array_are_submitted_again_under_their_indices() -> None:
    async with a_lab(job("sweep", cards=4, array=Array((3, 5, 8), at_once=2))) as lab:
        cockpit = lab.cockpit
        await cockpit.sees("sweep").press("z").sees("1_5", "1_8").press("G").stands_on("1_8").press("x")
        await cockpit.sees("Stop job 1_8").press("y").sees("u submits it again", "was stopped by alice")
        await cockpit.press("u").sees("submitted again as 4")
        again = (await lab.backend.job(4)).job
        assert again.array is not None
        assert (again.array.index, again.array.count, again.spec.command) == (8, 1, "sleep 36000")


@pytest.mark.req("UI-31", "JT-60")
async def test_a_job_of_somebody_else_is_not_submitted_again_as_ones_own() -> None:
    async with the_lab() as lab:
        await lab.cockpit.press("G").stands_on("训练").press("x").sees("Stop job 7").press("y").sees("stopped job 7")
        await lab.cockpit.press("u").sees("Only bob can submit job 7 训练 again")
        assert "训练" not in [row.name for row in await lab.backend.jobs() if row.queued]


@pytest.mark.req("UI-31")
async def test_priority_time_limit_and_request_are_restored() -> None:
    async with the_lab() as lab:
        cockpit = lab.cockpit
        before = (await lab.backend.job(5)).job.spec
        await cockpit.press("G", "k", "k").stands_on("wide")
        await cockpit.press("colon").type("priority urgent").press("enter").sees("priority urgent for job 5 wide · u")
        assert (await lab.backend.job(5)).job.spec.priority is PriorityWord.URGENT
        await cockpit.press("u").sees("priority of job 5 wide as it was")
        await cockpit.press("colon").type("time-limit 2h").press("enter").sees("time limit 2h for job 5 wide · u")
        assert (await lab.backend.job(5)).job.spec.time_limit_seconds == 2 * 3600
        await cockpit.press("u").sees("time limit of job 5 wide as it was")
        await cockpit.press("e").sees("Job 5 wide", "ready").type("renamed").press("ctrl+s")
        await cockpit.sees("edited 5 · u restores it").press("u").sees("job 5 is as it was")
        assert (await lab.backend.job(5)).job.spec == before


@pytest.mark.req("UI-31")
async def test_a_number_set_by_an_administrator_is_removed_again() -> None:
    async with the_lab() as lab:
        cockpit = lab.cockpit
        await cockpit.press("G", "k", "k").stands_on("wide")
        await cockpit.press("colon").type("priority 77").press("enter").sees("priority 77 for job 5 wide · u")
        assert (await lab.backend.job(5)).job.direct_priority == 77
        await cockpit.press("colon").type("priority +5").press("enter").sees("priority +5 for job 5 wide · u")
        await cockpit.press("u").sees("priority of job 5 wide as it was")
        assert (await lab.backend.job(5)).job.site_factor == 0


@pytest.mark.req("UI-31")
async def test_a_submission_is_undone_after_a_question() -> None:
    async with the_lab() as lab:
        cockpit = lab.cockpit
        await cockpit.press("g").stands_on("train").press("N").sees("A copy of train").press("ctrl+s")
        await cockpit.sees("submitted 8 · u stops it").press("u").sees("Stop job 8, which you have just submitted?")
        await cockpit.press("n").misses("which you have just submitted")
        assert (await lab.backend.job(8)).row.ended_at is None
        # Declined: it can still be undone.
        await cockpit.press("u").sees("Stop job 8, which").press("y").sees("stopped job 8")
        assert (await lab.backend.job(8)).row.ended_at is not None


@pytest.mark.req("UI-31")
async def test_what_the_cluster_refuses_to_undo_can_be_tried_again() -> None:
    async with the_lab() as lab:
        cockpit = lab.cockpit
        await cockpit.press("G", "k", "k").stands_on("wide").press("H").sees("u releases it")
        await seat_of(lab, "alice").cancel(5)
        await cockpit.press("u").sees("Job 5")
        await cockpit.press("u").misses("undone already")


@pytest.mark.req("UI-31")
async def test_what_cannot_be_undone_says_why() -> None:
    async with the_lab() as lab:
        cockpit = lab.cockpit
        await cockpit.press("g", "j").stands_on("broken").press("plus").sees("hold extended by two hours")
        await cockpit.press("u").sees("A hold is extended only")
        await cockpit.press("minus").sees("End the hold of job 2").press("y").sees("ended the hold of job 2 broken")
        await cockpit.press("u").sees("The container of an ended hold is gone")


@pytest.mark.req("UI-31", "UI-28")
async def test_nothing_is_undone_in_read_only_mode() -> None:
    async with the_lab(read_only="read-only: the config file says so") as lab:
        await lab.cockpit.press("u").sees("read-only: the config file says so")


@pytest.mark.req("UI-31")
async def test_a_drained_node_is_given_back_unless_it_was_drained_before() -> None:
    async with the_lab() as lab:
        cockpit = lab.cockpit
        await (
            cockpit.press("colon").type("nodes drain n01 --reason fan").press("enter").sees("drained n01", "u gives it")
        )
        await cockpit.press("u").sees("gave back n01")
        await lab.backend.drain_node("n01", "fan")
        # Slurm takes another reason for a node that is drained already; to resume it
        # would end what somebody else began.
        way = await way_back(cockpit.app, node_requests("nodes", "drain n01 --reason dust", lab.demo.now()))
        assert isinstance(way, str)
        assert "n01 was not in service before either" in way


@pytest.mark.req("UI-31")
async def test_an_entry_of_the_catalogue_is_removed_and_restored() -> None:
    async with the_lab() as lab:
        cockpit = lab.cockpit
        await (
            cockpit.press("7", "colon")
            .type("catalogue add volume scratch path=/tmp")
            .press("enter")
            .sees("u removes it")
        )
        assert "scratch" in [row.entry.name for row in (await lab.backend.catalogue()).rows]
        await cockpit.press("u").sees("removed volume")
        assert "scratch" not in [row.entry.name for row in (await lab.backend.catalogue()).rows]


@pytest.mark.req("UI-31", "SL-20")
async def test_on_slurm_the_former_qos_is_restored_by_a_command_that_is_shown() -> None:
    async with cluster() as cockpit:
        (row,) = [row for row in await cockpit.session.backend.jobs() if row.name == "timesout"]
        way = of_priority(cockpit.app, [row], await details_of(cockpit.app, [row]), PriorityWord.URGENT)
        assert isinstance(way, WayBack)
        cockpit.app.last_act.remember(way)
        await cockpit.press("u").sees("scontrol update JobId=", f"QOS={row.qos}").press("n").misses("scontrol update")


@pytest.mark.req("UI-31")
async def test_slurm_cannot_compute_a_priority_again_that_was_set_by_number() -> None:
    async with cluster() as cockpit:
        (row,) = [row for row in await cockpit.session.backend.jobs() if row.name == "timesout"]
        way = of_priority(cockpit.app, [row], await details_of(cockpit.app, [row]), 77)
        assert isinstance(way, str)
        assert "Slurm keeps a priority that was set by number" in way
