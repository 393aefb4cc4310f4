"""Send the workers of an elastic job to its programs: over a Unix socket, beside the file that lists them.

A client gets the file's content as one line of JSON when it connects, and again whenever the engine has replaced the
file; of several changes it may get only the last. It sends nothing. The server runs beside the command, as the
submitter, without privileges. `cockpit.elastic` is its client.
"""

from __future__ import annotations

import _socket
import contextlib
import os
import select

from cockpit.runtime.containers.shim import linux, program

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from cockpit.runtime.containers.shim.attempt import Attempt, PlanDict

FOLDER = "world"
"""The subfolder of the attempt's folder with the engine's lists of workers; only elastic jobs have one."""
FILE = "workers.json"
SOCKET = "workers.sock"
_MOST_CLIENTS = 64
"""Connections at a time. A program of the job could open any number."""
_WAITING = 128
"""Connections that may wait to be accepted."""
_LOOK_MILLISECONDS = 500
"""Interval at which the file is looked at where the kernel does not report changes."""


class Client:
    """A connection, and what was sent to it. Its socket never blocks."""

    def __init__(self, connection: _socket.socket) -> None:
        self.connection = connection
        self._sent = b""
        """The content that was sent last, or whose sending has begun."""
        self._rest = b""
        """What is left of its line."""

    def send(self, content: bytes) -> bool:
        """Send as much as the connection takes, and return whether something is left. Raises OSError.

        A line that was begun is completed first, also if its content is old.
        """
        while self._rest or self._sent != content:
            if not self._rest:
                self._sent, self._rest = content, content + b"\n"
            try:
                self._rest = self._rest[self.connection.send(self._rest) :]
            except BlockingIOError:
                return True
        return False

    def is_gone(self) -> bool:
        """Return whether the other end was closed. What it may have sent is discarded."""
        try:
            return not self.connection.recv(4096)
        except BlockingIOError:
            return False
        except OSError:
            return True


class Server:
    """The clients of one socket. It serves the file in the present folder."""

    def __init__(self, listener: _socket.socket, changes: int) -> None:
        self._listener = listener
        self._changes = changes
        """Descriptor of the kernel's notices about the folder; -1: there are none."""
        self._clients: dict[int, Client] = {}
        self._content = _content()
        self._poll = select.poll()
        listener.setblocking(False)
        self._poll.register(listener.fileno(), select.POLLIN)
        if changes >= 0:
            self._poll.register(changes, select.POLLIN)

    def step(self) -> None:
        """Wait for the next event, and handle it."""
        for fd, _ in self._poll.poll(None if self._changes >= 0 else _LOOK_MILLISECONDS):
            if fd == self._listener.fileno():
                self._accept()
            elif fd == self._changes:
                os.read(fd, 65536)
            elif self._clients[fd].is_gone():
                self._drop(fd)
        # Read after the notices were taken: a later change brings another one.
        self._content = _content() or self._content
        for fd, client in list(self._clients.items()):
            self._send(fd, client)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            # By the C class: importing `socket`, which wraps it, takes 15 ms of a start.
            fd, _ = self._listener._accept()  # type: ignore[attr-defined] # noqa: SLF001 - socket.socket's own
            if len(self._clients) >= _MOST_CLIENTS:
                os.close(fd)
                return
            connection = _socket.socket(fileno=fd)
            connection.setblocking(False)
            self._clients[fd] = Client(connection)
            self._poll.register(fd, select.POLLIN)

    def _send(self, fd: int, client: Client) -> None:
        try:
            left = bool(self._content) and client.send(self._content)
        except OSError:
            self._drop(fd)
        else:
            self._poll.modify(fd, select.POLLIN | (select.POLLOUT if left else 0))

    def _drop(self, fd: int) -> None:
        self._poll.unregister(fd)
        self._clients.pop(fd).connection.close()


def start(attempt: Attempt, plan: PlanDict, *, plain: bool = False) -> None:
    """Fork the server, if the job is elastic. Its socket exists when this returns.

    `plain`: the engine's user is the submitter, and there is no container.
    """
    if not os.path.isdir(attempt.file(FOLDER)):
        return
    # Relative paths from here on, since a socket's path is short, and the submitter cannot enter the attempt's folder.
    os.chdir(attempt.file(FOLDER))
    listener = linux.listen(SOCKET, _WAITING)
    if os.fork() == 0:
        try:
            _serve(plan, listener, plain=plain)
        finally:
            os._exit(1)  # after any error: the child must not continue as a second holder
    os.chdir("/")
    listener.close()


def _serve(plan: PlanDict, listener: _socket.socket, *, plain: bool) -> NoReturn:
    linux.name_process("cockpit-notices")
    linux.drop_pipes()
    # Before the first connection: what a program of the job sends is not handled with rights of the engine.
    if not plain:
        program.become_submitter(plan)
        linux.drop_capabilities()
    # After the change of credentials, which clears this setting (prctl(2), PR_SET_PDEATHSIG).
    linux.end_with_parent()
    try:
        changes = linux.watch_renames(".")
    # The kernel allows only so many of them for each user.
    except OSError:
        changes = -1
    server = Server(listener, changes)
    while True:
        server.step()


def _content() -> bytes:
    """Return the list of workers; empty while there is none."""
    try:
        with open(FILE, "rb") as stream:
            return stream.read()
    except OSError:
        return b""
