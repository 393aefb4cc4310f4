"""Ends the wait for an accounting database that does not answer.

sacct and sacctmgr try for minutes to reach slurmdbd, and the pages that use them ask for several lists one after the
other. One wait of a few seconds is enough for all of them:

1. A command gets `QUIET_SECONDS` by itself. A database that answers slowly is not disturbed.
2. Then the smallest question is put to the database beside it. If that is answered, the command goes on.
3. If it is not answered within `PROBE_SECONDS`, the database counts as away: the command ends with an error.
4. For `AWAY_MS` no command for the database is run; each raises the error at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any, Final, TypeVar

from cockpit.backends.slurm.wire.calls import AnswerLost, Commands
from cockpit.errors import CockpitError, Unreachable
from cockpit.model.ids import Millis

T = TypeVar("T")
PROBE: Final = ("sacctmgr", "-n", "-P", "--readonly", "list", "cluster", "format=cluster")
QUIET_SECONDS: Final = 2.0
PROBE_SECONDS: Final = 3.0
AWAY_MS: Final = 60_000


class DatabaseWatch:
    """Decides whether the accounting database of one cluster answers."""

    def __init__(self, commands: Commands, now: Callable[[], Millis], random: Random) -> None:
        self._commands, self._now, self._random = commands, now, random
        self._away_until = 0.0
        self._probing = asyncio.Lock()
        self.quiet_seconds = QUIET_SECONDS

    async def answered(self, asking: Coroutine[Any, Any, T]) -> T:
        """Return the answer of a command. Raises `Unreachable` if the database is away."""
        if self._now() < self._away_until:
            asking.close()
            raise self._away()
        try:
            async with asyncio.TaskGroup() as tasks:
                watch = tasks.create_task(self._watch())  # its error ends the command
                answer = await asking
                watch.cancel()
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from None
        return answer

    async def _watch(self) -> None:
        """Raise `Unreachable` when the database is found to be away; end when it is there."""
        await asyncio.sleep(self.quiet_seconds)  # step 1
        async with self._probing:
            if self._now() >= self._away_until and not await self._is_there():  # steps 2 and 3
                self._away_until = self._now() + AWAY_MS * self._random.uniform(0.5, 1.0)  # step 4
        if self._now() < self._away_until:
            raise self._away()

    async def _is_there(self) -> bool:
        try:
            await self._commands.run(PROBE, seconds=PROBE_SECONDS)
        except AnswerLost:
            return False
        except CockpitError:
            pass  # what keeps the probe from running says nothing about the database
        return True

    def _away(self) -> Unreachable:
        seconds = self.quiet_seconds + PROBE_SECONDS
        return Unreachable(f"the accounting database (slurmdbd) has not answered within {seconds:g} s.")
