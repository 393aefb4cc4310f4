"""Watch the disk that holds the staged copies: remove copies that expired, and report when it is too full."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cockpit.engine.ports import Observer
    from cockpit.runtime.containers.staging.staging_cache import StagingCache

LOOK_SECONDS = 30.0


async def watch_disk(cache: StagingCache, observer: Observer, *, every: float = LOOK_SECONDS) -> None:
    """Check the disk every `every` seconds, until cancelled.

    The first removal comes only after one interval: by then the jobs that were recovered have taken up their unfinished
    copies, which would otherwise be removed.
    """
    before: bool | None = None
    while True:
        trouble = await cache.trouble()
        if bool(trouble) != before:
            observer.disk_filled(trouble)
        before = bool(trouble)
        await asyncio.sleep(every)
        await cache.tidy()
