"""Serve one client of the engine's socket: read its frames, answer them, and limit what the client can cost.

1. Send a `Hello`, then read frames until the client disconnects. Each frame's body must arrive in time.
2. Decode each frame to a `RequestFrame`, in a task of its own. At most `in_flight` requests are answered at once.
3. Check the user's right to the operation, decode its arguments, and run its function.
4. Send the answer: one frame, a stream of frames, or a frame followed by file descriptors (an opened shell).

Every error becomes an answer to its request; only a broken frame ends the connection.
"""

from __future__ import annotations

import asyncio
import os
import socket
from contextlib import aclosing, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import msgspec

from cockpit.engine.access import Actor, limited
from cockpit.errors import CockpitError, RequestRefused, StoreError
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.present.safe import safe
from cockpit.protocol.frames import (
    CAPABILITIES,
    HEADER,
    MAJOR,
    MINOR,
    Answer,
    Hello,
    RequestFrame,
    body_length,
    frame,
    raw,
)
from cockpit.protocol.operations import SHELL
from cockpit.runtime import faults
from cockpit.runtime.operations import ONCE, OPERATIONS, WAITING
from cockpit.runtime.peers import peer_actor
from cockpit.runtime.request_context import RequestContext, allow, request_key
from cockpit.runtime.requests import digest_of
from cockpit.runtime.shells import SHELL_ARGS, open_shell
from cockpit.runtime.tasks import report_defect
from cockpit.runtime.troubles import unavailable

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from cockpit.runtime.engine import Engine

T = TypeVar("T")


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """The limits on what clients may cost the engine."""

    connections: int = 512
    """Most connections of all users together. Administrators may exceed it, so that they can see what is wrong. When
    they are reached, a user who has far fewer than another one gets the place of one of these."""
    connections_per_user: int = 128
    silent_seconds: float = 5.0
    """Seconds after which a connection that has sent no request is closed if another one needs its place."""
    frame_seconds: float = 10.0
    """Seconds within which a frame must be complete after its first byte."""
    send_seconds: float = 60.0
    """Seconds without reading after which a client is disconnected."""
    in_flight: int = 32
    """Most requests of one connection that are answered at once; further ones wait."""
    large_frame: int = 256 << 10
    """Bytes. Of requests longer than this, the engine holds one per user in memory at a time."""


class ClientGone(Exception):
    """The client has disconnected or broken the protocol; its requests need no answer."""


class Connection:
    """One client. `large` is the user's semaphore for large requests, shared by all of their connections."""

    def __init__(
        self,
        engine: Engine,
        actor: Actor,
        streams: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        large: asyncio.Semaphore,
        bounds: Bounds,
    ) -> None:
        self._engine = engine
        self._actor = actor
        self._catalogue = engine.host.machine.state.catalogue
        """The catalogue from which the user's projects were last derived."""
        self._reader, self._writer = streams
        self._large = large
        self._bounds = bounds
        self._slots = asyncio.Semaphore(bounds.in_flight)
        self._turn = asyncio.Lock()
        """Held while an answer that needs no waiting is made and sent. Such answers can be large, so that only one of
        them is in memory: a client that reads slowly delays only itself."""
        self._sending = asyncio.Lock()
        self._opened_at = asyncio.get_running_loop().time()
        self.has_asked = False
        """Whether a request has come."""

    @property
    def may_be_replaced(self) -> bool:
        """Whether no request has come for so long that another connection may have the place of this one."""
        age = asyncio.get_running_loop().time() - self._opened_at
        return not self.has_asked and age > self._bounds.silent_seconds

    def drop(self) -> None:
        """Close the connection without an answer."""
        self._writer.transport.abort()  # not `close`, which would wait for a client that no longer reads

    async def run(self) -> None:
        """Answer requests until the client disconnects or sends an invalid frame."""
        self._writer.transport.set_write_buffer_limits(high=0)  # `drain` then waits until the kernel has everything
        try:
            await self._send(self._hello())
            async with asyncio.TaskGroup() as group:
                await self._answer_frames(group)
        except* ClientGone:
            pass

    def _hello(self) -> Hello:
        return Hello(
            protocol=(MAJOR, MINOR),
            version=self._engine.version,
            capabilities=CAPABILITIES,
            pid=os.getpid(),
            state_folder=str(self._engine.state_folder),
        )

    async def _answer_frames(self, group: asyncio.TaskGroup) -> NoReturn:
        while True:
            length = await self._next_length()
            # The slots are taken before the body is read: a client over its limits then waits in its own socket
            # buffer, and costs the engine no memory.
            await self._slots.acquire()
            turn = self._large if length > self._bounds.large_frame else None
            if turn is not None:
                await turn.acquire()
            try:
                body = await self._in_time(self._reader.readexactly(length))
            # No task will release the slots of a request that never came completely.
            except BaseException:
                self._release_slots(turn)
                raise
            self.has_asked = True
            task = group.create_task(self._answer(body))
            task.add_done_callback(partial(self._release_slots, turn))

    def _release_slots(self, turn: asyncio.Semaphore | None, _task: asyncio.Task[None] | None = None) -> None:
        self._slots.release()
        if turn is not None:
            turn.release()

    async def _next_length(self) -> int:
        """Return the length of the next frame's body. Between two frames a client may be silent for any time."""
        try:
            first = await self._reader.readexactly(1)
        except (ConnectionError, asyncio.IncompleteReadError):
            raise ClientGone from None
        header = first + await self._in_time(self._reader.readexactly(HEADER.size - 1))
        try:
            return body_length(header)
        except ValueError as error:
            await self._refuse(0, Refusal(RefusalKind.INVALID, f"Not a frame: {error}."))
            raise ClientGone from None

    async def _in_time(self, part: Awaitable[bytes]) -> bytes:
        seconds = self._bounds.frame_seconds
        try:
            async with asyncio.timeout(seconds):
                return await part
        except (ConnectionError, asyncio.IncompleteReadError):
            raise ClientGone from None
        except TimeoutError:
            await self._refuse(0, Refusal(RefusalKind.INVALID, f"A frame took longer than {seconds:g} s."))
            raise ClientGone from None

    async def _answer(self, body: bytes) -> None:
        try:
            request = _decode(body, RequestFrame, "Not a request")
        except RequestRefused as error:
            await self._refuse(0, error.refusal)
        else:
            await self._answer_request(request)

    async def _answer_request(self, request: RequestFrame) -> None:
        """Answer one request. Every error becomes an answer: a defect in one operation must not end the connection."""
        try:
            # Operations that wait are not limited to one: they may take hours, and their answers are small.
            async with nullcontext() if request.op in WAITING else self._turn:
                await self._perform(request)
        except ClientGone:
            raise
        except RequestRefused as error:
            await self._refuse(request.id, error.refusal)
        except StoreError as error:
            await self._refuse(request.id, unavailable(error))
        except CockpitError as error:
            await self._refuse(request.id, Refusal(RefusalKind.UNAVAILABLE, str(error)))
        except Exception as error:  # noqa: BLE001 - the client must hear of it, whatever it is
            report_defect(f"the operation {safe(request.op)}", error)
            await self._refuse(request.id, _defect(error))

    async def _perform(self, request: RequestFrame) -> None:
        context = self._context(request)
        if request.op == SHELL:  # apart from the others: its answer carries file descriptors
            wanted = _decode(request.args, SHELL_ARGS, SHELL)
            await allow(self._engine, context, SHELL, wanted)
            opened = await open_shell(self._engine, context, wanted)
            await self._send_with_fds(Answer(request.id, raw(opened.answer), fds=len(opened.fds)), opened.fds)
            return
        operation = OPERATIONS.get(request.op)
        if operation is None:
            known = ", ".join(sorted((*OPERATIONS, SHELL)))
            raise RequestRefused(
                Refusal(RefusalKind.INVALID, f"There is no operation of this name; there are {known}.")
            )
        args_type, function = operation
        args = _decode(request.args, args_type, request.op)
        if request.op in ONCE:
            faults.point("read", request.op)
            # The right is checked inside: a repeated request gets its first answer, also where the user has lost the
            # right since.
            answer = await self._engine.requests.once(
                context, partial(self._perform_if_allowed, context, request.op, args, function)
            )
            faults.point("answering", request.op)
            await self._send(Answer(request.id, _encode(answer)))
            return
        await allow(self._engine, context, request.op, args)
        outcome = function(self._engine, context, args)
        if hasattr(outcome, "__aiter__"):
            await self._stream(request.id, outcome)
        else:
            await self._send(Answer(request.id, _encode(await outcome)))

    async def _perform_if_allowed(
        self, context: RequestContext, op: str, args: msgspec.Struct, function: Callable[..., Any]
    ) -> bytes:
        await allow(self._engine, context, op, args)
        answer: bytes = await function(self._engine, context, args)
        return answer

    def _context(self, request: RequestFrame) -> RequestContext:
        """Return who sends the request and its id. Ids belong to a user: another user's equal id is another request."""
        actor = limited(self._current_actor(), request.access)
        if not request.request:
            return RequestContext(actor)
        own = request_key(actor, request.request)
        return RequestContext(actor, own, request.op, digest_of(request.op, request.args, request.words))

    def _current_actor(self) -> Actor:
        """Return the user that the kernel names for the socket, with their projects as of now."""
        catalogue = self._engine.host.machine.state.catalogue
        # A changed catalogue is a new mapping, so that this costs nothing for all other requests.
        if catalogue is not self._catalogue:
            self._catalogue = catalogue
            peer = self._writer.get_extra_info("socket")
            self._actor = peer_actor(peer, self._engine.site) or self._actor
        return self._actor

    async def _stream(self, request: int, outcome: Any) -> None:  # noqa: ANN401 - an async iterator of messages
        # Closed as soon as the client is gone, which ends the subscription that the iterator may have.
        async with aclosing(outcome):
            async for message in outcome:
                await self._send(Answer(request, raw(message), last=False))
        await self._send(Answer(request))

    async def _refuse(self, request: int, refusal: Refusal) -> None:
        await self._send(Answer(request, no=refusal))

    async def _send(self, message: Answer | Hello) -> None:
        encoded = frame(message)
        # A frame is written in one piece, however many requests are being answered.
        async with self._sending:
            await self._write(encoded)

    async def _write(self, encoded: bytes) -> None:
        """Write the bytes, and return when the kernel has all of them. Raises `ClientGone`."""
        try:
            async with asyncio.timeout(self._bounds.send_seconds):
                self._writer.write(encoded)
                await self._writer.drain()
        except (ConnectionError, TimeoutError):
            raise ClientGone from None

    async def _send_with_fds(self, message: Answer, fds: Sequence[int]) -> None:
        """Send the frame, then one byte that carries the file descriptors, and close them in this process."""
        try:
            # In one turn: no other frame may come between the answer and its descriptors.
            async with self._sending:
                await self._write(frame(message))
                async with asyncio.timeout(self._bounds.send_seconds):
                    await _send_descriptors(self._writer.get_extra_info("socket").fileno(), fds)
        except (ConnectionError, TimeoutError):
            raise ClientGone from None
        finally:
            for fd in fds:
                os.close(fd)


async def _send_descriptors(connection: int, fds: Sequence[int]) -> None:
    # asyncio's transports cannot send ancillary data, hence a second socket object on the same connection.
    # Of a duplicate, since closing the object closes its descriptor.
    with socket.socket(fileno=os.dup(connection)) as carrier:
        while True:
            try:
                # Descriptors travel only with at least one byte of data (unix(7)).
                socket.send_fds(carrier, [b"F"], list(fds))
            except BlockingIOError:
                await _writable(carrier)
            else:
                return


async def _writable(carrier: socket.socket) -> None:
    loop, ready = asyncio.get_running_loop(), asyncio.Event()
    loop.add_writer(carrier, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_writer(carrier)


def _decode(encoded: bytes | msgspec.Raw, kind: type[T], what: str) -> T:
    """Decode a message. Raises `RequestRefused` for any invalid one, also for bad UTF-8 and endless nesting."""
    try:
        return msgspec.msgpack.decode(encoded, type=kind)
    except (ValueError, RecursionError) as error:
        raise RequestRefused(Refusal(RefusalKind.INVALID, f"{what}: {error}.")) from None


def _defect(error: Exception) -> Refusal:
    return Refusal(
        RefusalKind.UNAVAILABLE,
        f"The engine has a defect here: {type(error).__name__}: {error}. Please report it, with what its log shows.",
    )


def _encode(outcome: object) -> msgspec.Raw:
    return msgspec.Raw(outcome) if isinstance(outcome, bytes) else raw(outcome)
