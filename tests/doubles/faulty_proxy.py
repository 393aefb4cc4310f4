"""Stands between a client and an engine's socket and breaks connections at chosen points."""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import TYPE_CHECKING, NamedTuple, Self

import msgspec

from cockpit.protocol.frames import HEADER, Answer, RequestFrame, body_length

if TYPE_CHECKING:
    from pathlib import Path

PIECE = 1 << 16


class Fault(NamedTuple):
    """What one connection lets through before it breaks, in bytes behind the engine's greeting; None: everything."""

    to_engine: int | None = None
    to_client: int | None = None
    stalls: bool = False
    """It breaks by saying nothing more, instead of by closing."""
    once: bool = True
    """Only the first connection; the following ones work."""
    garbles: bool = False
    """Answers have the right length and no sense."""
    swallows_acts: bool = False
    """The answers to requests that change something never reach the client; those to others do."""


SOUND = Fault()


class FaultyProxy:
    """Listens on `path` for the engine at `engine`."""

    def __init__(self, path: Path, engine: Path, fault: Fault = SOUND) -> None:
        self.path, self._engine, self.fault = path, engine, fault
        self.connections = 0
        self._listener = socket.socket(socket.AF_UNIX)
        self._open: list[socket.socket] = [self._listener]
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> Self:
        self._listener.bind(str(self.path))
        self._listener.listen(16)
        self._start(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        for each in self._open:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        for thread in self._threads:
            thread.join(10)
            assert not thread.is_alive()
        self.path.unlink()

    def _start(self, work: object, *words: object) -> None:
        thread = threading.Thread(target=work, args=words)  # type: ignore[arg-type] # a method of this object
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self.connections += 1
                fault = SOUND if self.fault.once and self.connections > 1 else self.fault
                self._connect(client, fault)

    def _connect(self, client: socket.socket, fault: Fault) -> None:
        self._open.append(client)
        engine = socket.socket(socket.AF_UNIX)
        try:
            engine.connect(str(self._engine))
            client.sendall(_greeting(engine))
        except OSError:
            engine.close()
            client.close()
            return
        self._open.append(engine)
        if fault.swallows_acts:
            acts: set[int] = set()
            self._start(_pass_requests, client, engine, acts)
            self._start(_pass_answers, engine, client, acts)
            return
        if fault.garbles:
            self._start(_pump, client, engine, None, False)
            self._start(_garble, engine, client)
            return
        self._start(_pump, client, engine, fault.to_engine, fault.stalls)
        self._start(_pump, engine, client, fault.to_client, fault.stalls)


def _greeting(engine: socket.socket) -> bytes:
    """The engine's first frame, whole: it is no part of what faults count."""
    return _frame(engine)


def _frame(source: socket.socket) -> bytes:
    """One whole frame. Raises `ConnectionResetError` at the end of the connection."""
    data = b""
    while (missing := HEADER.size - len(data) if len(data) < HEADER.size else _length(data) - len(data)) > 0:
        piece = source.recv(min(missing, PIECE))
        if not piece:
            raise ConnectionResetError
        data += piece
    return data


def _length(data: bytes) -> int:
    return HEADER.size + body_length(data[: HEADER.size])


def _pass_requests(client: socket.socket, engine: socket.socket, acts: set[int]) -> None:
    """Pass on every request; note the numbers of those that change something."""
    with contextlib.suppress(OSError):
        while data := _frame(client):
            request = msgspec.msgpack.decode(data[HEADER.size :], type=RequestFrame)
            if request.request:
                acts.add(request.id)
            engine.sendall(data)
    _shut(client, engine)


def _pass_answers(engine: socket.socket, client: socket.socket, acts: set[int]) -> None:
    """Pass on the answers, but those to the requests noted."""
    with contextlib.suppress(OSError):
        while data := _frame(engine):
            if msgspec.msgpack.decode(data[HEADER.size :], type=Answer).id not in acts:
                client.sendall(data)
    _shut(engine, client)


def _pump(source: socket.socket, target: socket.socket, most: int | None, stalls: bool) -> None:
    """Pass on what comes, up to `most` bytes; then close both ends, or swallow the rest."""
    passed = 0
    with contextlib.suppress(OSError):
        while piece := source.recv(PIECE):
            allowed = piece if most is None else piece[: max(0, most - passed)]
            passed += len(piece)
            if allowed:
                target.sendall(allowed)
            if most is not None and passed >= most and not stalls:
                break
        _shut(source, target)


def _garble(engine: socket.socket, client: socket.socket) -> None:
    """Pass on frames of 0xC1, the byte that msgpack never uses, as long as the answers."""
    with contextlib.suppress(OSError):
        while data := _frame(engine):
            client.sendall(data[: HEADER.size] + b"\xc1" * (len(data) - HEADER.size))
    _shut(engine, client)


def _shut(*sockets: socket.socket) -> None:
    with contextlib.suppress(OSError):
        for each in sockets:
            each.shutdown(socket.SHUT_RDWR)
