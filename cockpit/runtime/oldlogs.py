"""Logs that nobody deletes: they go by themselves once they are old."""

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
    """For ever, once a day: remove the logs of ended jobs that were last written to so long ago."""
    while True:
        now, stay = clock.now(), frozenset(living())
        old = await asyncio.to_thread(old_logs, logs_folder, Millis(now - 1000 * keep_seconds))
        await asyncio.to_thread(forget_logs, logs_folder, [job for job in old if job not in stay])
        await clock.wait_until(Millis(now + DAY_MS))


def old_logs(logs_folder: Path, before: Millis) -> list[JobId]:
    """The jobs that have logs there, none of which was written to since that moment."""
    folders = [each for each in logs_folder.glob("*") if each.name.isdecimal()]
    return [JobId(int(folder.name)) for folder in folders if _written_at(folder) < before]


def _written_at(folder: Path) -> int:
    """When anything in it was last changed, in milliseconds UTC."""
    try:
        return max(path.stat().st_mtime_ns for path in (folder, *folder.iterdir())) // 1_000_000
    except OSError:  # it is being removed
        return 1 << 62
