"""Stands between a client and an engine's socket and breaks connections at chosen points."""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import TYPE_CHECKING, NamedTuple, Self

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
        self._start(_pump, client, engine, fault.to_engine, fault.stalls)
        self._start(_pump, engine, client, fault.to_client, fault.stalls)


def _greeting(engine: socket.socket) -> bytes:
    """The engine's first frame, whole: it is no part of what faults count."""
    data = b""
    while len(data) < 4 or len(data) < 4 + int.from_bytes(data[:4], "big"):
        piece = engine.recv(PIECE)
        if not piece:
            raise ConnectionResetError
        data += piece
    return data


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
        for each in (source, target):
            each.shutdown(socket.SHUT_RDWR)
