from __future__ import annotations

import asyncio
import os
from pathlib import Path

from cockpit.model.ids import JobId, Millis
from cockpit.runtime.clock import VirtualClock
from cockpit.runtime.logs import DAY_MS, old_logs, tidy_logs
from tests.runtime.host_world import eventually

YEAR_SECONDS = 365 * 86_400
NOW = Millis(2_000_000_000_000)


def logs_of(folder: Path, job: int, *days_ago: int) -> None:
    """One log for each of these ages."""
    own = folder / str(job)
    own.mkdir(parents=True)
    for attempt, days in enumerate(days_ago, 1):
        (own / f"{attempt}.0.stdout").write_text("said\n")
        at = NOW / 1000 - 86_400 * days
        os.utime(own / f"{attempt}.0.stdout", (at, at))
    os.utime(own, (0, 0))


def those_left(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


def test_a_log_last_written_long_ago_is_old(tmp_path: Path) -> None:
    logs_of(tmp_path, 1, 400, 390)
    logs_of(tmp_path, 2, 400, 3)
    (tmp_path / "notes").mkdir()
    assert old_logs(tmp_path, Millis(NOW - 1000 * YEAR_SECONDS)) == [1]
    assert old_logs(tmp_path / "none", NOW) == []


async def test_old_logs_are_removed_daily_except_those_of_current_jobs(tmp_path: Path) -> None:
    logs_of(tmp_path, 1, 400)
    logs_of(tmp_path, 2, 400)
    logs_of(tmp_path, 3, 364)
    clock = VirtualClock(NOW)
    async with asyncio.TaskGroup() as group:
        tidying = group.create_task(tidy_logs(tmp_path, lambda: [JobId(2)], clock, YEAR_SECONDS))
        await eventually(lambda: clock.next_wait() is not None)
        assert those_left(tmp_path) == ["2", "3"]
        clock.advance(2 * DAY_MS)
        await eventually(lambda: those_left(tmp_path) == ["2"])
        tidying.cancel()
