"""Connects a remote program with a terminal, or with pipes, of this machine.

It runs in a thread with an event loop and an SSH connection of its own, because the caller, which holds the terminal,
may block its own event loop for as long as the user stays in the shell.
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
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from cockpit.backends.slurm.wire.terminal import Ends, exit_bytes, pipes, pseudo_terminal
from cockpit.errors import CockpitError
from cockpit.runtime.tasks import Tasks

if TYPE_CHECKING:
    import asyncssh

    from cockpit.model.asking import ShellRequest

LOOK_SECONDS = 0.2
"""How often the size of the terminal is read: only a controlling process would receive SIGWINCH."""
LOST = 255
"""Exit code when the connection fails, as ssh has it."""

Connect = Callable[[], Awaitable["asyncssh.SSHClientConnection"]]


def remote_shell(connect: Connect, line: str, request: ShellRequest) -> tuple[int, ...]:
    """Start the shell line on a remote host; return the control socket and the user's terminal or three pipes."""
    # The same interface as a shell on this machine (`terminal.at_terminal`): the exit code arrives over a control
    # socket.
    ours, theirs = socket.socketpair()
    ends = pseudo_terminal(request) if request.terminal else pipes()
    # raw: the remote terminal echoes and edits; with both doing it, each key would appear twice
    if request.terminal:
        tty.setraw(ends.stdin)
    work = threading.Thread(target=_live, args=(connect, line, request, ends, theirs), daemon=True)
    work.start()
    return (ours.detach(), *ends.outer)


def _live(connect: Connect, line: str, request: ShellRequest, ends: Ends, control: socket.socket) -> None:
    """Run the session in its own event loop, then send the exit code and close the descriptors."""
    code = LOST
    try:
        code = asyncio.run(_session(connect, line, request, ends, control))
    except CockpitError as error:
        with suppress(OSError):
            os.write(ends.stderr, f"{error}\r\n".encode())
    finally:
        with suppress(OSError):
            control.sendall(exit_bytes(code))
        control.close()
        for fd in ends.inner:
            os.close(fd)


async def _session(connect: Connect, line: str, request: ShellRequest, ends: Ends, control: socket.socket) -> int:
    """Run the command in an SSH session, connected to `ends`, and return its exit code."""
    connection = await connect()
    size: dict[str, Any] = {}
    if request.terminal:
        size = {"term_type": request.term, "term_size": (request.columns, request.rows)}
    # encoding=None: bytes, since a terminal's output need not be UTF-8.
    async with connection, connection.create_process(line, encoding=None, **size) as process:
        beside = Tasks()
        beside.start(_send_input(process, ends.stdin), "what is typed")
        beside.start(_until_left(process, control), "whether the client still listens")
        if request.terminal:
            beside.start(_report_sizes(process, ends.stdin), "the size of the terminal")
        # all output first: the exit code may arrive before the last of it
        await asyncio.gather(_copy_output(process.stdout, ends.stdout), _copy_output(process.stderr, ends.stderr))
        await process.wait_closed()
        await beside.cancel_all()
        code = process.returncode
    return LOST if code is None else code


async def _copy_output(stream: asyncssh.SSHReader[bytes], fd: int) -> None:
    # in a thread, since a terminal that the user has stopped (Ctrl-S) blocks the write
    while piece := await stream.read(1 << 16):
        await asyncio.to_thread(_write_all, fd, piece)


def _write_all(fd: int, data: bytes) -> None:
    with suppress(OSError):
        while data:
            data = data[os.write(fd, data) :]


async def _send_input(process: asyncssh.SSHClientProcess[bytes], fd: int) -> None:
    """Send what the user types to the remote program, then end of file."""
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
            process.stdin.write(data)
            await process.stdin.drain()
        process.stdin.write_eof()
    finally:
        loop.remove_reader(fd)


async def _report_sizes(process: asyncssh.SSHClientProcess[bytes], fd: int) -> None:
    """Report changes of the terminal's size to the remote host."""
    before = _size(fd)
    while True:
        await asyncio.sleep(LOOK_SECONDS)
        now = _size(fd)
        if now != before:
            process.change_terminal_size(now[1], now[0])
            before = now


def _size(fd: int) -> tuple[int, int]:
    rows, columns, _, _ = struct.unpack("HHHH", fcntl.ioctl(fd, termios.TIOCGWINSZ, bytes(8)))
    return rows, columns


async def _until_left(process: asyncssh.SSHClientProcess[bytes], control: socket.socket) -> None:
    """Close the remote program when the user closes the control socket."""
    control.setblocking(False)
    with suppress(OSError):
        if await asyncio.get_running_loop().sock_recv(control, 1) == b"":
            process.close()
