"""Answers every request id once: a repeat gets the first answer, also a refusal, and nothing happens twice.

An accepted act is remembered in the very transaction that journals it (`Host.act`); a refusal is remembered here. A
refusal that is only about this moment (`unavailable`) is not remembered: the repeat may succeed.
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

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from cockpit.engine.ports import Journal


class Identified(Protocol):
    """A request that may carry an id (`runtime.asked.Asked`)."""

    @property
    def request(self) -> str:
        """The id behind the asker's uid and a colon; empty without an id."""
        ...

    @property
    def op(self) -> str: ...

    @property
    def digest(self) -> bytes: ...


_decode_refusal = msgspec.msgpack.Decoder(Refusal).decode
_DIGEST_BYTES = 16
_UNREADABLE = (
    "The journal cannot be read just now, so it is not known whether this request was accepted before: {error} "
    "Repeat the request later under the same id."
)


def digest_of(op: str, args: bytes | msgspec.Raw) -> bytes:
    """Identifies what a request asks."""
    digest = hashlib.blake2b(op.encode(), digest_size=_DIGEST_BYTES)
    digest.update(b"\0")
    digest.update(memoryview(args))
    return digest.digest()


def repeated(known: KeptAnswer, digest: bytes) -> bytes | Refusal:
    """The first answer, for a repeat of the same request; a refusal where the id was given to another request."""
    if known.digest and digest and known.digest != digest:
        return Refusal(
            RefusalKind.CONFLICT,
            f"Request id {visible(own_id(known.request))} was used before, for another request ({known.op}). "
            "Give each request an id of its own; `cockpit jobs --request ID` shows what that one submitted.",
        )
    return _decode_refusal(known.answer) if known.refused else known.answer


def own_id(request: str) -> str:
    """The id as its user gave it, without the uid that keeps the ids of several users apart."""
    return request.partition(":")[2]


class Requests:
    """The requests of one engine that carry ids."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._under_way: dict[str, _Turn] = {}

    async def once(self, context: Identified, perform: Callable[[], Awaitable[bytes]]) -> bytes:
        """The first answer to this request, or what `perform` answers now. Raises `RequestRefused`, `StoreError`."""
        if not context.request:
            return await perform()
        async with self._turn(context.request):
            known = await self._known(context.request)
            if known is not None and known.refused and known.digest not in {b"", context.digest}:
                await self._journal.forget_refusal(
                    context.request
                )  # nothing was done: a corrected request is a new one
                known = None
            if known is not None:
                return _raised(repeated(known, context.digest))
            try:
                return await perform()
            except RequestRefused as refused:
                await self._remember_refusal(context, refused.refusal)
                raise

    async def remember(self, context: Identified, answer: bytes) -> None:
        """Keep the answer of an act whose answer is known only after its event. Raises `StoreError`."""
        if context.request:
            await self._journal.remember(KeptAnswer(context.request, answer, context.op, context.digest))

    async def outcome(self, request: str) -> RequestOutcome:
        """What became of a request; one that is being decided is waited for. Raises `StoreError`."""
        async with self._turn(request):
            known = await self._journal.answer(request)
            jobs = tuple(await self._journal.submitted_by(request))
        if known is None:
            return RequestOutcome(known=bool(jobs), op="submit" if jobs else "", jobs=jobs)
        refusal = _decode_refusal(known.answer) if known.refused else None
        return RequestOutcome(known=True, op=known.op, at=known.at, jobs=jobs, refusal=refusal)

    async def _known(self, request: str) -> KeptAnswer | None:
        try:
            return await self._journal.answer(request)
        except StoreError as error:
            said = str(error).replace(" Nothing was accepted.", "")
            raise RequestRefused(Refusal(RefusalKind.UNAVAILABLE, _UNREADABLE.format(error=said))) from error

    async def _remember_refusal(self, context: Identified, refusal: Refusal) -> None:
        """A refusal that cannot be kept stays true all the same: nothing was done."""
        if refusal.kind is not RefusalKind.UNAVAILABLE:
            encoded = msgspec.msgpack.encode(refusal)
            with suppress(StoreError):
                await self._journal.remember(
                    KeptAnswer(context.request, encoded, context.op, context.digest, refused=True)
                )

    @asynccontextmanager
    async def _turn(self, request: str) -> AsyncIterator[None]:
        """One at a time for each id: a client that lost its connection may repeat what is still being decided."""
        turn = self._under_way.setdefault(request, _Turn())
        turn.wanted += 1
        try:
            async with turn.lock:
                yield
        finally:
            turn.wanted -= 1
            if not turn.wanted:
                self._under_way.pop(request, None)


class _Turn:
    """One request id's lock, and how many wait for it or have it."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.wanted = 0


def _raised(answer: bytes | Refusal) -> bytes:
    if isinstance(answer, Refusal):
        raise RequestRefused(answer)
    return answer
