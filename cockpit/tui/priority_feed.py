"""Asks for the queue in its order while somebody looks at it: in the background, and never faster than the cluster
counts."""

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
"""Between two answers while nothing is asked for; factors change slowly."""
REST = 5
"""Times as long as an answer took: a long queue is asked for less often."""


class PriorityFeed:
    """`taken` is told of each answer, after the rows have it."""

    def __init__(
        self,
        ask: Callable[[WeightChanges | None], Awaitable[Priorities]],
        rows: PriorityRows,
        taken: Callable[[], None],
    ) -> None:
        self._ask = ask
        self._rows = rows
        self._taken = taken
        self._wanted = asyncio.Event()
        self._seconds = 0.0
        """What the last answer took."""

    def wake(self) -> None:
        """Other weights, or the view has just been opened."""
        self._wanted.set()

    async def ask(self) -> None:
        """Once. An answer to what is not asked any more is dropped. Raises `CockpitError`."""
        tried, began = self._rows.tried, asyncio.get_running_loop().time()
        answer = await self._ask(tried)
        self._seconds = asyncio.get_running_loop().time() - began
        if tried == self._rows.tried:
            self._rows.take(answer)
            self._taken()

    async def pause(self) -> None:
        """Until it is worth asking again."""
        await asyncio.sleep(max(LEAST_SECONDS, min(self._seconds, USUAL_SECONDS)))
        try:
            async with asyncio.timeout(max(USUAL_SECONDS, REST * self._seconds)):
                await self._wanted.wait()
        except TimeoutError:
            pass
        self._wanted.clear()
