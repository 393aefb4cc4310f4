"""Whatever is pressed, clicked, pasted or resized, the cockpit goes on, and Escape leads back to the list.

`make soak` does it for longer, also over a real engine: `COCKPIT_SOAK=SEED:EVENTS`.
"""

from __future__ import annotations

import getpass
import os
import tempfile
from pathlib import Path

import pytest

from cockpit.backends.demo.backend import open_demo
from cockpit.cli import read_jobs
from cockpit.runtime.clock import SystemClock
from cockpit.tui.opening import Session
from tests.backends.conftest import end, own_engine
from tests.tui.lab import session_of
from tests.tui.monkey import Monkey

SEED, EVENTS = 1, 200
"""Of the short run, which every test run has."""
LONG = os.environ.get("COCKPIT_SOAK", "")


def seed_and_events(text: str) -> tuple[int, int]:
    seed, _, count = text.partition(":")
    return int(seed), int(count or 3000)


async def a_demo() -> Session:
    return session_of(await open_demo("campus", going=False))


@pytest.mark.req("UI-24", "UI-26", "UI-30")
async def test_a_monkey_at_the_demo_ends_nothing() -> None:
    await Monkey(SEED, EVENTS).play(a_demo)


@pytest.mark.timeout(3600)
@pytest.mark.skipif(not LONG, reason="make soak: it takes some minutes")
async def test_a_long_monkey_at_the_demo_ends_nothing() -> None:
    await Monkey(*seed_and_events(LONG)).play(a_demo)


@pytest.mark.real
@pytest.mark.timeout(3600)
@pytest.mark.skipif(not LONG, reason="make soak: it takes some minutes")
async def test_a_long_monkey_at_a_real_engine_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryDirectory(prefix="cockpit-", dir="/var/tmp") as path:
        engine = own_engine(monkeypatch.setenv, Path(path))
        monkeypatch.setenv("COCKPIT_CLUSTER", "local")
        monkeypatch.chdir(path)
        engine.control.start()

        async def live() -> Session:
            backend = engine.live()
            return Session(
                backend=backend, now=SystemClock().now, user=getpass.getuser(), read_jobs=read_jobs, close=backend.close
            )

        try:
            await Monkey(*seed_and_events(LONG)).play(live)
        finally:
            end(engine)
