"""The background fetching of the queue in order of priority, while its view is shown.

A pause between two fetches grows with the duration of the last one, so that a large cluster is not kept busy by it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from cockpit.model.priority import WeightChanges
    from cockpit.model.view import Priorities
    from cockpit.tui.rows.priority import PriorityRows

LEAST_SECONDS = 0.1
USUAL_SECONDS = 2.0
"""Seconds between two answers; factors change slowly."""
REST = 5
"""The pause between two questions as a multiple of the last answer's duration, so that a long queue is fetched less
often."""


class PriorityFeed:
    """Fetches the priorities into `rows`, then calls `taken`."""

    def __init__(
        self,
        ask: Callable[[WeightChanges | None], Awaitable[Priorities]],
        rows: PriorityRows,
        taken: Callable[[], None],
    ) -> None:
        self._ask = ask
        self._rows = rows
        self._on_rows = taken
        self._asked_again = asyncio.Event()
        self._seconds = 0.0
        """Duration of the last answer in seconds."""

    def wake(self) -> None:
        """Fetch at once, as the view was opened or other weights are tried."""
        self._asked_again.set()

    async def ask(self) -> None:
        """Fetch once; drop the answer if other weights are tried meanwhile. Raises `CockpitError`."""
        tried, began = self._rows.tried, asyncio.get_running_loop().time()
        answer = await self._ask(tried)
        self._seconds = asyncio.get_running_loop().time() - began
        if tried == self._rows.tried:
            self._rows.take(answer)
            self._on_rows()

    async def pause(self) -> None:
        """Wait until the next fetch is due, or `wake` is called."""
        await asyncio.sleep(max(LEAST_SECONDS, min(self._seconds, USUAL_SECONDS)))
        try:
            async with asyncio.timeout(max(USUAL_SECONDS, REST * self._seconds)):
                await self._asked_again.wait()
        except TimeoutError:
            pass
        self._asked_again.clear()
