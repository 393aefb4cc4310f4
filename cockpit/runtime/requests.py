"""Give a repeated request its first answer, also a refusal, so that nothing happens twice.

The answer of an accepted request is stored in the same transaction as its events (`Host.act`). A refusal has no events
and is stored here. A temporary refusal (`unavailable`) is not stored: the repeat may succeed.
"""

from __future__ import annotations

import asyncio
import hashlib
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Protocol

import msgspec

from cockpit.errors import RequestRefused, StoreError
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.model.requests import KeptAnswer, RequestOutcome
from cockpit.model.text import visible
from cockpit.runtime.troubles import cause_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from cockpit.engine.ports import Journal


class HasRequestId(Protocol):
    """A request that may have an id (`runtime.request_context.RequestContext`)."""

    @property
    def request(self) -> str:
        """The user's uid, a colon and the request id; empty without an id."""
        ...

    @property
    def op(self) -> str: ...

    @property
    def digest(self) -> bytes: ...


_decode_refusal = msgspec.msgpack.Decoder(Refusal).decode
_DIGEST_BYTES = 16
"""Length of the hash of operation and arguments; what follows it is the client's hash of the command."""
_UNREADABLE = (
    "The journal cannot be read just now, so it is not known whether this request was accepted before: {error} "
    "Repeat the request later under the same id."
)


def digest_of(op: str, args: bytes | msgspec.Raw, words: bytes = b"") -> bytes:
    """Return a hash of a request's operation and arguments, followed by the client's hash of the command's words."""
    digest = hashlib.blake2b(op.encode(), digest_size=_DIGEST_BYTES)
    digest.update(b"\0")
    digest.update(memoryview(args))
    # appended as they are, so that `_words_of` finds them again
    return digest.digest() + words


def _words_of(digest: bytes) -> bytes:
    return digest[_DIGEST_BYTES:]


def _is_same_content(one: bytes, other: bytes) -> bool:
    return one[:_DIGEST_BYTES] == other[:_DIGEST_BYTES]


def _is_same_request(one: bytes, other: bytes) -> bool:
    """Return whether two requests have the same operation and arguments, or come from the same command.

    The arguments may differ between two runs of one command: `--start now+2h`, a change of what is there by now.
    """
    return _is_same_content(one, other) or (_words_of(one) == _words_of(other) != b"")


def answer_to_repeat(known: KeptAnswer, digest: bytes) -> bytes | Refusal:
    """Return the stored answer to a repeated request; a refusal if the id belongs to a different request."""
    if known.digest and digest and not _is_same_request(known.digest, digest):
        return Refusal(
            RefusalKind.CONFLICT,
            f"Request id {visible(own_id(known.request))} was used before, for another request ({known.op}). "
            "Give each request an id of its own; `cockpit jobs --request ID` shows what that one submitted.",
        )
    return _decode_refusal(known.answer) if known.refused else known.answer


def own_id(request: str) -> str:
    """Return the request id without the uid that precedes it in the journal."""
    return request.partition(":")[2]


class Requests:
    """The requests with ids of one engine: those being decided, and those that the journal has answers for."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._under_way: dict[str, _Turn] = {}

    async def once(self, context: HasRequestId, perform: Callable[[], Awaitable[bytes]]) -> bytes:
        """Return the stored answer to this request, or else the result of `perform`.

        Raises `RequestRefused` and `StoreError`.
        """
        if not context.request:
            return await perform()
        async with self._turn(context.request):
            known = await self._recorded_answer(context.request)
            if (
                known is not None
                and known.refused
                and known.digest
                and not _is_same_content(known.digest, context.digest)
            ):
                # The refused request did nothing, so its id may serve again, for the corrected request.
                await self._journal.forget_refusal(context.request)
                known = None
            if known is not None:
                return _answer_or_raise(answer_to_repeat(known, context.digest))
            try:
                return await perform()
            except RequestRefused as refused:
                await self._remember_refusal(context, refused.refusal)
                raise

    async def remember(self, context: HasRequestId, answer: bytes) -> None:
        """Store the final answer of a change, in place of the one stored with its events. Raises `StoreError`."""
        if context.request:
            await self._journal.remember(KeptAnswer(context.request, answer, context.op, context.digest))

    async def outcome(self, request: str) -> RequestOutcome:
        """Return the outcome of a request, after waiting if it is being decided. Raises `StoreError`."""
        async with self._turn(request):
            jobs = tuple(await self._journal.submitted_by(request))
            try:
                known = await self._journal.answer(request)
            except StoreError:
                # A damaged answer: the events say which jobs the request submitted.
                if not jobs:
                    raise
                known = None
        if known is None:
            return RequestOutcome(known=bool(jobs), op="submit" if jobs else "", jobs=jobs)
        refusal = _decode_refusal(known.answer) if known.refused else None
        return RequestOutcome(True, known.op, known.at, jobs, refusal, _words_of(known.digest))

    async def _recorded_answer(self, request: str) -> KeptAnswer | None:
        try:
            return await self._journal.answer(request)
        except StoreError as error:
            # An earlier try may have been accepted.
            message = _UNREADABLE.format(error=cause_of(error))
            raise RequestRefused(Refusal(RefusalKind.UNAVAILABLE, message, store=not error.passing)) from error

    async def _remember_refusal(self, context: HasRequestId, refusal: Refusal) -> None:
        """Store a refusal. A store error is ignored: the request did nothing, so a repeat may be decided again."""
        if refusal.kind is not RefusalKind.UNAVAILABLE:
            encoded = msgspec.msgpack.encode(refusal)
            with suppress(StoreError):
                await self._journal.remember(
                    KeptAnswer(context.request, encoded, context.op, context.digest, refused=True)
                )

    @asynccontextmanager
    async def _turn(self, request: str) -> AsyncIterator[None]:
        """Hold the lock of one request id: a client that lost its connection may repeat a request still in progress."""
        turn = self._under_way.setdefault(request, _Turn())
        turn.wanted += 1
        try:
            async with turn.lock:
                yield
        finally:
            # The last one removes the lock, so that there is none for ids that no request has any more.
            turn.wanted -= 1
            if not turn.wanted:
                self._under_way.pop(request, None)


class _Turn:
    """The lock of one request id, and the number of requests that hold it or wait for it."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.wanted = 0


def _answer_or_raise(answer: bytes | Refusal) -> bytes:
    if isinstance(answer, Refusal):
        raise RequestRefused(answer)
    return answer
