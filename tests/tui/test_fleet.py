"""The fleet's table in the Clusters view."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from cockpit.backends.demo.backend import open_demo
from cockpit.model.events import ReplicaStarted
from cockpit.runtime.host import Settings
from tests.backends.demo.test_fleet import PAIR, a_job, emptied
from tests.tui.driver import at_the_cockpit
from tests.tui.lab import session_of, the_lab
from tests.tui.test_clusters import all_clusters

pytestmark = pytest.mark.req("FL-09", "UI-10")


async def test_a_divided_job_unfolds_to_its_parts_and_pods_and_shows_a_member_s_object(tmp_path: Path) -> None:
    demo = await open_demo(PAIR, 1, tmp_path / "demo", settings=Settings(check_invariants=True), going=False)
    await emptied(demo)
    (job,) = await demo.backend.submit([a_job("gang", "sleep 7000", nodes=5, cards=4, divide_over_clusters=True)])
    async with at_the_cockpit(replace(session_of(demo), every=demo), (120, 40)) as cockpit:
        await cockpit.press("8").sees("└ new", "└ old").press("]").sees("NAME", "ADO", "FLEET")
        await cockpit.press("/").type("name:gang").press("Enter").sees("▸ gang", "2 clusters").press("Enter")
        await cockpit.sees("▾ gang", "new", "old").press("j").press("Enter").sees("gang-0", "Running")
        await cockpit.press("y").sees(f'"id": {await own_id(demo, job)}', "on new").press("Esc").sees("gang-0")
        await cockpit.press("Enter").misses("gang-0")


async def test_the_events_of_a_job_on_a_fleet_are_those_of_the_fleet_or_of_a_member(tmp_path: Path) -> None:
    demo = await open_demo(PAIR, 1, tmp_path / "demo", settings=Settings(check_invariants=True), going=False)
    await emptied(demo)
    (job,) = await demo.backend.submit([a_job("gang", "sleep 7000", nodes=5, cards=4, divide_over_clusters=True)])
    async with at_the_cockpit(replace(session_of(demo), every=demo), (140, 40)) as cockpit:
        await cockpit.press("8").sees("└ new", "└ old").press("]").sees("NAME", "ADO", "FLEET").press("1")
        await (
            cockpit.press("/")
            .type("name:gang")
            .press("Enter")
            .sees("gang")
            .press("l")
            .press("]")
            .sees("the fleet's events")
        )
        await cockpit.press("i").sees("events of new").press("i").sees("events of old")
        await cockpit.press("i").sees("the fleet's events")
        for rank, started in ((0, {0, 1, 2, 3}), (4, {4})):
            records = await demo.backend.events(job=job, rank=rank)
            assert {each.body.job for each in records} == {job}
            assert {each.body.rank for each in records if isinstance(each.body, ReplicaStarted)} <= started


async def test_the_pods_of_all_unfolded_jobs_are_asked_for_at_once(tmp_path: Path) -> None:
    demo = await open_demo(PAIR, 1, tmp_path / "demo", settings=Settings(check_invariants=True), going=False)
    await emptied(demo)
    jobs = await demo.backend.submit([a_job(f"gang{n}", "sleep 7000", nodes=1, cards=1) for n in range(3)])
    async with at_the_cockpit(replace(session_of(demo), every=demo), (120, 40)) as cockpit:
        asked: list[dict] = []
        whole = cockpit.app.backend.perform

        async def counted(operation, given):
            if operation.name == "fleet":
                asked.append(dict(given))
            return await whole(operation, given)

        cockpit.app.backend.perform = counted
        await cockpit.press("8").sees("└ new").press("]").sees("NAME", "ADO", "FLEET")
        await cockpit.press("/").type("gang").press("Enter").sees("gang0", "gang2")
        for at in range(3):
            await cockpit.press("Enter").sees(f"gang{at}-0").press("j", "j")
        (last,) = [each for each in asked[-2:] if each.get("pods")]
        assert (sorted(last["jobs"]), last.get("job")) == (sorted(jobs), None)
        assert len([each for each in asked if each.get("pods")]) <= len(
            [each for each in asked if not each.get("pods")]
        )


async def own_id(demo, job: int) -> str:
    first, _ = (await demo.backend.fleet(job=job)).jobs
    return first.own


async def test_a_cluster_that_is_no_fleet_says_so() -> None:
    async with the_lab() as lab:
        await lab.cockpit.press("9").sees("This cluster is no fleet of several clusters")


async def test_the_merged_view_lists_the_jobs_of_all_clusters_with_their_pods() -> None:
    async with all_clusters() as cockpit:
        await cockpit.press("9").sees("old", "ADO", "OWN")
        await cockpit.press("/").type("cluster:old state:running").press("Enter").press("Enter").sees("▾")
