"""Forward ports of a container's own `localhost` to another replica.

PyTorch's launcher gives all nodes the address by which its first node knows the master, which is `localhost` there. The
forwarding process runs beside the command, as the submitter, without privileges.
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
"""Bytes that are forwarded at a time."""
_WAITING = 128
"""Connections that may wait to be accepted."""
_PATIENCE_SECONDS = 300
"""Longest wait for the other replica's program to listen."""
_MOMENT = 0.05
"""Interval in seconds between two tries to connect."""


def start(plan: PlanDict) -> None:
    """Fork a forwarding process for each of the plan's ports. The ports accept connections when this returns."""
    for port, address in plan.get("relays", {}).items():
        listener = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM | _socket.SOCK_CLOEXEC)
        listener.setsockopt(_socket.SOL_SOCKET, _socket.SO_REUSEADDR, 1)
        listener.bind((_HERE, int(port)))
        listener.listen(_WAITING)
        if os.fork() == 0:
            try:
                _relay(plan, listener, (address, int(port)))
            finally:
                os._exit(1)  # after any error: the child must not continue as a second holder
        listener.close()


def _relay(plan: PlanDict, listener: _socket.socket, address: tuple[str, int]) -> NoReturn:
    linux.name_process("cockpit-relay")
    linux.drop_pipes()
    # Before the first connection: what the other replica sends is not handled with rights of the engine.
    program.become_submitter(plan)
    linux.drop_capabilities()
    # After the change of credentials, which clears this setting (prctl(2), PR_SET_PDEATHSIG).
    linux.end_with_parent()
    # ignored, so that the kernel reaps the processes of ended connections (wait(2))
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        with contextlib.suppress(OSError):
            _serve_one(listener, address)


def _serve_one(listener: _socket.socket, address: tuple[str, int]) -> None:
    """Accept one connection, and forward it in a process of its own."""
    fd, _ = listener._accept()  # type: ignore[attr-defined] # noqa: SLF001 - socket.socket's own
    try:
        if os.fork() == 0:
            try:
                _carry(_socket.socket(fileno=fd), address)
            finally:
                os._exit(0)
    finally:
        os.close(fd)


def _connect(address: tuple[str, int]) -> _socket.socket:
    """Connect to the other replica, and retry for minutes: its program may still be starting.

    A closed connection would make the client give up.
    """
    give_up_at = time.monotonic() + _PATIENCE_SECONDS
    while True:
        connection = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM | _socket.SOCK_CLOEXEC)
        try:
            connection.connect(address)
        except OSError:
            connection.close()
            if time.monotonic() > give_up_at:
                raise
            time.sleep(_MOMENT)
        else:
            return connection


def _carry(client: _socket.socket, address: tuple[str, int]) -> None:
    """Forward data in both directions, and the end of each, until both have ended."""
    server = _connect(address)
    other = {client.fileno(): (client, server), server.fileno(): (server, client)}
    poll = select.poll()
    for fd in other:
        poll.register(fd, select.POLLIN)
    while other:
        for fd, _ in poll.poll():
            source, target = other[fd]
            piece = source.recv(_PIECE)
            if piece:
                target.sendall(piece)
            else:  # a client may have sent its whole request, and still wait for the answer
                target.shutdown(_socket.SHUT_WR)
                poll.unregister(fd)
                del other[fd]
