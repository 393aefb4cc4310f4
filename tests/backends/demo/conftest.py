"""Demos that live as fast as they can, and their history."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from cockpit.backends.demo.backend import DemoCluster
from cockpit.backends.demo.fixture import read_fixture
from cockpit.model.events import EventRecord
from cockpit.model.ids import JobId, Millis
from cockpit.model.job import Job
from cockpit.runtime.host import Settings

LAB = str(Path(__file__).with_name("lab.toml"))
HOUR = 3_600_000
CHECKED = Settings(check_invariants=True)

Open = Callable[..., Awaitable[DemoCluster]]


@pytest.fixture
async def opened(tmp_path: Path) -> AsyncIterator[Open]:
    """`await opened(fixture, seed)`: a demo at the moment it opens; its clock moves only where a test moves it."""
    demos: list[DemoCluster] = []

    async def open_one(fixture: str = LAB, seed: int = 1, settings: Settings = CHECKED) -> DemoCluster:
        demo = DemoCluster(read_fixture(fixture), seed, tmp_path / f"demo{len(demos)}", settings=settings)
        demos.append(demo)
        await demo.begin(going=False)
        return demo

    yield open_one
    for demo in demos:
        assert demo.host.trouble == ()
        await demo.close()


async def history(demo: DemoCluster) -> list[EventRecord]:
    return await demo.backend.events(limit=10_000)


async def pass_hours(demo: DemoCluster, hours: float) -> None:
    await demo.pace.reach(Millis(demo.now() + int(hours * HOUR)))


async def until(demo: DemoCluster, job: JobId, holds: Callable[[Job], bool]) -> Job:
    """From moment to moment until it holds of the job."""
    for _ in range(10_000):
        found = (await demo.backend.job(job)).job
        if holds(found):
            return found
        await demo.pace.step()
    raise AssertionError(f"it never came true; job {job} is {found.state}")
