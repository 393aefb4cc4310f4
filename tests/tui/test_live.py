"""Stories over a real engine and real containers: what happens there shows, and a lost engine never ends the face."""

from __future__ import annotations

import getpass
import re
import signal
import sqlite3
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from cockpit.cli import read_jobs
from cockpit.model.spec import Algorithm, JobSpec, NodeSpec
from cockpit.runtime.clock import SystemClock
from cockpit.tui.opening import Session
from tests.backends.conftest import OwnEngine, end, own_engine
from tests.tui.driver import Cockpit, at_the_cockpit

pytestmark = [pytest.mark.real]

ROOT = Path(__file__).parents[2]
STALE = re.compile(r"(\d+) s old")


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Iterator[OwnEngine]:
    with tempfile.TemporaryDirectory(prefix="cockpit-", dir="/var/tmp") as path:
        started = own_engine(monkeypatch.setenv, Path(path))
        monkeypatch.setenv("COCKPIT_CLUSTER", "local")
        monkeypatch.setenv("PYTHONPATH", str(ROOT))
        monkeypatch.chdir(path)
        started.control.start()
        yield started
        end(started)


@asynccontextmanager
async def cockpit_on(engine: OwnEngine) -> AsyncIterator[Cockpit]:
    backend = engine.live()
    session = Session(
        backend=backend, now=SystemClock().now, user=getpass.getuser(), read_jobs=read_jobs, close=backend.close
    )
    async with at_the_cockpit(session) as cockpit:
        yield cockpit


def script(engine: OwnEngine, name: str, text: str, **fields: object) -> JobSpec:
    """A job that runs this shell script."""
    folder = engine.folder / name
    folder.mkdir()
    (folder / "t.sh").write_text(f"#!/bin/bash\n{text}\n")
    (folder / "t.sh").chmod(0o755)
    return JobSpec(
        name=name,
        command="/workspace/algorithm/t.sh",
        algorithm=Algorithm(path=str(folder)),
        output=str(engine.folder / f"{name}-out"),
        specs=(NodeSpec(cpus=1, memory_mib=256),),
        **fields,
    )


@pytest.mark.req("UI-01", "UI-03")
async def test_a_job_is_submitted_runs_prints_and_ends_in_an_open_cockpit(engine: OwnEngine) -> None:
    (engine.folder / "algo").mkdir()
    go_on = engine.folder / "algo/go-on"
    command = "echo first line; until test -e /workspace/algorithm/go-on; do sleep 0.05; done; echo last line"
    (engine.folder / "algo/t.sh").write_text(command)
    async with cockpit_on(engine) as cockpit:
        await cockpit.sees("No jobs yet", "CPU").press("n").sees("Give a name", "rank 0").press("Down")
        await cockpit.type("bash /workspace/algorithm/t.sh").sees("Starts now").press("Ctrl-s")
        await cockpit.sees("my-job", "● running").press("l").sees("first line")
        go_on.touch()
        await cockpit.sees("last line", "✓ succeeded").press("Esc").sees("1 my-job")


@pytest.mark.req("JT-40", "UI-02")
async def test_a_failed_container_is_held_extended_and_removed(engine: OwnEngine) -> None:
    async with cockpit_on(engine) as cockpit:
        await cockpit.session.backend.submit([script(engine, "broken", "echo oops >&2; exit 3", terminal=True)])
        await (
            cockpit.sees("✗ error", "exit 3", "3:59").press("+").sees("5:59").press("-").sees("End the hold").press("y")
        )
        await cockpit.misses("5:59").press("X").sees("Delete job 1 broken?").press("y").sees("No jobs yet")


async def test_hold_release_and_cancel_reach_the_engine(engine: OwnEngine) -> None:
    async with cockpit_on(engine) as cockpit:
        await cockpit.session.backend.submit([script(engine, "patient", "sleep 600", hold=True)])
        await cockpit.sees("◌ queued", "held by").press("H").sees("● running")
        await cockpit.press("x").sees("Stop job 1 patient?").press("y").sees("■ stopped")


async def two_held_jobs(engine: OwnEngine, cockpit: Cockpit) -> None:
    for name in ("one", "two"):
        await cockpit.session.backend.submit([script(engine, name, "sleep 600", hold=True)])
    await cockpit.sees("one", "two")


@pytest.mark.req("UI-29", "TR-04")
async def test_a_killed_engine_is_replaced_under_an_open_cockpit(engine: OwnEngine) -> None:
    async with cockpit_on(engine) as cockpit:
        await two_held_jobs(engine, cockpit)
        await cockpit.press("j").stands_on("two")
        killed = engine.pid
        engine.kill()
        await cockpit.press("?").sees("Keys").press("Esc", "k").stands_on("one").press("j")
        await cockpit.session.backend.submit([script(engine, "three", "sleep 600", hold=True)])
        await cockpit.sees("one", "two", "three").stands_on("two").misses("⚠", "s old")
        assert engine.pid != killed


@pytest.mark.req("UI-29", "TR-04")
async def test_without_an_engine_the_cockpit_shows_its_last_data(engine: OwnEngine) -> None:
    async with cockpit_on(engine) as cockpit:
        await two_held_jobs(engine, cockpit)
        engine.control.stop(jobs=False)
        await cockpit.sees("⚠", "s old", "one", "two")
        await cockpit.press("j").stands_on("two").press("?").sees("Keys").press("Esc", "/").type("one").misses("two")
        await cockpit.press("Enter", "Esc").sees("two")
        engine.control.start()
        await cockpit.misses("⚠").misses("s old").sees("one", "two")


@pytest.mark.req("UI-29", "TR-04")
async def test_a_stopped_engine_shows_the_growing_age_of_the_data(engine: OwnEngine) -> None:
    async with cockpit_on(engine) as cockpit:
        await two_held_jobs(engine, cockpit)
        engine.signal(signal.SIGSTOP)
        try:
            first = await cockpit.sees("⚠").finds(lambda screen: bool(STALE.search(screen)), "an age")
            before = int(STALE.search(first)[1])
            await cockpit.finds(lambda screen: int(STALE.search(screen)[1]) > before, "a growing age")
            await cockpit.press("j").stands_on("two").press("2").sees("NODE").press("1").stands_on("two")
        finally:
            engine.signal(signal.SIGCONT)
        await cockpit.misses("⚠").misses("s old").stands_on("two")


@pytest.mark.req("TR-03", "UI-29")
async def test_trouble_of_an_engine_is_shown_and_recovers_under_an_open_cockpit(engine: OwnEngine) -> None:
    async with cockpit_on(engine) as cockpit:
        await two_held_jobs(engine, cockpit)
        locker = sqlite3.connect(engine.folder / "state/cockpit-cluster/journal.db", isolation_level=None)
        locker.execute("BEGIN IMMEDIATE")
        await cockpit.press("H").sees("⚠ engine in trouble", "is locked by another process. Nothing was accepted.")
        await cockpit.press("j").stands_on("two").press("2").sees("NODE").press("1")
        locker.execute("ROLLBACK")
        locker.close()
        await cockpit.misses("⚠ engine in trouble").press("H").sees("● running")
