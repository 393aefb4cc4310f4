"""Sends a change over a connection that may be slow or break, under one request id, until it is answered.

It blocks, for one-shot commands. An error says that nothing happened only if that is certain: before the whole request
has left this process, or by the engine's own answer. In all other cases the error is `MayBeAccepted`.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Protocol, TypeVar

from cockpit.backends.local.channel import ConnectionLost, NoAnswerInTime, RequestNotSent
from cockpit.errors import CockpitError, MayBeAccepted, RequestRefused, StoreError, Unreachable
from cockpit.model.refusal import RefusalKind

if TYPE_CHECKING:
    from collections.abc import Callable

    import msgspec

    from cockpit.backends.local.channel import Channel

T = TypeVar("T")

PATIENCE_SECONDS = 60.0
FIRST_SECONDS = 1.0
"""Time in which most answers come; only after it are the settings read for the time limit."""
TRY_SECONDS = 15.0
"""Time limit of one attempt; then another connection is tried, since the answer may have been lost."""
PAUSE_SECONDS = 0.1
"""Time between two attempts."""

ANOTHER_ENGINE = "The engine that was sent the request does not run; another one answers in its place."


class Lines(Protocol):
    """Connections to one cluster's engine."""

    def open(self) -> Channel:
        """Return the connection; connect if there is none. Raises `CockpitError`."""
        ...

    def drop(self) -> None:
        """Close the connection, which is of no use any more."""
        ...


class RepeatedRequest:
    """A change that is sent repeatedly until it is answered."""

    def __init__(self, lines: Lines, request: str, patience: Callable[[], float], words: bytes = b"") -> None:
        """`patience`: returns the time limit of all attempts in seconds; called only if no answer comes at once.
        `words`: hash of the command, for `Request`."""
        self._lines, self._request, self._patience, self._words = lines, request, patience, words
        self._began_at = time.monotonic()
        self._folder = ""
        """State folder of the engine to which the whole request was sent; empty: to none."""

    def ask(self, op: str, args: msgspec.Struct, answer: type[T]) -> T:
        """Return the answer.

        Raises `MayBeAccepted` when none comes in time, and `Unreachable` or `RequestRefused` only if nothing happened.
        """
        try:
            return self._ask(op, args, answer)
        except KeyboardInterrupt:
            if not self._folder:
                raise
            raise MayBeAccepted("You interrupted it before the engine had answered.", self._request) from None

    def _ask(self, op: str, args: msgspec.Struct, answer: type[T]) -> T:
        """Send the request until an answer comes.

        Raises `MayBeAccepted` when the time is over and an engine may have it.
        """
        lost = 0
        while True:
            sent_before = bool(self._folder)
            try:
                return self._try(op, args, answer)
            except RequestRefused as no:
                # An engine that is stopping refuses, though an earlier attempt may have been accepted before.
                if not sent_before or no.refusal.kind is not RefusalKind.UNAVAILABLE:
                    raise
                error: CockpitError = no
            except (Unreachable, StoreError) as failed:
                lost += isinstance(failed, RequestNotSent)
                # Nothing was sent: fail, except once for a connection that broke, as when the engine restarts.
                if not self._folder and not (isinstance(failed, RequestNotSent) and lost == 1):
                    raise
                self._lines.drop()
                error = failed
            if self._seconds_left() <= 0:
                raise MayBeAccepted(self._reason(error), self._request) from error
            time.sleep(PAUSE_SECONDS)

    def _try(self, op: str, args: msgspec.Struct, answer: type[T]) -> T:
        """Send the request once and return its answer."""
        channel = self._lines.open()
        # Only the engine that has the request can tell a repetition; another one would execute it a second time.
        if self._folder not in {"", channel.hello.state_folder}:
            raise Unreachable(ANOTHER_ENGINE)
        channel.send(op, args, self._request, self._words)
        # Only now may the engine have it: before, `send` raises `RequestNotSent`.
        self._folder = channel.hello.state_folder
        if not channel.is_answered(FIRST_SECONDS):
            channel.wait_for_answer(self._seconds_of_try())
        return channel.take(answer, self._seconds_of_try)

    def _reason(self, error: CockpitError) -> str:
        """Return why there is no answer.

        It does not advise to run the command again, which would do it a second time.
        """
        if isinstance(error, NoAnswerInTime):
            return str(NoAnswerInTime(error.where, time.monotonic() - self._began_at))
        return error.cause if isinstance(error, ConnectionLost) else str(error)

    def _seconds_of_try(self) -> float:
        return max(0.0, min(TRY_SECONDS, self._seconds_left()))

    def _seconds_left(self) -> float:
        return self._patience() - (time.monotonic() - self._began_at)
