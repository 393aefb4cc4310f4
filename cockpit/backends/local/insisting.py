"""An act over a connection that may be slow or break: the same request is sent again, under the same id, until its
answer is known. Blocks; for one-shot commands.

The rule: "not accepted" is said only where that is known, which is before the whole request has left this process, or
by the engine's own answer. After that the request may have been accepted, and the error says so.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Protocol, TypeVar

from cockpit.backends.local.channel import Unsent
from cockpit.errors import CockpitError, MayBeAccepted, RequestRefused, StoreError, Unreachable
from cockpit.model.refusal import RefusalKind

if TYPE_CHECKING:
    from collections.abc import Callable

    import msgspec

    from cockpit.backends.local.channel import Channel

T = TypeVar("T")

PATIENCE_SECONDS = 60.0
FIRST_SECONDS = 1.0
"""An answer that comes within this needs no settings to be read."""
TRY_SECONDS = 15.0
"""On one connection; then another is tried, for the answer may have been lost on the way."""
PAUSE_SECONDS = 0.1
"""Between two tries."""


class Lines(Protocol):
    """Connections to one cluster's engine."""

    def open(self) -> Channel:
        """The present connection, else a new one. Raises `CockpitError` where there is none to be had."""
        ...

    def drop(self) -> None:
        """The present one is of no use any more."""
        ...


class Insistent:
    """One act, sent as often as it takes."""

    def __init__(self, lines: Lines, request: str, patience: Callable[[], float]) -> None:
        """`patience`: how many seconds all tries together may take; asked only when the answer is not there at once."""
        self._lines, self._request, self._patience = lines, request, patience
        self._began = time.monotonic()
        self._folder = ""
        """The state folder of the engine that has been sent the whole request; empty: none has."""

    def ask(self, op: str, args: msgspec.Struct, answer: type[T]) -> T:
        """The answer. Raises `MayBeAccepted` where there is none in time; `Unreachable` and `RequestRefused` only where
        nothing has happened."""
        try:
            return self._ask(op, args, answer)
        except KeyboardInterrupt:
            if not self._folder:
                raise
            raise MayBeAccepted("You interrupted it before the engine had answered.", self._request) from None

    def _ask(self, op: str, args: msgspec.Struct, answer: type[T]) -> T:
        lost = 0
        while True:
            sent_before = bool(self._folder)
            try:
                return self._try(op, args, answer)
            except RequestRefused as no:
                if not sent_before or no.refusal.kind is not RefusalKind.UNAVAILABLE:
                    raise
                error: CockpitError = no
            except (Unreachable, StoreError) as failed:
                lost += isinstance(failed, Unsent)
                if not self._folder and not (isinstance(failed, Unsent) and lost == 1):
                    raise
                self._lines.drop()
                error = failed
            if self._left() <= 0:
                raise MayBeAccepted(str(error), self._request) from error
            time.sleep(PAUSE_SECONDS)

    def _try(self, op: str, args: msgspec.Struct, answer: type[T]) -> T:
        channel = self._lines.open()
        if self._folder not in {"", channel.hello.state_folder}:
            raise Unreachable("The engine that was sent the request does not run; another one answers in its place.")
        channel.send(op, args, self._request)
        self._folder = channel.hello.state_folder
        if not channel.is_answered(FIRST_SECONDS):
            channel.wait_for_answer(max(0.0, min(TRY_SECONDS, self._left())))
        return channel.take(answer)

    def _left(self) -> float:
        return self._patience() - (time.monotonic() - self._began)
