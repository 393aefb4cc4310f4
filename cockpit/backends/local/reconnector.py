"""Keeping a connection: it is made, watched by a regular question, and made again when it is lost."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Protocol

import msgspec

from cockpit.backends.base import Connection, Phase
from cockpit.backends.local.channel import Channel
from cockpit.backends.local.threads import beside
from cockpit.backends.local.wire import Wire
from cockpit.errors import CockpitError, RequestRefused, Unreachable
from cockpit.model.view import Overview
from cockpit.protocol.messages import NoArgs
from cockpit.runtime.latest import Latest
from cockpit.runtime.tasks import Tasks

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from random import Random

    from cockpit.model.ids import Millis

SILENT = "The engine does not answer: it is stopped or very busy. `cockpit engine restart` starts it anew, no job ends."


class Patience(msgspec.Struct, frozen=True, kw_only=True):
    """How long is waited for what, in seconds."""

    ping: float = 1.0
    """Between two regular questions."""
    silence: float = 2.0
    """No answer to one for this long: what is shown is stale."""
    read: float = 5.0
    act: float = 60.0
    attempt: float = 5.0
    """One try of an act; then it is sent again."""
    first_retry: float = 0.2
    longest_retry: float = 5.0

    def retry(self, attempt: int, random: Random) -> float:
        """Before the next try to connect: twice as long each time, and nobody at the same time as the others."""
        longest = min(self.longest_retry, self.first_retry * 2.0 ** min(attempt, 30))
        return longest * random.uniform(0.5, 1.0)


class Dialer(Protocol):
    """Makes connections; both methods block and raise `CockpitError` where there is none to be had."""

    def reach(self) -> Channel: ...

    def reach_again(self) -> Channel: ...


class Reconnector:
    """Has the connection for short questions, and makes one each for those whose answer may take its time."""

    def __init__(self, dialer: Dialer, now: Callable[[], Millis], random: Random, patience: Patience) -> None:
        self.overview: Latest[Overview | None] = Latest(None)
        self.patience = patience
        self._dialler = dialer
        self._now = now
        self._random = random
        self._phase = Latest((Phase.CONNECTING, ""))
        self._good_at: Millis | None = None
        self._start_failed = ""
        """Why, when it was last tried: that is worth more than that no engine runs."""
        self._wire: Latest[Wire | None] = Latest(None)
        self._wanted = asyncio.Event()
        """Set: somebody would have the engine started. So it is at first."""
        self._tasks = Tasks()
        self._begun = False

    def begin(self) -> None:
        """Needs a running event loop; does nothing the second time."""
        if not self._begun:
            self._begun = True
            self._wanted.set()
            self._tasks.start(self._keep(), "connection to the engine")

    async def close(self) -> None:
        await self._tasks.cancel_all()

    @property
    def connection(self) -> Connection:
        phase, reason = self._phase.value
        return Connection(phase, reason, self._good_at)

    async def connections(self) -> AsyncIterator[Connection]:
        """As it stands, then whenever its phase or reason changes."""
        async for _ in self._phase.follow():
            yield self.connection

    async def wire(self, *, wanted: bool = False) -> Wire:
        """The connection for short questions, once there is one; `wanted`: an engine that was stopped is started."""
        self.begin()
        if wanted and self._wire.value is None:
            self._wanted.set()
        async for wire in self._wire.follow():
            if wire is not None:
                return wire
        raise AssertionError("it follows for ever")

    @asynccontextmanager
    async def own_wire(self) -> AsyncIterator[Wire]:
        """A connection for one question: closing it ends the question. Raises `CockpitError`."""
        await self.wire()
        wire = await self._dial(self._dialler.reach_again)
        running = self._tasks.start(wire.run(), "an answer of its own")
        try:
            yield wire
        finally:
            running.cancel()
            await asyncio.wait([running])

    async def _keep(self) -> None:
        attempt = 0
        while True:
            starting = self._wanted.is_set()
            self._wanted.clear()
            try:
                wire = await self._dial(self._dialler.reach if starting else self._dialler.reach_again)
            except CockpitError as error:
                self._start_failed = str(error) if starting else self._start_failed
                self._fall_stale(self._start_failed or str(error))
                await self._pause(attempt)
                attempt += 1
            else:
                attempt, self._start_failed = 0, ""
                await self._use(wire)

    async def _dial(self, reach: Callable[[], Channel]) -> Wire:
        channel = await beside(reach, Channel.close)
        return await Wire.over(channel, self._heard)

    async def _pause(self, attempt: int) -> None:
        try:
            async with asyncio.timeout(self.patience.retry(attempt, self._random)):
                await self._wanted.wait()
        except TimeoutError:
            pass

    async def _use(self, wire: Wire) -> None:
        pinging = self._tasks.start(self._ping(wire), "pings")
        try:
            self._wire.put(wire)
            self._wanted.clear()
            lost = await wire.run()
            self._fall_stale(str(lost))
        finally:
            self._wire.put(None)
            pinging.cancel()

    async def _ping(self, wire: Wire) -> None:
        loop = asyncio.get_running_loop()
        while True:
            silence = loop.call_later(self.patience.silence, self._fall_stale, SILENT)
            try:
                self.overview.put(msgspec.msgpack.decode(await wire.ask("overview", NoArgs()), type=Overview))
            except RequestRefused:
                pass
            except Unreachable:
                return
            finally:
                silence.cancel()
            self._phase.put((Phase.CONNECTED, ""))
            await asyncio.sleep(self.patience.ping)

    def _heard(self) -> None:
        self._good_at = self._now()

    def _fall_stale(self, reason: str) -> None:
        self._phase.put((Phase.CONNECTING if self._good_at is None else Phase.STALE, reason))
