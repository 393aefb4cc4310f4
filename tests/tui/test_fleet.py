"""The fleet's table in the Clusters view."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from cockpit.backends.demo.backend import open_demo
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
