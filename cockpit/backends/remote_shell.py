"""Connects a program on another machine with a terminal, or with pipes, of this machine.

It runs in a thread with an event loop and a connection of its own, because the caller, which holds the terminal, may
block its own event loop for as long as the user stays in the shell.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import socket
import struct
import termios
import threading
import tty
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from cockpit.backends.shell import OpenShell
from cockpit.backends.shell_ends import Ends, exit_bytes, pipes, pseudo_terminal
from cockpit.errors import CockpitError
from cockpit.model.asking import ShellOpened

if TYPE_CHECKING:
    from cockpit.model.asking import ShellRequest

LOOK_SECONDS = 0.2
"""How often the size of the terminal is read: only a controlling process would receive SIGWINCH."""
LOST = 255
"""Exit code when the connection fails, as ssh has it."""


class ShellStreams:
    """The input, output and size of a shell, as its connection to another machine uses them."""

    def __init__(self, ends: Ends, control: socket.socket) -> None:
        self._ends, self._control = ends, control

    async def typed(self) -> AsyncIterator[bytes]:
        """Yield what the user types or pipes in; ends with it."""
        fd = self._ends.stdin
        loop, queue = asyncio.get_running_loop(), asyncio.Queue[bytes]()

        def readable() -> None:
            try:
                data = os.read(fd, 1 << 16)
            except OSError:
                data = b""
            # End of input: an end of a terminal that is closed raises EIO instead.
            if not data:
                loop.remove_reader(fd)
            queue.put_nowait(data)

        loop.add_reader(fd, readable)
        try:
            while data := await queue.get():
                yield data
        finally:
            loop.remove_reader(fd)

    async def write(self, data: bytes, *, errors: bool = False) -> None:
        """Write output of the program. `errors`: its standard error."""
        # In a thread, since a terminal that the user has stopped (Ctrl-S) blocks the write.
        await asyncio.to_thread(_write_all, self._ends.stderr if errors else self._ends.stdout, data)

    async def sizes(self, before: tuple[int, int]) -> AsyncIterator[tuple[int, int]]:
        """Yield rows and columns of the terminal whenever they change. Never ends. `before`: those that the other end
        knows, since the terminal may have changed while the connection was made."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            now = _size(self._ends.stdin)
            if now != before:
                yield now
                before = now

    async def left(self) -> None:
        """Return when the user has closed the control socket."""
        self._control.setblocking(False)
        with suppress(OSError):
            # The client never sends anything: an empty read means that it has closed its end.
            while await asyncio.get_running_loop().sock_recv(self._control, 1):
                pass


Session = Callable[[ShellStreams], Awaitable[int]]
"""Runs the program with these streams and returns its exit code. Raises `CockpitError` where it cannot run."""


def remote_shell(session: Session, request: ShellRequest, *, kept: bool = False) -> OpenShell:
    """Run the session in a thread of its own, and return the user's side of it. `kept`: the container is held."""
    # The same interface as a shell on this machine: the exit code arrives over a control socket.
    ours, theirs = socket.socketpair()
    ends = pseudo_terminal(request) if request.terminal else pipes()
    # raw: the remote terminal echoes and edits; with both doing it, each key would appear twice
    if request.terminal:
        tty.setraw(ends.stdin)
    work = threading.Thread(target=_live, args=(session, ends, theirs), daemon=True)
    work.start()
    opened = ShellOpened(request.terminal, kept=kept, remounted=False, cards_freed=False)
    return OpenShell(opened, (ours.detach(), *ends.outer))


def _live(session: Session, ends: Ends, control: socket.socket) -> None:
    """Run the session in its own event loop, then send the exit code and close the descriptors."""

    async def run() -> int:
        return await session(ShellStreams(ends, control))

    code = LOST
    try:
        code = asyncio.run(run())
    except CockpitError as error:
        with suppress(OSError):
            os.write(ends.stderr, f"{error}\r\n".encode())
    finally:
        with suppress(OSError):
            control.sendall(exit_bytes(code))
        control.close()
        for fd in ends.inner:
            os.close(fd)


def _write_all(fd: int, data: bytes) -> None:
    with suppress(OSError):
        while data:
            data = data[os.write(fd, data) :]


def _size(fd: int) -> tuple[int, int]:
    rows, columns, _, _ = struct.unpack("HHHH", fcntl.ioctl(fd, termios.TIOCGWINSZ, bytes(8)))
    return rows, columns
