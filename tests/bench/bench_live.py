"""A hundred thousand jobs of a real engine, through its socket."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from time import perf_counter

import pytest

from cockpit.backends.local.reconnector import Patience
from tests.backends.conftest import OwnEngine, own_engine
from tests.bench.figures import Figures
from tests.builders import a_spec

pytestmark = pytest.mark.real

JOBS, BATCH, ROUNDS = 100_000, 2_000, 3


@pytest.fixture(scope="module")
def engine() -> Iterator[OwnEngine]:
    with tempfile.TemporaryDirectory(prefix="cockpit-", dir="/var/tmp") as folder, pytest.MonkeyPatch.context() as env:
        engine = own_engine(env.setenv, Path(folder))
        yield engine
        engine.kill()


async def test_connect_to_rows(figure: Figures, engine: OwnEngine) -> None:
    submitting = engine.live(Patience())
    for first in range(0, JOBS, BATCH):
        await submitting.submit([a_spec(f"job-{number}", hold=True) for number in range(first, first + BATCH)])
    await submitting.close()
    visible, loaded = zip(*[await connect(engine) for _ in range(ROUNDS)], strict=True)
    figure("PF-18", "connect to rows visible", median(visible))
    figure("PF-18", "connect to all of 100 000 jobs", median(loaded))


async def connect(engine: OwnEngine) -> tuple[float, float]:
    """Seconds to the first rows, and to all."""
    live = engine.live(Patience())
    began, visible, rows = perf_counter(), 0.0, 0
    async for delta in live.watch_jobs():
        visible = visible or perf_counter() - began
        rows += len(delta.changed)
        if delta.loaded:
            break
    loaded = perf_counter() - began
    await live.close()
    assert rows == JOBS
    return visible, loaded
