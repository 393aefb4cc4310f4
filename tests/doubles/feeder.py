"""The real app in this process's terminal over a made-up cluster of any length, of which as much changes as is asked
for: `python -m tests.doubles.feeder '{"rows": 100000, "changing": 1000}'`. Measures how long the loop stood still.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from random import Random
from time import perf_counter
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from cockpit.backends.base import JobsDelta
from cockpit.model.jobrow import JobRow
from cockpit.model.reasons import NotEnoughFree, Resource
from cockpit.model.view import Overview
from cockpit.runtime.tasks import Tasks
from cockpit.tui.opening import Session, run_cockpit
from tests.doubles.memory_backend import MemoryBackend
from tests.doubles.samples import NOW, queued_row

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from cockpit.backends.base import Backend
    from cockpit.model.ids import Millis

VISIBLE = 28
"""Rows that a screen of forty lines surely shows."""
LOOK_SECONDS = 0.002
PAGE = 1_000


class Wish(msgspec.Struct, forbid_unknown_fields=True):
    """What to show, and what shall happen to it each second, or as often as that is wished."""

    rows: int = 1_000
    changing: int = 0
    """Rows anywhere."""
    cells: int = 0
    """Cells of the first rows."""
    changes: int = 1_000_000
    """So often; then nothing changes any more, and the report says `over`."""
    between: float = 1.0
    """Seconds from one change to the next."""
    engine: bool = False
    """Show this user's own engine instead."""
    kubeconfig: str = ""
    """Show the cluster of this file's context `fake` instead."""
    report: str = ""
    """A file for what was measured: `stall` and the milliseconds of the longest one since the last such line, once a
    second; `given` and `taken` with the moments before the first and after the last of the first rows."""

    def note(self, name: str, value: float) -> None:
        if self.report:
            with Path(self.report).open("a") as file:
                file.write(f"{name} {value}\n")


class FeedingBackend(MemoryBackend):
    """Every change follows from the seed."""

    def __init__(self, wish: Wish) -> None:
        super().__init__()
        self._wish = wish
        self._chance = Random(7)
        self.job_rows = [
            queued_row(number, name=f"train-bert-{number % 977}", user=f"user{number % 61}", card_milli=4000)
            for number in range(1, wish.rows + 1)
        ]
        self.glance = Overview("feeder", {"queued": wish.rows}, 0, 1, 64, 0, 1 << 20, 0, 288_000, 0)

    async def watch_jobs(self, *, anything: bool = False) -> AsyncIterator[JobsDelta]:
        self._wish.note("given", perf_counter())
        for start in range(0, len(self.job_rows), PAGE):
            yield JobsDelta(tuple(self.job_rows[start : start + PAGE]), (), 0, loaded=False)
            await asyncio.sleep(0)
        yield JobsDelta((), (), 0)
        self._wish.note("taken", perf_counter())
        for _ in range(self._wish.changes):
            await asyncio.sleep(self._wish.between)
            changed = self._changed()
            if changed:
                yield JobsDelta(changed, (), 0)
        self._wish.note("over", perf_counter())
        await asyncio.Event().wait()

    def _changed(self) -> tuple[JobRow, ...]:
        places = [self._chance.randrange(len(self.job_rows)) for _ in range(self._wish.changing)]
        seen = self._chance.sample([(row, cell) for row in range(VISIBLE) for cell in range(4)], self._wish.cells)
        for place, cell in [*((place, 3) for place in places), *seen]:
            self.job_rows[place] = self._with_another(self.job_rows[place], cell)
        return tuple({place: self.job_rows[place] for place in (*places, *(row for row, _ in seen))}.values())

    def _with_another(self, row: JobRow, cell: int) -> JobRow:
        number = self._chance.randrange(2, 1_000)
        short = NotEnoughFree(Resource.CARDS, number, ("A100",), 1, 0, ())
        changes: list[dict[str, object]] = [
            {"name": f"train-bert-{number}"},
            {"user": f"user{number}"},
            {"card_milli": number * 1000},
            {"reason": short},
        ]
        return replace(row, version=row.version + 1, **changes[cell])


async def look_for_stalls(wish: Wish) -> None:
    """How late this loop comes when it wants to come every two milliseconds."""
    longest, written = 0.0, perf_counter()
    while True:
        before = perf_counter()
        await asyncio.sleep(LOOK_SECONDS)
        longest = max(longest, perf_counter() - before - LOOK_SECONDS)
        if perf_counter() - written > 1:
            wish.note("stall", longest * 1000)
            longest, written = 0.0, perf_counter()


def main() -> int:
    wish = msgspec.json.decode(sys.argv[1], type=Wish)
    tasks = Tasks()

    async def session() -> Session:
        if wish.report:
            tasks.start(look_for_stalls(wish), "looks for stalls")
        backend, now = _backend(wish)
        return Session(backend=backend, now=now, user="ann", read_jobs=lambda *_: [], close=tasks.cancel_all)

    return run_cockpit(session, os.environ)


def _backend(wish: Wish) -> tuple[Backend, Callable[[], Millis]]:
    from cockpit.runtime.clock import SystemClock

    if wish.kubeconfig:
        from cockpit.backends.kubernetes.opening import open_context

        return open_context("fake", {"KUBECONFIG": wish.kubeconfig}), SystemClock().now
    if not wish.engine:
        return FeedingBackend(wish), lambda: NOW
    from cockpit.clusters.opening import live

    return live(None), SystemClock().now


if __name__ == "__main__":
    sys.exit(main())
