"""The backend of the embedded engine for one-shot commands, over its socket.

Every method blocks instead of suspending, so that no event loop is needed: see `backends.drive`.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TypeVar

import msgspec

from cockpit.backends.base import Asking
from cockpit.backends.local.channel import ConnectionLost
from cockpit.late import LazyModule

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from cockpit.backends.base import JobsDelta, ShellSession
    from cockpit.backends.local.channel import Channel
    from cockpit.model import asking
    from cockpit.model.requests import RequestIds
    from cockpit.protocol import messages, pages
else:
    asking = LazyModule("cockpit.model.asking")
    messages, pages = LazyModule("cockpit.protocol.messages"), LazyModule("cockpit.protocol.pages")

T = TypeVar("T")


class LocalBackend(Asking):
    """Asks over a channel that `connect` opens.

    A read whose connection breaks is repeated once over a new connection. A change is sent until it is answered, under
    one request id, so that it takes effect only once (see `repeated_request`).
    """

    def __init__(
        self,
        connect: Callable[[], Channel],
        again: Callable[[], Channel] | None = None,
        patience: Callable[[], float] | None = None,
    ) -> None:
        """`again`: reconnects `watch_jobs` after a lost connection, without starting an engine that was stopped.
        `patience`: returns the time limit of a change in seconds."""
        self._connect = connect
        self._again = again or connect
        self._patience = patience
        self._channel: Channel | None = None
        self._ids: RequestIds | None = None

    async def watch_jobs(self, *, anything: bool = False) -> AsyncIterator[JobsDelta]:
        from cockpit.backends.local.watching import LiveRows

        rows = LiveRows()
        try:
            while True:  # ends with an error when the engine is stopped
                rows.begin()
                try:
                    for encoded in self.open().stream("subscribe", pages.SubscribeArgs(brief=True, anything=anything)):
                        for delta in rows.take(msgspec.msgpack.decode(encoded, type=pages.Update)):
                            yield delta
                except ConnectionLost:
                    # Not `_connect`: watching must not start an engine that was stopped on purpose.
                    self._channel = self._again()
        finally:
            self.drop()  # else the engine would send updates to a client that no longer reads

    async def open_shell(self, request: asking.ShellRequest) -> ShellSession:
        from cockpit.backends.shell import OpenShell

        opened, fds = self.open().ask_for_fds("shell", request, asking.ShellOpened, request_id())
        return OpenShell(opened, fds)

    async def stop(self, *, jobs: bool, holds: bool = False) -> None:
        """Stop the engine; with `jobs` and `holds` it first ends the running jobs and the held containers."""
        self.open().ask("stop", messages.StopArgs(jobs, holds), type(None), patient=jobs or holds)

    async def close(self) -> None:
        self.drop()

    def open(self) -> Channel:
        """Return the connection; connect if there is none."""
        if self._channel is None:
            self._channel = self._connect()
        return self._channel

    def drop(self) -> None:
        """Close a connection that is of no use any more; the next request opens another."""
        if self._channel is not None:
            self._channel.close()
            self._channel = None

    async def read(self, op: str, args: msgspec.Struct, answer: type[T]) -> T:
        return self._ask(op, args, answer)

    async def read_pieces(self, op: str, args: msgspec.Struct) -> Sequence[bytes | msgspec.Raw]:
        return list(self.open().stream(op, args))

    async def await_answer(self, op: str, args: msgspec.Struct, answer: type[T]) -> T:
        return self._ask(op, args, answer, patient=True)

    async def act(self, op: str, args: msgspec.Struct, answer: type[T]) -> T:
        from cockpit.backends.local.repeated_request import PATIENCE_SECONDS, RepeatedRequest

        request, words = (self._ids.next(), self._ids.words()) if self._ids is not None else (request_id(), b"")
        patience = self._patience or (lambda: PATIENCE_SECONDS)
        return RepeatedRequest(self, request, patience, words).ask(op, args, answer)

    def identify(self, ids: RequestIds) -> None:
        self._ids = ids

    def _ask(self, op: str, args: msgspec.Struct, answer: type[T], *, patient: bool = False) -> T:
        try:
            return self.open().ask(op, args, answer, patient=patient)
        except ConnectionLost:
            self._channel = None
            return self.open().ask(op, args, answer, patient=patient)


def request_id() -> str:
    """Return a new request id: sixteen random bytes in hexadecimal."""
    return os.urandom(16).hex()
