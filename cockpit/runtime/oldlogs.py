"""Delete the logs of ended jobs once they are old."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from cockpit.model.ids import JobId, Millis
from cockpit.runtime.logs import forget_logs

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from pathlib import Path

    from cockpit.runtime.clock import Timekeeper

DAY_MS = 86_400_000


async def tidy_logs(
    logs_folder: Path, living: Callable[[], Collection[JobId]], clock: Timekeeper, keep_seconds: int
) -> None:
    """Once a day, until cancelled, delete the logs of ended jobs that were not written to for `keep_seconds`."""
    while True:
        now, stay = clock.now(), frozenset(living())
        old = await asyncio.to_thread(old_logs, logs_folder, Millis(now - 1000 * keep_seconds))
        await asyncio.to_thread(forget_logs, logs_folder, [job for job in old if job not in stay])
        await clock.wait_until(Millis(now + DAY_MS))


def old_logs(logs_folder: Path, before: Millis) -> list[JobId]:
    """Return the jobs whose logs were not written to since `before`."""
    folders = [each for each in logs_folder.glob("*") if each.name.isdecimal()]
    return [JobId(int(folder.name)) for folder in folders if _written_at(folder) < before]


def _written_at(folder: Path) -> int:
    """Return when any file in the folder was last changed, in milliseconds UTC."""
    try:
        return max(path.stat().st_mtime_ns for path in (folder, *folder.iterdir())) // 1_000_000
    except OSError:  # it is being removed
        return 1 << 62
