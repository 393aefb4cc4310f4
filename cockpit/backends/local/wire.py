"""A connection to an engine's socket on which many requests are open at the same time."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec

from cockpit.errors import RequestRefused, Unreachable
from cockpit.protocol.frames import HEADER, Answer, RequestFrame, body_length, raw, request_frame

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from cockpit.backends.local.channel import Channel

READ_AHEAD = 1 << 20
"""Bytes: a page of rows in few reads."""

_decode_answer = msgspec.msgpack.Decoder(Answer).decode


class Wire:
    """Asks while `run` runs. `heard` is called whenever something comes in."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, heard: Callable[[], None], channel: Channel
    ) -> None:
        self.state_folder = channel.hello.state_folder
        """The engine's state folder; it shows whether another connection leads to the same engine."""
        self._reader = reader
        self._writer = writer
        self._on_answer = heard
        self._last_id = 0
        self._access = channel.access
        self._open: dict[int, Question] = {}
        self._lost: Unreachable | None = None

    @classmethod
    async def over(cls, channel: Channel, heard: Callable[[], None]) -> Wire:
        """Take over the connection of a channel that has been greeted."""
        reader, writer = await asyncio.open_unix_connection(sock=channel.detach(), limit=READ_AHEAD)
        return cls(reader, writer, heard, channel)

    async def run(self) -> Unreachable:
        """Distribute answers until the connection ends, and return the reason of the end."""
        try:
            while True:
                self._deliver(_decode_answer(await self._frame()))
        except (OSError, ValueError, asyncio.IncompleteReadError, msgspec.DecodeError) as error:
            return self._lose(_loss(error))
        finally:
            # For a `run` that was cancelled; after a loss the first reason stays.
            self._lose(Unreachable("The connection to the engine was closed."))
            self._writer.close()

    @property
    def is_lost(self) -> bool:
        """Return whether the connection is lost."""
        return self._lost is not None

    async def ask(self, op: str, args: msgspec.Struct, request: str = "", words: bytes = b"") -> msgspec.Raw:
        """Send one request, and return its answer. Raises `RequestRefused`, or `Unreachable` when the connection is
        lost."""
        with self._send_question(op, args, request, words) as question:
            return (await question.answer()).ok

    async def stream(self, op: str, args: msgspec.Struct) -> AsyncIterator[msgspec.Raw]:
        """Send one request, and yield its answers up to the last."""
        with self._send_question(op, args, "") as question:
            while not (answer := await question.answer()).last:
                yield answer.ok

    @contextmanager
    def _send_question(self, op: str, args: msgspec.Struct, request: str, words: bytes = b"") -> Iterator[Question]:
        """Send a request, and provide the place where its answer arrives."""
        if self._lost is not None:
            raise self._lost
        self._last_id += 1
        number = self._last_id
        encoded = request_frame(RequestFrame(number, op, raw(args), request, words, self._access))
        question = self._open[number] = Question()
        try:
            self._writer.write(encoded)
            yield question
        finally:
            del self._open[number]

    async def _frame(self) -> bytes:
        body = await self._reader.readexactly(body_length(await self._reader.readexactly(HEADER.size)))
        self._on_answer()
        return body

    def _deliver(self, answer: Answer) -> None:
        # None: the caller was cancelled before the answer came.
        waiting = self._open.get(answer.id)
        if waiting is not None:
            waiting.take(answer)

    def _lose(self, why: Unreachable) -> Unreachable:
        if self._lost is None:
            self._lost = why
            for waiting in self._open.values():
                waiting.take(why)
        return self._lost


class Question:
    """A request whose answer is not complete."""

    def __init__(self) -> None:
        self._answers = asyncio.Queue[Answer | Unreachable]()

    def take(self, answer: Answer | Unreachable) -> None:
        """Return the next answer, or raise why none will come."""
        self._answers.put_nowait(answer)

    async def answer(self) -> Answer:
        """Return the next answer. Raises `RequestRefused` or `Unreachable`."""
        answer = await self._answers.get()
        if isinstance(answer, Unreachable):
            raise answer
        if answer.no is not None:
            raise RequestRefused(answer.no)
        return answer


def _loss(error: Exception) -> Unreachable:
    if isinstance(error, asyncio.IncompleteReadError):
        return Unreachable("The engine closed the connection.")
    return Unreachable(f"The connection to the engine was lost ({error}).")
