"""The engine's socket: frames in, operations, frames out. A malformed, huge or slow client hurts itself alone."""

from __future__ import annotations

import asyncio
import os
import socket
from typing import TYPE_CHECKING, Any, NoReturn

import msgspec

from cockpit.errors import CockpitError, RequestRefused, StoreError
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.protocol.frames import CAPABILITIES, HEADER, MAJOR, MINOR, Answer, Hello, Request, body_length, frame, raw
from cockpit.runtime.operations import OPERATIONS, Asked
from cockpit.runtime.peers import peer_actor
from cockpit.runtime.shells import SHELL_ARGS, open_shell
from cockpit.runtime.troubles import unavailable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cockpit.engine.access import Actor
    from cockpit.runtime.engine import Engine

FRAME_SECONDS = 10.0
"""A frame that has begun must be complete within this."""
MAX_CONNECTIONS = 512
MAX_CONNECTIONS_PER_USER = 128
MAX_IN_FLIGHT = 32
"""Requests of one connection answered at the same time; further ones wait."""
SEND_SECONDS = 60.0
"""A client that takes nothing for this long is gone."""

_decode_request = msgspec.msgpack.Decoder(Request).decode


class Server:
    """Listens, and answers each connection in a task of its own."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._connections: dict[int, int] = {}
        self._server: asyncio.Server | None = None

    async def start(self, listener: socket.socket) -> None:
        """Answer on a socket that is bound and listens."""
        self._server = await asyncio.start_unix_server(self._serve, sock=listener)

    async def stop(self) -> None:
        """Take no more connections; those that are open end with the process."""
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        actor = peer_actor(writer.get_extra_info("socket"), system=self._engine.system)
        refused = self._refuse_connection(actor)
        if actor is None or refused is not None:
            writer.write(frame(Answer(0, no=refused)))
            writer.close()
            return
        uid = actor.who.uid
        self._connections[uid] = self._connections.get(uid, 0) + 1
        try:
            await Connection(self._engine, actor, reader, writer).run()
        except (ConnectionError, TimeoutError, asyncio.IncompleteReadError):
            pass
        finally:
            self._connections[uid] -= 1
            writer.close()

    def _refuse_connection(self, actor: Actor | None) -> Refusal | None:
        if actor is None:
            return Refusal(
                RefusalKind.DENIED,
                f"This engine serves user {os.geteuid()} only; run `cockpit` as yourself to use your own.",
            )
        mine = self._connections.get(actor.who.uid, 0)
        if mine >= MAX_CONNECTIONS_PER_USER or sum(self._connections.values()) >= MAX_CONNECTIONS:
            return Refusal(RefusalKind.UNAVAILABLE, "The engine has too many open connections; close some cockpits.")
        return None


class Connection:
    """One client."""

    def __init__(
        self, engine: Engine, actor: Actor, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._engine = engine
        self._actor = actor
        self._reader = reader
        self._writer = writer
        self._slots = asyncio.Semaphore(MAX_IN_FLIGHT)
        self._sending = asyncio.Lock()

    async def run(self) -> None:
        """Until the client goes, or sends what is no frame."""
        self._writer.transport.set_write_buffer_limits(high=0)
        await self._send(self._hello())
        try:
            async with asyncio.TaskGroup() as group:
                await self._answer_frames(group)
        except* _Gone:
            pass
        except* (ConnectionError, TimeoutError):
            pass

    async def _answer_frames(self, group: asyncio.TaskGroup) -> NoReturn:
        while (body := await self._read_frame()) is not None:
            await self._slots.acquire()
            group.create_task(self._answer(body))
        raise _Gone

    def _hello(self) -> Hello:
        return Hello(
            protocol=(MAJOR, MINOR),
            version=self._engine.version,
            capabilities=CAPABILITIES,
            pid=os.getpid(),
            state_folder=str(self._engine.state_folder),
        )

    async def _read_frame(self) -> bytes | None:
        """The next frame's body; None when the client has gone or does not keep to the rules."""
        try:
            first = await self._reader.readexactly(1)
            async with asyncio.timeout(FRAME_SECONDS):
                header = first + await self._reader.readexactly(HEADER.size - 1)
                return await self._reader.readexactly(body_length(header))
        except asyncio.IncompleteReadError:
            return None
        except TimeoutError:
            await self._refuse(0, Refusal(RefusalKind.INVALID, f"A frame took longer than {FRAME_SECONDS:.0f} s."))
        except ValueError as error:
            await self._refuse(0, Refusal(RefusalKind.INVALID, f"Not a frame: {error}."))
        return None

    async def _answer(self, body: bytes) -> None:
        try:
            request = _decode_request(body)
        except msgspec.DecodeError as error:
            await self._refuse(0, Refusal(RefusalKind.INVALID, f"Not a request: {error}."))
        else:
            await self._answer_request(request)
        finally:
            self._slots.release()

    async def _answer_request(self, request: Request) -> None:
        try:
            await self._perform(request)
        except msgspec.ValidationError as error:
            await self._refuse(request.id, Refusal(RefusalKind.INVALID, f"{request.op}: {error}."))
        except RequestRefused as error:
            await self._refuse(request.id, error.refusal)
        except StoreError as error:
            await self._refuse(request.id, unavailable(error))
        except CockpitError as error:
            await self._refuse(request.id, Refusal(RefusalKind.UNAVAILABLE, str(error)))

    async def _perform(self, request: Request) -> None:
        asked = Asked(self._actor, f"{self._actor.who.uid}:{request.request}" if request.request else "")
        if request.op == "shell":
            opened = await open_shell(self._engine, asked, msgspec.msgpack.decode(request.args, type=SHELL_ARGS))
            await self._send_with_fds(Answer(request.id, raw(opened.answer), fds=len(opened.fds)), opened.fds)
            return
        operation = OPERATIONS.get(request.op)
        if operation is None:
            known = ", ".join(sorted((*OPERATIONS, "shell")))
            raise RequestRefused(
                Refusal(RefusalKind.INVALID, f"There is no operation of this name; there are {known}.")
            )
        args_type, function = operation
        outcome = function(self._engine, asked, msgspec.msgpack.decode(request.args, type=args_type))
        if hasattr(outcome, "__aiter__"):
            await self._stream(request.id, outcome)
        else:
            await self._send(Answer(request.id, _encoded(await outcome)))

    async def _stream(self, request: int, outcome: Any) -> None:  # noqa: ANN401 - an async iterator of messages
        async for message in outcome:
            await self._send(Answer(request, raw(message), last=False))
        await self._send(Answer(request))

    async def _refuse(self, request: int, refusal: Refusal) -> None:
        await self._send(Answer(request, no=refusal))

    async def _send(self, message: Answer | Hello) -> None:
        async with self._sending, asyncio.timeout(SEND_SECONDS):
            self._writer.write(frame(message))
            await self._writer.drain()

    async def _send_with_fds(self, message: Answer, fds: Sequence[int]) -> None:
        """The frame, then one byte that carries the descriptors; they are closed here afterwards."""
        try:
            async with self._sending, asyncio.timeout(SEND_SECONDS):
                self._writer.write(frame(message))
                await self._writer.drain()
                with socket.socket(fileno=os.dup(self._writer.get_extra_info("socket").fileno())) as carrier:
                    socket.send_fds(carrier, [b"F"], list(fds))
        finally:
            for fd in fds:
                os.close(fd)


class _Gone(Exception):
    """The client has gone: what it asked for is no longer wanted."""


def _encoded(outcome: object) -> msgspec.Raw:
    return msgspec.Raw(outcome) if isinstance(outcome, bytes) else raw(outcome)
