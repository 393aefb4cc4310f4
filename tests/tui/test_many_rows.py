"""Why very many rows cost little: what is not seen is not drawn, what does not differ is not written, and nobody waits
for all of them. How long it takes is measured by `make bench`; here is that it cannot take longer.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import asynccontextmanager
from time import perf_counter
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from msgspec.structs import replace

from cockpit.backends.base import JobsDelta
from cockpit.errors import Unreachable
from cockpit.model.ids import JobId, Millis
from cockpit.tui.opening import Session
from cockpit.tui.rows.lists import JobRows
from cockpit.tui.widgets.table import CURSOR_SIGN, MOST_DRAWN
from tests.doubles.feeder import Wish
from tests.doubles.fence import FencedTerminal
from tests.doubles.memory_backend import MemoryBackend
from tests.doubles.samples import NOW, failed_row, overview, queued_row
from tests.e2e.cockpit_user import ROOT
from tests.tui.driver import at_the_cockpit

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from cockpit.model.view import NodeRow, Overview
    from cockpit.present.spans import Line
    from tests.tui.driver import Cockpit

MANY = 5_000
VISIBLE = 40
"""More rows than the screen has lines."""
FIRST_PAGE = 50
CELL_BYTES = 150
"""A place, a colour or two, and what a cell can hold."""


class Cluster(MemoryBackend):
    """Of many rows, of which the first come at once and the rest when it is told so."""

    def __init__(self, *, answers: bool = True) -> None:
        super().__init__()
        self.rest = asyncio.Event()
        self.changes: asyncio.Queue[JobsDelta] = asyncio.Queue()
        self.glance = overview()
        self._answers = answers
        self.rows = [queued_row(number, name=f"train-{number}") for number in range(1, MANY + 1)]

    async def watch_jobs(self, *, anything: bool = False) -> AsyncIterator[JobsDelta]:
        yield JobsDelta(tuple(self.rows[:FIRST_PAGE]), (), 0, loaded=False)
        await self.rest.wait()
        yield JobsDelta(tuple(self.rows[FIRST_PAGE:]), (), 0)
        while True:
            yield await self.changes.get()

    async def overview(self) -> Overview:
        return await self._answer(self.glance)

    async def nodes(self) -> list[NodeRow]:
        return await self._answer([])

    async def _answer(self, answer: Any) -> Any:
        if not self._answers:
            await asyncio.Event().wait()
        return answer


class Silent(Cluster):
    """It answers nothing."""

    def __init__(self) -> None:
        super().__init__(answers=False)

    async def watch_jobs(self, *, anything: bool = False) -> AsyncIterator[JobsDelta]:
        await asyncio.Event().wait()
        yield JobsDelta((), (), 0)


class OutOfReach(Cluster):
    """It cannot be reached."""

    async def watch_jobs(self, *, anything: bool = False) -> AsyncIterator[JobsDelta]:
        raise Unreachable("Slurm does not answer scontrol: connect\x1b[31m failure.\nIs slurmctld running?")
        yield JobsDelta((), (), 0)


@asynccontextmanager
async def looking_at(cluster: Cluster, now: Callable[[], Millis] = lambda: NOW) -> AsyncIterator[Cockpit]:
    async def close() -> None:
        pass

    session = Session(backend=cluster, now=now, user="ann", read_jobs=lambda *_: [], close=close)
    async with at_the_cockpit(session, usual_order=True) as cockpit:
        yield cockpit


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[JobId]:
    """Every row whose cells are made, as often as that is done."""
    made: list[JobId] = []
    cells = JobRows.cells

    def noted(self: JobRows, row_id: JobId, width: int) -> Sequence[Line]:
        made.append(row_id)
        return cells(self, row_id, width)

    monkeypatch.setattr(JobRows, "cells", noted)
    return made


@pytest.mark.req("UI-60", "PF-11")
async def test_the_first_rows_are_shown_before_all_else() -> None:
    """Neither for the rest of them nor for any other answer."""
    async with looking_at(Cluster(answers=False)) as cockpit:
        await cockpit.sees("train-1 ", "train-20 ").stands_on("train-1")


@pytest.mark.req("UI-60", "PF-12", "PF-18")
async def test_a_first_page_is_shown_and_the_rest_is_added_below() -> None:
    cluster = Cluster()
    async with looking_at(cluster) as cockpit:
        await cockpit.sees("train-1 ").press("j").stands_on("train-2")
        await cockpit.press("G").stands_on(f"train-{FIRST_PAGE}").press("g", "j")
        cluster.rest.set()
        await cockpit.stands_on("train-2").press("G").stands_on(f"train-{MANY}")


@pytest.mark.req("UI-13")
@pytest.mark.parametrize(("keys", "under_cursor"), [((), "broken-run"), (("j", "k"), "train-1")])
async def test_what_comes_last_leads_the_list_unless_the_user_has_moved_the_cursor(
    keys: tuple[str, ...], under_cursor: str
) -> None:
    cluster = Cluster()
    cluster.rows[-1] = failed_row(MANY, user="ann", name="broken-run")
    async with looking_at(cluster) as cockpit:
        await cockpit.sees("train-1 ").press(*keys)
        cluster.rest.set()
        await cockpit.stands_on(under_cursor).press("g").stands_on("broken-run")


@pytest.mark.req("UI-27")
async def test_loading_very_many_rows_shows_the_progress_and_does_not_block() -> None:
    cluster = Cluster()
    cluster.glance = replace(overview(), jobs_by_state={"queued": MANY})
    async with looking_at(cluster) as cockpit:
        await cockpit.sees(f"loading, {FIRST_PAGE} of 5 000 jobs so far").press("2").sees("USAGE").press("1")
        cluster.rest.set()
        await cockpit.misses("loading").sees("train-1 ")


@pytest.mark.req("UI-27", "UI-29")
async def test_the_time_waited_for_the_first_row_is_shown() -> None:
    clock = [NOW]
    async with looking_at(Silent(), lambda: Millis(clock[0])) as cockpit:
        assert "tries again" not in await cockpit.sees("connecting …")
        clock[0] += 75_000
        await cockpit.sees("connecting … 1 min 15 s, tries again by itself")


@pytest.mark.req("UI-27", "UI-29", "SL-01")
async def test_a_view_without_rows_says_why_the_cluster_cannot_be_reached() -> None:
    async with looking_at(OutOfReach(answers=False)) as cockpit:
        await cockpit.sees("connecting …", "scontrol: connect\\x1b[31m failure.", "Is slurmctld running?")


@pytest.mark.req("UI-60", "PF-12")
async def test_only_rows_that_are_seen_are_drawn_however_many_there_are(drawn: list[JobId]) -> None:
    cluster = Cluster()
    cluster.rest.set()
    async with looking_at(cluster) as cockpit:
        await cockpit.press("G").stands_on(f"train-{MANY}")
        assert len(set(drawn)) < 3 * VISIBLE


@pytest.mark.req("UI-61", "PF-13")
async def test_a_key_draws_no_row_again_but_the_cursors_and_what_scrolls_in(drawn: list[JobId]) -> None:
    cluster = Cluster()
    cluster.rest.set()
    async with looking_at(cluster) as cockpit:
        await cockpit.press("g").stands_on("train-1").sees("train-20 ")
        table = cockpit.app.main_screen.tables.table
        table.tick = lambda: None  # time passes too, and draws what tells it
        drawn.clear()
        await cockpit.press("j", "j", "k").stands_on("train-2")
        assert set(drawn) <= {1, 2, 3}, "with the panel about it, for the same moment"


@pytest.mark.req("UI-61", "PF-13")
async def test_rows_that_change_out_of_sight_are_not_drawn(drawn: list[JobId]) -> None:
    cluster = Cluster()
    cluster.rest.set()
    async with looking_at(cluster) as cockpit:
        await cockpit.press("g").stands_on("train-1").sees("train-20 ")
        cockpit.app.main_screen.tables.table.tick = lambda: None
        drawn.clear()
        changed = [msgspec.structs.replace(row, version=2, name=f"new-{row.id}") for row in cluster.rows]
        cluster.changes.put_nowait(JobsDelta((*changed[1000:1100], changed[4]), (), 2))
        await cockpit.sees("new-5 ")
        assert {5} <= set(drawn) <= {1, 5}, "and the cursor's row, with its panel"


@pytest.mark.req("PF-16")
async def test_drawn_rows_are_dropped_from_the_cache_again() -> None:
    cluster = Cluster()
    cluster.rest.set()
    async with looking_at(cluster) as cockpit:
        await cockpit.press("g").stands_on("train-1")
        table = cockpit.app.main_screen.tables.jobs
        for row in cluster.rows:
            table._cells(row.id)
        assert len(table._drawn) <= MOST_DRAWN


@pytest.mark.req("PF-14", "UI-62")
def test_cells_that_change_are_written_and_little_else() -> None:
    """Ten of them every two seconds; each is bright at first, and then no more."""
    wish = Wish(rows=200, cells=10, between=2)
    module = ["tests.doubles.feeder", msgspec.json.encode(wish).decode()]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    with FencedTerminal(module, env, cwd=str(ROOT)) as terminal:
        terminal.paint_after(0, CURSOR_SIGN)
        terminal.do("\x1b[24~")
        terminal.quiet(0.4)
        before = perf_counter()
        terminal.paint_after(before, "")
        terminal.quiet(0.3)
        assert 0 < len(terminal.written_since(before)) < 2 * 10 * CELL_BYTES
