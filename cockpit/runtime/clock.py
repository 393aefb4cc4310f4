"""The clocks: the only module that reads the time.

Two clocks implement `engine.ports.Clock`: `SystemClock` for a real cluster, `VirtualClock` for tests, demo and replay.
Both can also be waited for (`Timekeeper`), so the host loop is the same over either.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Protocol

from cockpit.model.ids import Millis

if TYPE_CHECKING:
    import asyncio

NANOS_PER_MILLI = 1_000_000
SLEW_DIVISOR = 1000
"""The clock runs faster or slower than real time by at most one part in this many, to approach the wall clock."""
EPOCH = Millis(0)
LONGEST_NAP_SECONDS = 15.0
"""Longest single sleep. asyncio's clock does not run while the machine is suspended, so long waits are divided."""


class Timekeeper(Protocol):
    """A clock that can be waited for."""

    def now(self) -> Millis: ...

    def offset_millis(self) -> int:
        """Return how far the machine's clock is ahead of this one; negative: behind. The difference is large after
        a jump."""
        ...

    async def wait_until(self, at: Millis) -> None:
        """Return as soon as `now() >= at`."""
        ...


def wall_nanos() -> int:
    """Return the machine's wall clock, in nanoseconds UTC. It may jump in either direction at any moment."""
    return time.time_ns()  # noqa: TID251 - this module is the one that may


def boot_nanos() -> int:
    """Return the nanoseconds since boot, including suspended time. This clock never jumps and never decreases."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def running_nanos() -> int:
    """Return nanoseconds that pass only while the machine runs: not while it is suspended, and without any jump."""
    return time.monotonic_ns()


class SystemClock:
    """The time of day, without the jumps of the machine's wall clock; it never goes back.

    Progress comes from the boot clock, which counts suspended time too and which cannot be set. When the wall clock
    disagrees (an NTP step, an administrator, a resumed virtual machine), this clock does not jump after it: it runs
    faster or slower by one part in a thousand until they agree. So a hold of four hours is never cut short by more
    than 14 seconds, whatever happens to the wall clock, and two readings in a row never decrease. An hour of
    disagreement lasts until the process ends; `offset_millis` returns the difference.

    `not_before` is the last moment in the journal: a new process begins no earlier than the old one ended.
    Not for use from several threads.
    """

    def __init__(
        self,
        not_before: Millis = EPOCH,
        *,
        wall: Callable[[], int] = wall_nanos,
        progress: Callable[[], int] = boot_nanos,
    ) -> None:
        self._wall = wall
        self._progress = progress
        self._progress_read = progress()
        self._nanos = max(wall(), not_before * NANOS_PER_MILLI)

    def now(self) -> Millis:
        read = self._progress()
        passed = read - self._progress_read
        self._progress_read = read
        reached = self._nanos + passed
        # the correction is at most a thousandth of the time that has passed, so the result never decreases
        leeway = passed // SLEW_DIVISOR
        self._nanos = reached + min(max(self._wall() - reached, -leeway), leeway)
        return Millis(self._nanos // NANOS_PER_MILLI)

    def offset_millis(self) -> int:
        return self._wall() // NANOS_PER_MILLI - self.now()

    async def wait_until(self, at: Millis) -> None:
        import asyncio

        while (left := at - self.now()) > 0:  # noqa: ASYNC110 - only the passing of time ends this wait
            await asyncio.sleep(min(left / 1000, LONGEST_NAP_SECONDS))


class VirtualClock:
    """A clock that moves only by `advance`. Waiters wake in the order of their moments, then of their calls."""

    def __init__(self, start: Millis = EPOCH) -> None:
        self._now = start
        self._waiters: list[tuple[Millis, int, asyncio.Future[None]]] = []
        self._arrivals = 0

    def now(self) -> Millis:
        return self._now

    def offset_millis(self) -> int:
        return 0

    def advance(self, milliseconds: int) -> None:
        """Move forward, and wake all waiters whose moment has come.

        All of them see the new time. To let each see its own moment, advance to `next_wait` repeatedly.
        """
        if milliseconds < 0:
            raise ValueError("time does not go back")
        self._now = Millis(self._now + milliseconds)
        while self._waiters and self._waiters[0][0] <= self._now:
            _, _, waiter = heappop(self._waiters)
            # It may have been cancelled while it waited.
            if not waiter.done():
                waiter.set_result(None)

    def next_wait(self) -> Millis | None:
        """Return the earliest moment that a waiter waits for; None if there is no waiter."""
        while self._waiters and self._waiters[0][2].done():
            heappop(self._waiters)
        return self._waiters[0][0] if self._waiters else None

    async def wait_until(self, at: Millis) -> None:
        if at <= self._now:
            return
        import asyncio

        self._arrivals += 1
        waiter = asyncio.get_running_loop().create_future()
        # the number decides between equal moments: futures cannot be compared
        heappush(self._waiters, (at, self._arrivals, waiter))
        await waiter


class Deadline:
    """A time limit for running external programs, independent of the time of day."""

    def __init__(self, seconds: float) -> None:
        self._ends = time.monotonic() + seconds

    @property
    def seconds_left(self) -> float:
        return max(0.0, self._ends - time.monotonic())

    @property
    def over(self) -> bool:
        return self.seconds_left == 0.0
