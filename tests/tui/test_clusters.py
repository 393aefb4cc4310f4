"""All clusters that a person uses, and their jobs in one table."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random

import pytest

from cockpit.backends.fleet.backend import FleetBackend
from cockpit.backends.fleet.member import Opened
from cockpit.backends.slurm.backend import SlurmBackend
from cockpit.backends.slurm.opening import open_recorded
from cockpit.backends.slurm.reading import Reading
from cockpit.backends.slurm.wire.answers import Answers
from cockpit.backends.slurm.wire.local import LocalCommands
from cockpit.clusters.opening import beside
from cockpit.clusters.several import Watching
from cockpit.config.cluster_names import EVERY_CLUSTER
from cockpit.errors import Unreachable
from cockpit.model.ids import Millis
from cockpit.model.view import ClusterRow, ClusterState
from cockpit.runtime.clock import SystemClock
from cockpit.tui.opening import Session
from tests.doubles.samples import NOW
from tests.tui.driver import Cockpit, at_the_cockpit
from tests.tui.lab import the_lab


async def recorded() -> Opened:
    backend, now = await open_recorded("22.05")
    return Opened(backend, now, backend.close, still=True)


async def silent() -> Opened:
    raise Unreachable("lab cannot be reached over SSH: it is asleep.")


def a_fleet() -> FleetBackend:
    members = [("old", "recorded:22.05", recorded), ("again", "recorded:22.05", recorded), ("lab", "ssh://lab", silent)]
    return FleetBackend("all · 3 clusters", members, SystemClock().now)


@asynccontextmanager
async def all_clusters(size: tuple[int, int] = (120, 40)) -> AsyncIterator[Cockpit]:
    fleet = a_fleet()
    session = Session(
        backend=fleet,
        now=SystemClock().now,
        user="ann",
        read_jobs=lambda *_: [],
        close=fleet.close,
        cluster=EVERY_CLUSTER,
        every=Watching(lambda: fleet),
    )
    async with at_the_cockpit(session, size) as cockpit:
        yield cockpit


@pytest.mark.req("UI-10")
@pytest.mark.parametrize("size", [(120, 40), (80, 24)])
async def test_all_clusters_with_their_state_age_and_load(size: tuple[int, int]) -> None:
    async with the_lab(every=Watching(a_fleet), size=size) as lab:
        screen = await lab.cockpit.press("8").sees("old", "again", "lab", "✗ no answer", "■ snapshot", "16/16 ━")
        assert "asleep" not in screen or size[0] >= 110
        await lab.cockpit.press("G").stands_on("lab").sees("lab  does not answer: lab cannot be reached over SSH")
        await lab.cockpit.press("/").type("state:still").press("enter").misses("✗ no answer")
        await lab.cockpit.press("escape").press("g").stands_on("old").sees("jobs ", "54 queued", "16 of 16 cards")


@pytest.mark.req("UI-10", "TR-04")
async def test_the_clusters_are_shown_while_the_open_one_does_not_answer(tmp_path: Path) -> None:
    for program in ("scontrol", "squeue", "sinfo"):
        (tmp_path / program).write_text("#!/bin/sh\nexec sleep 600\n")
        (tmp_path / program).chmod(0o755)
    clock = SystemClock()
    commands = LocalCommands({"PATH": f"{tmp_path}:{os.environ['PATH']}"})
    reading = Reading(Answers(commands, clock.now, Random(1)), clock.now)
    backend = SlurmBackend("here", commands, reading, clock, "ann")
    session = Session(
        backend=backend,
        now=clock.now,
        user="ann",
        read_jobs=lambda *_: [],
        close=backend.close,
        cluster="slurm",
        every=Watching(a_fleet),
    )
    async with at_the_cockpit(session, (120, 40)) as cockpit:
        await cockpit.sees("connecting").press("8").sees("■ snapshot", "✗ no answer")


class Heard(FleetBackend):
    """One that was heard at a moment, and one that never was."""

    def __init__(self) -> None:
        super().__init__("all", [], SystemClock().now)

    async def clusters(self) -> list[ClusterRow]:
        return [
            ClusterRow(name="lab", way="", state=ClusterState.LIVE, heard_at=NOW),
            ClusterRow(name="big", way="", state=ClusterState.SILENT),
        ]


@pytest.mark.req("UI-10", "UI-50")
async def test_ages_of_clusters_are_correct_in_the_time_of_a_demo() -> None:
    every = Watching(Heard, ahead=lambda: 90_000)
    assert [row.heard_at for row in await every.clusters()] == [NOW + 90_000, None]
    await every.close()
    assert 80_000 < beside(Heard(), lambda: Millis(SystemClock().now() + 90_000), "lab")._ahead() <= 90_000


@pytest.mark.req("UI-10")
@pytest.mark.parametrize(("keys", "next_cluster"), [(("8", "j", "enter"), "again"), (("8", "a"), EVERY_CLUSTER)])
async def test_another_cluster_replaces_the_open_one(keys: tuple[str, ...], next_cluster: str) -> None:
    async with the_lab(every=Watching(a_fleet)) as lab:
        await lab.cockpit.press(keys[0]).sees("■ snapshot").press(*keys[1:])
        assert lab.cockpit.app.next_cluster == next_cluster


@pytest.mark.req("UI-10")
async def test_one_table_shows_the_jobs_of_all_clusters_with_one_filter() -> None:
    async with all_clusters() as cockpit:
        await cockpit.sees("CLUSTER", "⚠ lab: no answer", "all · 3 clusters", "timesout")
        screen = await cockpit.press("/").type("cluster:again state:running").press("enter").sees("train-h100")
        listed = [line for line in screen.splitlines() if "● running" in line]
        assert listed
        assert all("again" in line for line in listed)
        await cockpit.press("5").sees("Each cluster has its own")


@pytest.mark.req("UI-10", "UI-32")
async def test_a_job_of_an_engine_among_other_clusters_is_stopped_only_when_confirmed() -> None:
    """A Slurm cluster shows its command and asks; an engine shows none, so the question comes from the cockpit."""
    async with the_lab() as lab:

        async def engine() -> Opened:
            return Opened(lab.backend, lab.demo.now, lab.backend.close)

        fleet = FleetBackend("all", [("old", "", recorded), ("mine", "", engine)], lab.demo.now)
        session = Session(
            backend=fleet,
            now=lab.demo.now,
            user="alice",
            read_jobs=lambda *_: [],
            close=fleet.close,
            cluster=EVERY_CLUSTER,
        )
        async with at_the_cockpit(session, (120, 40)) as cockpit:
            await cockpit.sees("CLUSTER").press("/").type("cluster:mine state:running").press("enter").press("x")
            await cockpit.sees("Stop job 1 train?")


@pytest.mark.req("UI-10")
async def test_the_panel_and_the_page_are_those_of_the_right_cluster() -> None:
    async with all_clusters() as cockpit:
        await cockpit.press("/").type("cluster:again name:stage2").press("enter").stands_on("stage2")
        await (
            cockpit.sees("48 stage2  waits for job 47 to succeed")
            .press("enter")
            .misses("train-h100")
            .sees("stage2", "Why")
        )


@pytest.mark.req("UI-10", "UI-50")
@pytest.mark.parametrize("key", ["enter", "a"])
async def test_a_demos_own_row_opens_the_jobs_of_the_demo(key: str) -> None:
    async with the_lab() as lab, the_lab(every=lab.demo) as again:
        (own,) = await lab.demo.clusters()
        await again.cockpit.press("8").sees(own.way).press(key).sees("train")
        assert not again.cockpit.app.next_cluster
