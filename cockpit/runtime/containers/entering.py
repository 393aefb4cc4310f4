"""Run a program in a container, from the engine: spawn the entering program and return its descriptors.

The engine then passes the descriptors to the client, so that input and output do not go through the engine.
"""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
from typing import TYPE_CHECKING

import msgspec

from cockpit.runtime.containers.spawning import shim_command

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cockpit.runtime.containers.shim.attempt import Attempt

_ENTER_SECONDS = 10
"""Time limit for entering, which normally takes some tens of milliseconds."""
_WELCOME = b"+"


class Terminal(msgspec.Struct, frozen=True):
    """The user's terminal: its size and its type (TERM)."""

    rows: int
    columns: int
    term: str


class EntryFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What a user should know when entering a container."""

    kept: bool
    """Whether the container is held: its command has ended, its files are unchanged, its processes are gone."""
    remounted: bool = False
    """Whether its holder had died (reboot, killed) and a new one was made: the folders in memory, /tmp, /run, /root and
    /var/tmp, are empty."""
    cards_freed: bool = False
    """Whether it had cards and no longer has them."""
    plain: bool = False
    """Whether there is no container: the processes are among all others of this user."""


class EnteredShell(msgspec.Struct, frozen=True, kw_only=True):
    """The descriptors of a program in a container. The caller owns them, and closes them after passing them on."""

    terminal_fd: int | None
    """Master side of the container's pseudo terminal; None if no terminal was requested."""
    pipe_fds: tuple[int, int, int] | None
    """For a session without a terminal: the write end of stdin, the read ends of stdout and stderr."""
    control_fd: int
    """A stream socket on which the exit code comes at the end: four bytes, big-endian, as a shell reports it. Closing
    every copy of it kills the program."""
    facts: EntryFacts


class EnterError(Exception):
    """The container could not be entered; the text says why."""


async def enter(
    attempt: Attempt, command: Sequence[str], terminal: Terminal | None, *, label: str, facts: EntryFacts, python: str
) -> EnteredShell:
    """Run `command` (empty: a shell) in a container that has a living holder. Raises EnterError."""
    ours, theirs = socket.socketpair()
    pipes = None if terminal else _Pipes()
    inherited = (theirs.fileno(), *(pipes.inner if pipes else ()))
    arguments = (attempt.path, _request(command, terminal, label), *map(str, inherited))
    try:
        try:
            await _spawn(shim_command(python, "enter", *arguments), inherited)
        finally:
            # The child has its own copies. While ours are open too, the end of a stream would never be seen.
            theirs.close()
            if pipes:
                pipes.close_inner()
        terminal_fd = await _greeting(ours)
    # Of a cancellation too: with the control socket closed, the watcher kills the program that may have started.
    except BaseException:
        ours.close()
        if pipes:
            pipes.close_outer()
        raise
    outer = pipes.outer if pipes else None
    # The caller owns the descriptor: the socket object must not close it when it is collected.
    return EnteredShell(terminal_fd=terminal_fd, pipe_fds=outer, control_fd=ours.detach(), facts=facts)


class _Pipes:
    """Standard input, output and error of an entered command."""

    def __init__(self) -> None:
        stdin, stdout, stderr = os.pipe(), os.pipe(), os.pipe()
        self.outer = (stdin[1], stdout[0], stderr[0])
        self.inner = (stdin[0], stdout[1], stderr[1])

    def close_inner(self) -> None:
        for fd in self.inner:
            os.close(fd)

    def close_outer(self) -> None:
        for fd in self.outer:
            os.close(fd)


def _request(command: Sequence[str], terminal: Terminal | None, label: str) -> str:
    size = [terminal.rows, terminal.columns] if terminal else []
    term = terminal.term if terminal else ""
    return msgspec.json.encode({"command": command, "terminal": size, "term": term, "label": label}).decode()


async def _spawn(command: list[str], inherited: tuple[int, ...]) -> None:
    """Start the entering program; the loop reaps it when it ends, however long that takes."""
    # In a thread, since Popen returns only after the child has executed the program.
    process = await asyncio.to_thread(
        subprocess.Popen,
        command,
        pass_fds=inherited,
        start_new_session=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        # Nothing of the engine's environment reaches the container: the plan has the program's variables.
        env={},
    )
    loop, pidfd = asyncio.get_running_loop(), os.pidfd_open(process.pid)

    def reap() -> None:
        loop.remove_reader(pidfd)
        os.close(pidfd)
        process.wait()

    loop.add_reader(pidfd, reap)


async def _greeting(control: socket.socket) -> int | None:
    """Wait for the greeting, and return the descriptor that came with it.

    Only one byte is read, since the exit code may follow at once.
    """
    try:
        async with asyncio.timeout(_ENTER_SECONDS):
            await _readable(control)
    except TimeoutError:
        raise EnterError(f"the container did not answer within {_ENTER_SECONDS} seconds; try again") from None
    # At most one descriptor comes with the greeting: the terminal.
    mark, fds, _, _ = socket.recv_fds(control, 1, 1)
    if mark == _WELCOME:
        return fds[0] if fds else None
    sentence = control.makefile("rb").readline() if mark else b"the container ended while it was being entered"
    raise EnterError(sentence.decode(errors="replace").strip())


async def _readable(sock: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()
    loop.add_reader(sock, lambda: None if ready.done() else ready.set_result(None))
    try:
        await ready
    finally:
        loop.remove_reader(sock)
