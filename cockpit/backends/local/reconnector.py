"""Keeps a connection to the engine: connects, pings it regularly, and reconnects when it is lost.

`_keep` repeats these steps for ever:

1. Connect. An engine that does not run is started only when an operation asked for that (`wanted`).
2. If that fails, report why, wait (longer each time), and start over.
3. Otherwise use the connection until it is lost (`_use`). A ping each second brings the overview; if no answer comes
   within `Patience.silence`, the data shown counts as stale, but the connection is kept.
"""

from __future__ import annotations

import asyncio
import threading
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Protocol, TypeVar

import msgspec

from cockpit.backends.base import Connection, Phase
from cockpit.backends.local.channel import Channel
from cockpit.backends.local.wire import Wire
from cockpit.errors import CockpitError, RequestRefused, StoreError, Unreachable
from cockpit.model.view import Overview
from cockpit.protocol.messages import NoArgs
from cockpit.runtime.latest import Latest
from cockpit.runtime.tasks import Tasks

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from random import Random

    from cockpit.model.ids import Millis


T = TypeVar("T")


async def beside(call: Callable[[], T], discard: Callable[[T], object]) -> T:
    """Return what `call` returns or raises. If this is cancelled, the call ends by itself, and `discard` gets its
    result.

    Unlike an executor's thread it does not keep the process from ending: a connection to an engine that is stopped
    takes its whole time limit to fail.
    """
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[T] = loop.create_future()

    def settle(result: T | None, error: BaseException | None) -> None:
        if error is not None:
            if not outcome.cancelled():
                outcome.set_exception(error)
        elif outcome.cancelled():
            discard(result)  # type: ignore[arg-type] # without an error there is a result
        else:
            outcome.set_result(result)  # type: ignore[arg-type] # likewise

    def work() -> None:
        result, error = None, None
        try:
            result = call()
        except BaseException as raised:  # noqa: BLE001 - it is raised where it is awaited
            error = raised
        try:
            loop.call_soon_threadsafe(settle, result, error)
        except RuntimeError:  # the loop has ended meanwhile
            if error is None:
                discard(result)  # type: ignore[arg-type] # likewise

    threading.Thread(target=work, daemon=True, name="cockpit-beside").start()
    return await outcome


SILENT = "The engine does not answer: it is stopped or very busy. `cockpit engine restart` restarts it; no job ends."


class Patience(msgspec.Struct, frozen=True, kw_only=True):
    """Time limits and intervals in seconds."""

    ping: float = 1.0
    """Interval between two pings."""
    silence: float = 2.0
    """Time without an answer to a ping after which the data shown counts as stale."""
    read: float = 5.0
    """Time limit of an operation that only reads."""
    act: float = 60.0
    """Time limit of an operation that changes something, for all attempts together."""
    attempt: float = 5.0
    """Time limit of one attempt of a change; then it is sent again."""
    first_retry: float = 0.2
    longest_retry: float = 5.0

    def retry(self, attempt: int, random: Random) -> float:
        """Return the time before the next attempt to connect: it doubles each time, and is random within a factor 2.

        The random factor keeps many clients from connecting at the same moment to an engine that has just restarted.
        """
        # Bounded, since 2.0 ** 1024 is an OverflowError, after an hour without an engine.
        longest = min(self.longest_retry, self.first_retry * 2.0 ** min(attempt, 30))
        return longest * random.uniform(0.5, 1.0)


class Dialer(Protocol):
    """Connects to the engine; both methods block, and raise `CockpitError` when they cannot connect."""

    def reach(self) -> Channel:
        """Connect; start the engine if it does not run."""
        ...

    def reach_again(self) -> Channel:
        """Connect only if the engine runs."""
        ...


class Reconnector:
    """Keeps one connection for short requests, and opens another for each request that may take long."""

    def __init__(self, dialer: Dialer, now: Callable[[], Millis], random: Random, patience: Patience) -> None:
        self.overview: Latest[Overview | None] = Latest(None)
        self.patience = patience
        self._dialler = dialer
        self._now = now
        self._random = random
        self._phase = Latest((Phase.CONNECTING, ""))
        self._good_at: Millis | None = None
        self._start_failed: CockpitError | None = None
        """Why the last attempt to start the engine failed; it says more than that no engine runs."""
        self._wire: Latest[Wire | None] = Latest(None)
        self._engine_wanted = asyncio.Event()
        """Set while an operation wants the engine started; `begin` sets it first."""
        self._tasks = Tasks()
        self._begun = False

    def begin(self) -> None:
        """Start to connect. Needs a running event loop; a second call does nothing."""
        if not self._begun:
            self._begun = True
            self._engine_wanted.set()
            self._tasks.start(self._keep(), "connection to the engine")

    async def close(self) -> None:
        await self._tasks.cancel_all()

    @property
    def connection(self) -> Connection:
        phase, reason = self._phase.value
        return Connection(phase, reason, self._good_at)

    def failure(self, otherwise: str) -> CockpitError:
        """Return the error of an operation that got no answer: why there is no connection, or `otherwise`."""
        kind = StoreError if isinstance(self._start_failed, StoreError) else Unreachable
        return kind(self.connection.reason or otherwise)

    async def connections(self) -> AsyncIterator[Connection]:
        """Yield the present state, then each change of its phase or reason."""
        async for _ in self._phase.follow():
            yield self.connection

    async def wire(self, *, wanted: bool = False) -> Wire:
        """Return the connection for short requests, once it is open; `wanted`: start an engine that was stopped."""
        self.begin()
        if wanted and self._wire.value is None:
            self._engine_wanted.set()
        # None while there is no connection: wait for the next one.
        async for wire in self._wire.follow():
            if wire is not None:
                return wire
        raise AssertionError("it follows for ever")

    @asynccontextmanager
    async def own_wire(self) -> AsyncIterator[Wire]:
        """Open a connection for one request; closing it ends the request. Raises `CockpitError`."""
        # Wait until an engine is there: `reach_again` starts none.
        await self.wire()
        wire = await self._dial(self._dialler.reach_again)
        running = self._tasks.start(wire.run(), "an answer of its own")
        try:
            yield wire
        finally:
            running.cancel()
            await asyncio.wait([running])

    async def _keep(self) -> None:
        """Connect, and connect again after each loss. Never ends."""
        attempt = 0
        while True:
            starting = self._engine_wanted.is_set()
            self._engine_wanted.clear()
            try:
                wire = await self._dial(self._dialler.reach if starting else self._dialler.reach_again)  # step 1
            except CockpitError as error:  # step 2
                self._start_failed = error if starting else self._start_failed
                self._fall_stale(str(self._start_failed or error))
                await self._pause(attempt)
                attempt += 1
            else:
                attempt, self._start_failed = 0, None
                await self._use(wire)  # step 3

    async def _dial(self, reach: Callable[[], Channel]) -> Wire:
        channel = await beside(reach, Channel.close)
        return await Wire.over(channel, self._note_answer)

    async def _pause(self, attempt: int) -> None:
        try:
            async with asyncio.timeout(self.patience.retry(attempt, self._random)):
                await self._engine_wanted.wait()
        except TimeoutError:
            pass

    async def _use(self, wire: Wire) -> None:
        """Offer a connection to the requests until it ends."""
        pinging = self._tasks.start(self._ping(wire), "pings")
        try:
            self._wire.put(wire)
            # The wish is fulfilled: left standing, it would start an engine again that is stopped later.
            self._engine_wanted.clear()
            lost = await wire.run()
            self._fall_stale(str(lost))
        finally:
            self._wire.put(None)
            pinging.cancel()

    async def _ping(self, wire: Wire) -> None:
        """Ask for the overview from time to time, and mark the data as old while no answer comes."""
        loop = asyncio.get_running_loop()
        while True:
            # Not a time limit of the ping: a late answer still counts, and until then the data is marked as old.
            silence = loop.call_later(self.patience.silence, self._fall_stale, SILENT)
            try:
                self.overview.put(msgspec.msgpack.decode(await wire.ask("overview", NoArgs()), type=Overview))
            except RequestRefused:  # the engine answers, and that is what a ping is for
                pass
            # `_use` reports why.
            except Unreachable:
                return
            finally:
                silence.cancel()
            self._phase.put((Phase.CONNECTED, ""))
            await asyncio.sleep(self.patience.ping)

    def _note_answer(self) -> None:
        self._good_at = self._now()

    def _fall_stale(self, reason: str) -> None:
        # Before the first answer there are no data that could be old.
        self._phase.put((Phase.CONNECTING if self._good_at is None else Phase.STALE, reason))
