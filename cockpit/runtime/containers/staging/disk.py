"""Looks after the disk that copies are made on: what is not used any more goes, and who should know hears that it is
too full."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cockpit.engine.ports import Observer
    from cockpit.runtime.containers.staging.staging_cache import StagingCache

LOOK_SECONDS = 30.0


async def watch_disk(depot: StagingCache, observer: Observer, *, every: float = LOOK_SECONDS) -> None:
    """For ever. It tidies up only after a while: until then it is known whose half copies are gone on with."""
    before: bool | None = None
    while True:
        trouble = await depot.trouble()
        if bool(trouble) != before:
            observer.disk_filled(trouble)
        before = bool(trouble)
        await asyncio.sleep(every)
        await depot.tidy()
