"""The progress of copies, and the disk that they are on."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cockpit.model.cluster import Staging
from cockpit.model.ids import Millis
from cockpit.model.staging import Progress
from cockpit.runtime.containers.staging import staging_cache
from cockpit.runtime.containers.staging.staging_cache import CacheStore, Copying, StagingCache, watch_disk

pytestmark = pytest.mark.req("JT-50")
SECOND = 1000


def copying(size: int) -> Copying:
    measured: Any = SimpleNamespace(size=size)
    wanted: Any = SimpleNamespace()
    return Copying(wanted, measured, Millis(0))


def test_the_rate_of_a_copy_is_that_of_the_last_seconds() -> None:
    making, told = copying(1000), []
    making.waiting.append(told.append)
    assert making.progress == Progress(0, 1000, 0)
    making.note_progress(100, Millis(SECOND))
    making.note_progress(400, Millis(2 * SECOND))
    assert told == [Progress(100, 1000, 100), Progress(400, 1000, 200)]
    later = Millis(2 * SECOND + staging_cache._RATE_MS + 1)
    making.note_progress(500, later)
    assert making.progress.rate == 100 * 1000 // (later - 2 * SECOND), "what is older does not count"
    making.note_progress(1500, later)
    assert making.progress.done == 1000
    assert copying(0).progress.total == 1


def cache_with(folder: Path, rules: Staging | None) -> StagingCache:
    clock: Any = SimpleNamespace(now=lambda: Millis(0))
    fetcher: Any = None
    return StagingCache(folder, lambda: rules, clock, fetcher)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> list[float | OSError]:
    """How full the disk is."""
    used: list[float | OSError] = [0.0]

    def percent_used(_store: CacheStore, more: int = 0) -> float:
        if isinstance(used[0], OSError):
            raise used[0]
        return used[0] + more

    monkeypatch.setattr(CacheStore, "percent_used", percent_used)
    return used


@pytest.mark.parametrize(
    ("configured", "used", "said"),
    [
        (True, 80.0, ""),
        (True, 80.4, "{} is filled to 80 %, beyond 80 %"),
        (True, 95.0, "{} is filled to 95 %, beyond 80 %"),
        (False, 95.0, ""),
        (True, OSError("gone"), ""),
    ],
)
async def test_a_full_disk_for_copies_is_reported_where_an_administrator_set_one(
    tmp_path: Path, disk: list[float | OSError], configured: bool, used: float | OSError, said: str
) -> None:
    disk[0] = used
    rules = Staging(folder=str(tmp_path), keep_seconds=9, full_percent=80) if configured else None
    assert await cache_with(tmp_path, rules).trouble() == said.format(tmp_path)


async def test_copies_in_progress_count_as_if_they_were_finished(tmp_path: Path, disk: list[float | OSError]) -> None:
    rules = Staging(folder=str(tmp_path), keep_seconds=9, full_percent=80)
    cache = cache_with(tmp_path, rules)
    cache._making = {"a": copying(50), "b": copying(40)}
    cache._making["a"].note_progress(20, Millis(1))
    disk[0] = 10.0
    await cache._check_disk(cache._store, 80)
    disk[0] = 11.0
    with pytest.raises(staging_cache.DiskFull):
        await cache._check_disk(cache._store, 80)
    assert not await cache.remove("a"), "a copy that is being made is not removed"


async def test_a_disk_is_reported_when_it_fills_and_when_it_is_free_again() -> None:
    troubles = iter(["", "", "full", "fuller", ""])
    tidied: list[int] = []
    reported: list[str] = []

    class Watched:
        async def trouble(self) -> str:
            return next(troubles)

        async def tidy(self) -> None:
            tidied.append(len(reported))

    cache: Any = Watched()
    observer: Any = SimpleNamespace(disk_filled=reported.append)
    with pytest.raises((RuntimeError, StopIteration)):
        await asyncio.wait_for(watch_disk(cache, observer, every=0), 30)
    assert reported == ["", "full", ""]
    assert tidied[0] == 1, "nothing is removed before the first interval"
    assert len(tidied) == 5
