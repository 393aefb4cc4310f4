"""Advances the demo's clock: virtual time follows real time × speed, from event to event, or is paused."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from cockpit.model.ids import Millis
from cockpit.runtime.clock import NANOS_PER_MILLI, boot_nanos

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

    from cockpit.runtime.clock import VirtualClock

SPEEDS = (1.0, 10.0, 60.0, 600.0)
DEFAULT_SPEED = 10.0
"""Speed at which something happens every few seconds on the shipped clusters."""
TICK_SECONDS = 0.05
QUIET_TURNS = 4
LONGEST_TICK_NANOS = 250_000_000
"""Longest real time of a tick. More, as after the machine slept, is skipped: catching up would stall the screen."""


class DemoPace:
    """Advances `clock`.

    `resting`: returns whether all consequences of the present moment have happened. `real`: returns real time in
    nanoseconds.
    """

    def __init__(
        self,
        clock: VirtualClock,
        resting: Callable[[], bool],
        *,
        speed: float = DEFAULT_SPEED,
        real: Callable[[], int] = boot_nanos,
    ) -> None:
        self.paused = False
        self._clock = clock
        self._resting = resting
        self._speed = _check_speed(speed)
        self._real = real
        self._read_at = real()
        self._owed_nanos = 0
        """Nanoseconds of virtual time that are no whole millisecond yet."""

    @property
    def speed(self) -> float:
        """Virtual seconds for each real second."""
        return self._speed

    @speed.setter
    def speed(self, speed: float) -> None:
        self._speed = _check_speed(speed)

    def faster(self) -> None:
        """Take the next higher of `SPEEDS`, if there is one."""
        self._speed = min((each for each in SPEEDS if each > self._speed), default=self._speed)

    def slower(self) -> None:
        self._speed = max((each for each in SPEEDS if each < self._speed), default=self._speed)

    def pause(self) -> None:
        self.paused = True

    def resume(self) -> None:
        self.paused = False

    async def step(self) -> None:
        """Advance to the next moment at which something is due, also while paused."""
        at = self._clock.next_wait()
        if at is not None:
            await self.reach(at)

    async def run(self) -> NoReturn:
        """Follow real time for ever."""
        self._read_at = self._real()
        while True:
            await asyncio.sleep(TICK_SECONDS)
            await self.tick()

    async def tick(self) -> None:
        """Catch up with the real time that passed since the last tick."""
        read = self._real()
        passed, self._read_at = min(read - self._read_at, LONGEST_TICK_NANOS), read
        if not self.paused:
            await self._live(passed)

    async def elapse(self, seconds: float) -> None:
        """Advance at once by what `seconds` of real time would bring; nothing while paused."""
        await self._live(0 if self.paused else int(seconds * 1_000_000_000))

    async def _live(self, nanos: int) -> None:
        # The rest is carried over: dropped at every tick, it would slow a demo at low speed down.
        milliseconds, self._owed_nanos = divmod(self._owed_nanos + int(nanos * self._speed), NANOS_PER_MILLI)
        await self.reach(Millis(self._clock.now() + milliseconds))

    async def reach(self, target: Millis) -> None:
        """Advance to `target` as fast as possible; every task that waits for an earlier moment wakes at that moment."""
        await self._settle()
        # From event to event and not in one leap: what a task does at its moment may set an earlier next one.
        while (at := self._clock.next_wait()) is not None and at <= target:
            self._clock.advance(max(0, at - self._clock.now()))
            await self._settle()
        self._clock.advance(max(0, target - self._clock.now()))

    async def _settle(self) -> None:
        """Wait until `resting` holds for several turns of the event loop in a row.

        One turn is not enough: a few turns pass between an answer and the next step of the task that receives it.
        """
        quiet = 0
        while quiet < QUIET_TURNS:
            await asyncio.sleep(0)
            quiet = quiet + 1 if self._resting() else 0


def _check_speed(speed: float) -> float:
    if not 0 < speed <= 100_000:
        raise ValueError(f"a speed of {speed:g} is not between 0 and 100000")
    return speed
