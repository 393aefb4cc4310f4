"""A blocking connection to an engine's socket, for one-shot commands, which start twice as fast without a loop."""

from __future__ import annotations

import _socket  # as asyncio and the shim do: what socket adds takes three ms to load
import os
import struct
from collections import deque
from typing import TYPE_CHECKING, TypeVar

import msgspec

from cockpit.errors import ProtocolMismatch, RequestRefused, Unreachable
from cockpit.model.access_level import ACCESS_VARIABLE
from cockpit.protocol.frames import (
    HEADER,
    Answer,
    Hello,
    RequestFrame,
    body_length,
    check_access,
    check_hello,
    raw,
    request_frame,
)

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterator

T = TypeVar("T")

ANSWER_SECONDS = 15.0
"""Time limit of one answer; a running engine answers far sooner."""

_PATIENCE = struct.pack("@ll", int(ANSWER_SECONDS), 0)
"""The time limit as a `struct timeval`."""

_decode_answer = msgspec.msgpack.Decoder(Answer).decode


class ConnectionLost(Unreachable):
    """The engine ended or was killed before it answered."""

    def __init__(self, cause: str) -> None:
        """`cause`: a sentence without advice, which depends on whether the request changes something."""
        self.cause = cause
        super().__init__(f"{cause} Run the command again.")


class NoAnswerInTime(Unreachable):
    """The engine did not answer in time."""

    def __init__(self, where: str, seconds: float) -> None:
        self.where = where
        super().__init__(
            f"The engine does not answer on {where} (waited {seconds:.0f} s). It may be stopped or very busy: "
            "`cockpit engine restart` restarts it without ending jobs."
        )


class RequestNotSent(ConnectionLost):
    """The connection broke before the whole request had left this process: the engine does not act on it."""


class Channel:
    """Sends one request after another. Raises `Unreachable` without an answer, `RequestRefused` for a refusal."""

    def __init__(self, connection: _socket.socket, where: str) -> None:
        self._socket = connection
        self._where = where
        self._last_id = 0
        self.access = os.environ.get(ACCESS_VARIABLE, "")
        """The access level of this process's session, which is sent with each request."""
        self._streams: dict[int, deque[Answer]] = {}
        """By request, the answers of an open stream that came while another request was waiting for its own."""
        self._time_left: Callable[[], float] | None = None
        """The time limit in seconds of the answer that `take` receives; None: the socket's own."""
        self.hello = self._greeting()

    @classmethod
    def connect(cls, path: str) -> Channel:
        """Connect to the socket at `path`.

        Raises `FileNotFoundError` or `ConnectionRefusedError` when no engine listens there, `ConnectionResetError`
        when one is just ending.
        """
        connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
        # On a unix socket connect blocks while the engine's queue of connections is full; SO_SNDTIMEO limits that time.
        connection.setsockopt(_socket.SOL_SOCKET, _socket.SO_SNDTIMEO, _PATIENCE)
        try:
            connection.connect(path)
            connection.settimeout(ANSWER_SECONDS)
            return cls(connection, path)
        except BlockingIOError:
            connection.close()
            raise NoAnswerInTime(path, ANSWER_SECONDS) from None
        except BaseException:
            connection.close()
            raise

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def detach(self) -> socket.socket:
        """Return the socket, for a caller that uses it in another way; the channel cannot be used afterwards."""
        import socket

        return socket.socket(fileno=self._socket.detach())

    def ask(self, op: str, args: msgspec.Struct, answer: type[T], *, request: str = "", patient: bool = False) -> T:
        """Send a request and return its answer. `patient`: wait for it without a time limit."""
        self._socket.settimeout(None if patient else ANSWER_SECONDS)
        return msgspec.msgpack.decode(self._answer(self._send(op, args, request)).ok, type=answer)

    def send(self, op: str, args: msgspec.Struct, request: str, words: bytes = b"") -> None:
        """Send a request, whose answer `take` returns. Raises `RequestNotSent` when the engine cannot have it whole."""
        self._socket.settimeout(ANSWER_SECONDS)
        self._send(op, args, request, words)

    def is_answered(self, seconds: float) -> bool:
        """Wait at most `seconds` for the beginning of an answer; return whether it came."""
        from select import POLLIN, poll

        poller = poll()
        poller.register(self._socket.fileno(), POLLIN)
        return bool(poller.poll(seconds * 1000))

    def wait_for_answer(self, seconds: float) -> None:
        """Wait for the beginning of an answer. Raises `Unreachable` when none comes."""
        if not self.is_answered(seconds):
            raise NoAnswerInTime(self._where, seconds)

    def take(self, answer: type[T], time_left: Callable[[], float]) -> T:
        """Return the answer to the request of `send`. Raises `Unreachable` when its rest does not come in time.

        `time_left`: returns the time limit in seconds; called only if the whole answer is not there yet.
        """
        self._time_left = time_left
        try:
            return msgspec.msgpack.decode(self._answer(self._last_id).ok, type=answer)
        finally:
            self._time_left = None

    def stream(self, op: str, args: msgspec.Struct) -> Iterator[msgspec.Raw]:
        """Send a request and yield its answers up to the last one, without a time limit between two of them."""
        self._socket.settimeout(ANSWER_SECONDS)
        number = self._send(op, args, "")
        self._streams[number] = deque()
        try:
            while not (answer := self._answer(number)).last:
                # A subscription may be silent for hours after its first answer.
                self._socket.settimeout(None)
                yield answer.ok
        finally:
            del self._streams[number]

    def ask_for_fds(self, op: str, args: msgspec.Struct, answer: type[T], request: str) -> tuple[T, list[int]]:
        """Send a request; return its answer and the file descriptors that follow it, which belong to the caller."""
        self._socket.settimeout(ANSWER_SECONDS)
        reply = self._answer(self._send(op, args, request))
        return msgspec.msgpack.decode(reply.ok, type=answer), self._descriptors(reply.fds)

    def _descriptors(self, number: int) -> list[int]:
        size = struct.calcsize(f"{number}i")
        # Descriptors travel beside one byte of data (unix(7), SCM_RIGHTS).
        _, sent, _, _ = self._socket.recvmsg(1, _socket.CMSG_LEN(size))
        return [fd for *_, data in sent for fd in struct.unpack(f"{len(data) // 4}i", data)]

    def _send(self, op: str, args: msgspec.Struct, request: str, words: bytes = b"") -> int:
        """Send a request; return its number, which its answers carry."""
        self._last_id += 1
        encoded = request_frame(RequestFrame(self._last_id, op, raw(args), request, words, self.access))
        try:
            self._socket.sendall(encoded)
        except OSError as error:
            raise RequestNotSent(_cause(error)) from error
        return self._last_id

    def _answer(self, number: int) -> Answer:
        """Return the next answer to a request. Raises `RequestRefused` or `Unreachable`."""
        kept = self._streams.get(number)
        answer = kept.popleft() if kept else self._receive(number)
        if answer.no is not None:
            raise RequestRefused(answer.no)
        return answer

    def _receive(self, number: int) -> Answer:
        """Receive answers until one is to this request. Others belong to streams: to one that is open, for which they
        are kept, or to one that was left before its end."""
        try:
            # number 0: the engine could not read a frame, whichever request it was
            while (answer := _decode_answer(self._frame())).id not in (number, 0):
                if answer.id in self._streams:
                    self._streams[answer.id].append(answer)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise self._as_unreachable(error) from error
        return answer

    def _greeting(self) -> Hello:
        """Return the engine's greeting. Raises `RequestRefused` when it refuses the connection instead."""
        try:
            body = self._body()
        # The engine is ending: `start.connect` takes it for one that does not run.
        except ConnectionResetError:
            raise
        except (OSError, ValueError) as error:
            raise self._as_unreachable(error) from error
        try:
            hello = msgspec.msgpack.decode(body, type=Hello)
        # An engine that refuses the connection answers in place of its greeting.
        except msgspec.ValidationError:
            answer = _decode_answer(body)
            if answer.no is None:
                message = f"What listens on {self._where} is no cockpit engine."
                raise ProtocolMismatch(message) from None
            raise RequestRefused(answer.no) from None
        check_hello(hello)
        check_access(hello, self.access)
        return hello

    def _frame(self) -> bytes:
        try:
            return self._body()
        except (OSError, ValueError) as error:
            raise self._as_unreachable(error) from error

    def _body(self) -> bytes:
        return self._exactly(body_length(self._exactly(HEADER.size)))

    def _exactly(self, size: int) -> bytes:
        """Receive as many bytes. Raises `ConnectionResetError` when the connection ends before."""
        buffer = bytearray(size)
        view = memoryview(buffer)
        while view:
            # Only when nothing has arrived: the time limit is in the settings, whose reading would delay a fast answer.
            if self._time_left is not None and not self.is_answered(0):
                self.wait_for_answer(self._time_left())
            received = self._socket.recv_into(view)
            if not received:
                message = "it closed the connection"
                raise ConnectionResetError(message)
            view = view[received:]
        return bytes(buffer)

    def _as_unreachable(self, error: Exception) -> Unreachable:
        return (
            NoAnswerInTime(self._where, ANSWER_SECONDS)
            if isinstance(error, TimeoutError)
            else ConnectionLost(_cause(error))
        )


def _cause(error: Exception) -> str:
    return f"The connection to the engine was lost ({error or type(error).__name__})."
