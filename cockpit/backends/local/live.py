"""The embedded engine's backend for user interfaces that stay open: it never blocks the event loop, and reconnects.

For one-shot commands there is `backend`, which needs no event loop.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import aclosing, asynccontextmanager, suppress
from itertools import count
from typing import TYPE_CHECKING, TypeVar

import msgspec

from cockpit.backends import base
from cockpit.backends.base import Asking, JobsDelta
from cockpit.backends.drive import drive
from cockpit.backends.local.backend import LocalBackend, request_id
from cockpit.backends.local.reconnector import Patience, Reconnector, beside
from cockpit.backends.local.repeated_request import ANOTHER_ENGINE
from cockpit.backends.local.watching import LiveRows
from cockpit.errors import CockpitError, MayBeAccepted, RequestRefused, Unreachable
from cockpit.model import asking
from cockpit.model.refusal import RefusalKind
from cockpit.protocol.pages import SubscribeArgs, Update

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
    from random import Random

    from cockpit.backends.base import Connection, ShellSession
    from cockpit.backends.local.reconnector import Dialer
    from cockpit.model.ids import Millis
    from cockpit.model.requests import RequestIds
    from cockpit.model.view import Overview

T = TypeVar("T")

FIRST_ROWS = 200
"""Rows of the first piece of the job list: as many as a screen shows at once."""

_ADVICE = "See what became of it: `cockpit jobs --request {}`. Doing the same again here is safe: it is not done twice."

_decode_update = msgspec.msgpack.Decoder(Update).decode


class LiveBackend(Asking, base.LiveBackend):
    """Asks over the engine's socket.

    Connects with the first operation. Reading raises `Unreachable` or `StoreError` after its time limit; `watch_jobs`
    never does.
    """

    def __init__(
        self, dialer: Dialer, now: Callable[[], Millis], random: Random, patience: Patience | None = None
    ) -> None:
        self._dialler = dialer
        self._keeper = Reconnector(dialer, now, random, patience or Patience())
        self._ids: RequestIds | None = None
        self._unanswered: dict[tuple[str, bytes], str] = {}
        """Request ids of changes that may have been accepted although no answer came, by operation and arguments."""

    @property
    def connection(self) -> Connection:
        """Present state of the connection."""
        return self._keeper.connection

    async def connections(self) -> AsyncIterator[Connection]:
        """Yield the present connection state, then each change of its phase or reason. Never ends."""
        self._keeper.begin()
        async for connection in self._keeper.connections():
            yield connection

    async def overviews(self) -> AsyncIterator[Overview]:
        """Yield the overview, then again whenever it changes. Never ends."""
        self._keeper.begin()
        async for overview in self._keeper.overview.follow():
            if overview is not None:
                yield overview

    async def watch_jobs(self, *, anything: bool = False) -> AsyncIterator[JobsDelta]:
        rows = LiveRows()
        patience = self._keeper.patience
        for attempt in count():
            with suppress(CockpitError):
                async with aclosing(self._updates(anything=anything)) as updates:
                    rows.begin()
                    async for update in updates:
                        for delta in rows.take(update):
                            await asyncio.sleep(0)  # let other tasks run between decoding rows and showing them
                            yield delta
            # The first loss is followed at once, since the engine may just have been restarted.
            await asyncio.sleep(patience.first_retry if attempt else 0)

    async def open_shell(self, request: asking.ShellRequest) -> ShellSession:
        return await beside(lambda: self._enter(request), _close_shell)

    async def close(self) -> None:
        await self._keeper.close()

    async def read(self, op: str, args: msgspec.Struct, answer: type[T]) -> T:
        """Ask until an answer comes, however often the connection is lost, within the time limit."""
        async with self._in_time(self._keeper.patience.read):
            while True:
                wire = await self._keeper.wire()
                with suppress(Unreachable):
                    return msgspec.msgpack.decode(await wire.ask(op, args), type=answer)

    async def act(self, op: str, args: msgspec.Struct, answer: type[T]) -> T:
        """Send a change again and again under one request id, until it is answered or the time limit is over.

        1. Choose the request id: the caller's, or the one of an earlier, equal change whose answer never came; the
           engine executes a request id only once.
        2. Send it until an answer comes (`_Sending`).
        3. Without an answer, raise `Unreachable` or `StoreError` if nothing was ever sent, else `MayBeAccepted`.
        """
        act = op, msgspec.msgpack.encode(args)
        request = self._ids.next() if self._ids is not None else self._unanswered.get(act) or request_id()
        words = self._ids.words() if self._ids is not None else b""
        sending = _Sending(self._keeper, op, args, request, words)
        try:
            async with asyncio.timeout(self._keeper.patience.act):
                encoded = await sending.answer()
        except TimeoutError:
            failure = self._keeper.failure(f"The engine has not answered within {self._keeper.patience.act:.0f} s.")
            if not sending.sent:
                raise failure from None
            self._unanswered[act] = request
            advice = _ADVICE.format(request) if self._ids is None else ""
            raise MayBeAccepted(ANOTHER_ENGINE if sending.elsewhere else str(failure), request, advice) from None
        finally:
            if sending.answered:
                self._unanswered.pop(act, None)
        return msgspec.msgpack.decode(encoded, type=answer)

    def identify(self, ids: RequestIds) -> None:
        self._ids = ids

    async def await_answer(self, op: str, args: msgspec.Struct, answer: type[T]) -> T:
        """Ask over a connection of its own, so that a long answer delays no other request."""
        async with self._keeper.own_wire() as wire:
            return msgspec.msgpack.decode(await wire.ask(op, args), type=answer)

    async def read_pieces(self, op: str, args: msgspec.Struct) -> Sequence[bytes | msgspec.Raw]:
        async with self._in_time(self._keeper.patience.read), self._keeper.own_wire() as wire:
            return [piece async for piece in wire.stream(op, args)]

    async def _updates(self, *, anything: bool) -> AsyncGenerator[Update, None]:
        async with self._keeper.own_wire() as wire:
            async for encoded in wire.stream("subscribe", SubscribeArgs(FIRST_ROWS, brief=True, anything=anything)):
                yield _decode_update(encoded)

    def _enter(self, request: asking.ShellRequest) -> ShellSession:
        """Open a shell; this blocks, and so runs in a thread."""
        channel = self._dialler.reach()
        try:
            return drive(LocalBackend(lambda: channel).open_shell(request))
        finally:
            channel.close()

    @asynccontextmanager
    async def _in_time(self, seconds: float) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(seconds):
                yield
        except TimeoutError:
            raise self._keeper.failure(f"The engine has not answered within {seconds:.0f} s.") from None


class _Sending:
    """A change that is sent repeatedly until the engine answers."""

    def __init__(self, keeper: Reconnector, op: str, args: msgspec.Struct, request: str, words: bytes) -> None:
        self._keeper = keeper
        self._op, self._args, self._request, self._words = op, args, request, words
        self.sent = False
        """Whether the engine may have the request."""
        self.answered = False
        """Whether the outcome is known."""
        self.elsewhere = False
        """Whether another engine answers now in the place of the one that may have the request."""
        self._folder = ""
        """State folder of the engine that may have the request."""

    async def answer(self) -> msgspec.Raw:
        """Return the answer of the first attempt that gets one. Raises `RequestRefused`."""
        while True:
            wire = await self._keeper.wire(wanted=True)
            # Only the engine that has the request can tell a repetition; another one would execute it a second time.
            self.elsewhere = self.sent and wire.state_folder != self._folder
            if self.elsewhere:
                await asyncio.sleep(self._keeper.patience.first_retry)
                continue
            # Before the request is written: from then on the engine may have it.
            earlier, self.sent = self.sent, self.sent or not wire.is_lost
            self._folder = wire.state_folder
            with suppress(Unreachable, TimeoutError):
                try:
                    async with asyncio.timeout(self._keeper.patience.attempt):
                        encoded = await wire.ask(self._op, self._args, self._request, self._words)
                except RequestRefused as no:
                    # An engine that is stopping refuses, but an earlier attempt may have been accepted before that.
                    self.answered = not earlier or no.refusal.kind is not RefusalKind.UNAVAILABLE
                    if self.answered:
                        raise
                else:
                    self.answered = True
                    return encoded
            await asyncio.sleep(self._keeper.patience.first_retry)


def _close_shell(shell: ShellSession) -> None:
    """Close a shell that was opened after its caller had gone; closing the control socket ends it."""
    fds = (shell.control_fd, shell.terminal_fd, *(shell.pipe_fds or ()))
    for fd in fds:
        if fd is not None:
            os.close(fd)
