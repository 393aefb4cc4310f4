"""A log of 500 MB of a real engine, read through its socket by the widget that shows it."""

from __future__ import annotations

import tempfile
import tracemalloc
from collections.abc import Iterator
from datetime import UTC
from pathlib import Path
from random import Random
from time import perf_counter

import pytest
from msgspec.structs import replace
from textual.app import App, ComposeResult

from cockpit.backends.local.reconnector import Patience
from cockpit.model.asking import LogRequest, LogStream
from cockpit.model.ids import ReplicaId
from cockpit.present.columns import Context
from cockpit.present.log_pages import LogPages
from cockpit.runtime.logs import log_path
from cockpit.tui.log_source import LogSource, Query
from cockpit.tui.widgets.log_view import LogView
from tests.backends.conftest import OwnEngine, own_engine
from tests.bench.figures import Figures
from tests.builders import NOON, a_spec
from tests.tui.test_table import dark_theme

pytestmark = pytest.mark.real

BYTES, JUMPS, ROUNDS = 500_000_000, 100, 5
NEEDLE = b"Needle in the haystack\n"


@pytest.fixture(scope="module")
def engine() -> Iterator[OwnEngine]:
    with tempfile.TemporaryDirectory(prefix="cockpit-", dir="/var/tmp") as folder, pytest.MonkeyPatch.context() as env:
        engine = own_engine(env.setenv, Path(folder))
        yield engine
        engine.kill()


class Shown(App[None]):
    def compose(self) -> ComposeResult:
        yield LogView(dark_theme, lambda: Context(now=NOON, zone=UTC))


def write_log(path: Path) -> None:
    lines = b"".join(b"step %07d loss=0.4321 lr=0.001 tokens/s=1234 and some more words\n" % n for n in range(100_000))
    with path.open("wb") as file:
        while file.tell() < BYTES:
            file.write(lines)
        file.write(NEEDLE)


async def test_a_large_log(figure: Figures, engine: OwnEngine) -> None:
    backend, app = engine.live(Patience()), Shown()
    spec = replace(a_spec("printing"), command="true", output=str(engine.folder))
    (job,) = await backend.submit([spec])
    await backend.wait(job)
    write_log(log_path(engine.places.state_folder / "logs", ReplicaId(job, 1, 0), LogStream.STDOUT))
    async with app.run_test(size=(120, 40)) as pilot:
        view = app.query_one(LogView)

        async def shown() -> None:
            while not view.is_settled or not view.rows:
                await pilot.pause(0.001)

        opened = []
        for _ in range(ROUNDS):
            source = LogSource(backend, LogRequest(job=job))
            began = perf_counter()
            view.open(source)
            await source.open()
            view.move(LogPages.last_page)
            await shown()
            opened.append(perf_counter() - began)
        figure("UI-14", "a log of 500 MB, opened at its end", 1000 * sorted(opened)[ROUNDS // 2])
        random = Random(7)

        async def jump() -> float:
            began = perf_counter()
            view.go_to(random.randrange(BYTES))
            await shown()
            return perf_counter() - began

        jumps = [await jump() for _ in range(JUMPS)]
        figure("UI-14", "a log of 500 MB, a jump anywhere, p95", 1000 * sorted(jumps)[95 * JUMPS // 100])
        tracemalloc.start()  # apart, since it makes everything several times as slow
        for _ in range(JUMPS):
            await jump()
        figure("UI-14", "a log of 500 MB, memory for reading it", tracemalloc.get_traced_memory()[1] / (1 << 20))
        tracemalloc.stop()
        size = source.blocks.size
        began = perf_counter()
        assert await source.find(Query("needle IN"), 0, size, lambda _: None) == (size - len(NEEDLE), 9)
        figure("UI-14", "a log of 500 MB, searched through", size / (perf_counter() - began) / 1e6)
    await backend.close()
