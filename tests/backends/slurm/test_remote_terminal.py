"""A terminal of this machine connected with a program behind a real SSH server in this process."""

from __future__ import annotations

import asyncio
import fcntl
import os
import select
import socket
import struct
import termios
from collections.abc import AsyncIterator
from pathlib import Path

import asyncssh
import pytest

from cockpit.backends.remote_shell import LOST
from cockpit.backends.shell_ends import exit_bytes
from cockpit.backends.slurm.wire.ssh_shell import Connect, ssh_shell
from cockpit.errors import Unreachable
from cockpit.model.asking import ShellRequest
from cockpit.model.ids import JobId

LONGEST = 30.0


async def echo(process: asyncssh.SSHServerProcess[str]) -> None:
    """Tells the size of the terminal and each change of it, and repeats each line; "bye" ends it with code 7."""
    process.stdout.write(f"size {process.term_size[:2]} {process.term_type}\r\n")
    process.stderr.write("begun\n")
    while True:
        try:
            line = await process.stdin.readline()
        except asyncssh.TerminalSizeChanged as changed:
            process.stdout.write(f"now {(changed.width, changed.height)}\r\n")
            continue
        if not line or line == "bye\n":
            process.stdout.write("ended\r\n" if not line else "")
            process.exit(7)
            return
        process.stdout.write(f"heard {line.strip()}\r\n")


class Anybody(asyncssh.SSHServer):
    def begin_auth(self, username: str) -> bool:
        return False


@pytest.fixture
async def connect(tmp_path: Path) -> AsyncIterator[Connect]:
    key = asyncssh.generate_private_key("ssh-ed25519")
    server = await asyncssh.create_server(
        Anybody, "127.0.0.1", 0, server_host_keys=[key], process_factory=echo, line_editor=False
    )
    port = server.get_port()

    async def connect_to_it() -> asyncssh.SSHClientConnection:
        return await asyncssh.connect(
            "127.0.0.1", port, known_hosts=None, config=None, client_keys=None, agent_path=None
        )

    async with server:
        yield connect_to_it


async def read_until(fd: int, wanted: str) -> str:
    read = b""
    loop, ready = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(fd, ready.set)
    try:
        async with asyncio.timeout(LONGEST):
            while wanted.encode() not in read:
                await ready.wait()
                ready.clear()
                if select.select([fd], [], [], 0)[0]:  # the event may be of what was read already
                    read += os.read(fd, 1 << 16)
    finally:
        loop.remove_reader(fd)
    return read.decode()


async def exit_code(control: int) -> bytes:
    with socket.socket(fileno=control) as end:
        end.setblocking(False)
        async with asyncio.timeout(LONGEST):
            return await asyncio.get_running_loop().sock_recv(end, 16)


def descriptors(connect: Connect, line: str, request: ShellRequest) -> tuple[int, ...]:
    """Start the shell and return its control socket, then its terminal or its three pipes."""
    shell = ssh_shell(connect, line, request)
    streams = shell.pipe_fds if shell.terminal_fd is None else (shell.terminal_fd,)
    assert streams is not None
    return (shell.control_fd, *streams)


def a_request(**fields: object) -> ShellRequest:
    return ShellRequest(job=JobId(1), **fields)  # type: ignore[arg-type] - its own fields


@pytest.mark.req("SL-22")
async def test_the_remote_program_learns_the_size_of_the_terminal_and_each_change_of_it(connect: Connect) -> None:
    control, terminal = descriptors(connect, "sh", a_request(terminal=True, rows=30, columns=90, term="xterm"))
    assert "size (90, 30) xterm" in await read_until(terminal, "xterm")
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 41, 132, 0, 0))
    assert "now (132, 41)" in await read_until(terminal, "now (132, 41)")
    os.write(terminal, b"hello\n")
    await read_until(terminal, "heard hello")
    os.write(terminal, b"bye\n")
    assert await exit_code(control) == exit_bytes(7)
    os.close(terminal)


@pytest.mark.req("SL-22")
async def test_without_a_terminal_output_and_errors_are_apart_and_the_end_of_the_input_arrives(
    connect: Connect,
) -> None:
    control, stdin, stdout, stderr = descriptors(connect, "sh", a_request(terminal=False))
    assert await read_until(stderr, "begun") == "begun\n"
    os.write(stdin, b"hello\n")
    await read_until(stdout, "heard hello")
    os.close(stdin)
    assert "ended" in await read_until(stdout, "ended")
    assert await exit_code(control) == exit_bytes(7)
    os.close(stdout)
    os.close(stderr)


@pytest.mark.req("SL-22")
async def test_an_unreachable_host_is_reported_in_the_terminal_with_sshs_exit_code() -> None:
    async def unreachable() -> asyncssh.SSHClientConnection:
        raise Unreachable("lab cannot be reached over SSH.")

    control, terminal = descriptors(unreachable, "sh", a_request(terminal=True))
    assert "lab cannot be reached over SSH." in await read_until(terminal, "SSH.")
    assert await exit_code(control) == exit_bytes(LOST)
    os.close(terminal)


@pytest.mark.req("SL-22")
@pytest.mark.parametrize("terminal", [False, True])
async def test_a_remote_program_ends_when_the_user_leaves(connect: Connect, terminal: bool) -> None:
    control, *streams = descriptors(connect, "sh", a_request(terminal=terminal))
    output = streams[0] if terminal else streams[2]
    await read_until(output, "begun")
    os.close(control)
    async with asyncio.timeout(LONGEST):
        while await asyncio.to_thread(_read, output):
            pass  # until the other end is closed, with the connection
    for fd in streams:
        os.close(fd)


def _read(fd: int) -> bytes:
    try:
        return os.read(fd, 1 << 16)
    except OSError:  # the other side of the terminal is closed
        return b""
