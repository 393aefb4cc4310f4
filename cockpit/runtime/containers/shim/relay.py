"""Makes a port of a container's own `localhost` that of another replica: PyTorch's launcher tells everybody the address
by which its first node knows the master, which is `localhost` there.

A process of the submitter's, without privileges, beside the command.
"""

from __future__ import annotations

import _socket
import contextlib
import os
import select
import signal
import time

from cockpit.runtime.containers.shim import linux, program

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from cockpit.runtime.containers.shim.attempt import PlanDict

_HERE = "127.0.0.1"
_PIECE = 1 << 16
_WAITING = 128
_PATIENCE_SECONDS = 300
_MOMENT = 0.05


def start(plan: PlanDict) -> None:
    """Fork one for each of the plan's relays; who connects from here on is answered."""
    for port, address in plan.get("relays", {}).items():
        listener = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM | _socket.SOCK_CLOEXEC)
        listener.setsockopt(_socket.SOL_SOCKET, _socket.SO_REUSEADDR, 1)
        listener.bind((_HERE, int(port)))
        listener.listen(_WAITING)
        if os.fork() == 0:
            try:
                _relay(plan, listener, (address, int(port)))
            finally:
                os._exit(1)  # whatever became of it, it is not the holder
        listener.close()


def _relay(plan: PlanDict, listener: _socket.socket, there: tuple[str, int]) -> NoReturn:
    linux.name_process("cockpit-relay")
    program.become_submitter(plan)
    linux.drop_capabilities()
    linux.end_with_parent()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        with contextlib.suppress(OSError):
            _serve_one(listener, there)


def _serve_one(listener: _socket.socket, there: tuple[str, int]) -> None:
    """In a process of its own, for which nobody waits."""
    fd, _ = listener._accept()  # type: ignore[attr-defined] # noqa: SLF001 - socket.socket's own
    try:
        if os.fork() == 0:
            try:
                _carry(_socket.socket(fileno=fd), there)
            finally:
                os._exit(0)
    finally:
        os.close(fd)


def _connected(address: tuple[str, int]) -> _socket.socket:
    """Whoever is there may still be starting, and who asked takes a closed connection for the end of it."""
    give_up_at = time.monotonic() + _PATIENCE_SECONDS
    while True:
        there = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM | _socket.SOCK_CLOEXEC)
        try:
            there.connect(address)
        except OSError:
            there.close()
            if time.monotonic() > give_up_at:
                raise
            time.sleep(_MOMENT)
        else:
            return there


def _carry(here: _socket.socket, address: tuple[str, int]) -> None:
    """Until one side closes."""
    there = _connected(address)
    other = {here.fileno(): (here, there), there.fileno(): (there, here)}
    poll = select.poll()
    for fd in other:
        poll.register(fd, select.POLLIN)
    while True:
        for fd, _ in poll.poll():
            source, target = other[fd]
            piece = source.recv(_PIECE)
            if not piece:
                return
            target.sendall(piece)
