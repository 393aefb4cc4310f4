"""A shell over SSH: connects the remote program with a terminal, or with pipes, of this machine."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from cockpit.backends.remote_shell import LOST, ShellStreams, remote_shell
from cockpit.runtime.tasks import Tasks

if TYPE_CHECKING:
    import asyncssh

    from cockpit.backends.shell import OpenShell
    from cockpit.model.asking import ShellRequest

Connect = Callable[[], Awaitable["asyncssh.SSHClientConnection"]]


def ssh_shell(connect: Connect, line: str, request: ShellRequest) -> OpenShell:
    """Start the shell line on a remote host; return the user's terminal or three pipes."""

    async def session(streams: ShellStreams) -> int:
        return await _session(connect, line, request, streams)

    return remote_shell(session, request)


async def _session(connect: Connect, line: str, request: ShellRequest, streams: ShellStreams) -> int:
    """Run the command in an SSH session, connected to the streams, and return its exit code."""
    connection = await connect()
    size: dict[str, Any] = {}
    if request.terminal:
        size = {"term_type": request.term, "term_size": (request.columns, request.rows)}
    # encoding=None: bytes, since a terminal's output need not be UTF-8.
    async with connection, connection.create_process(line, encoding=None, **size) as process:
        beside = Tasks()
        beside.start(_send_input(process, streams), "what is typed")
        beside.start(_until_left(process, streams), "whether the client still listens")
        if request.terminal:
            beside.start(_report_sizes(process, request, streams), "the size of the terminal")
        # all output first: the exit code may arrive before the last of it
        await asyncio.gather(
            _copy_output(process.stdout, streams, errors=False), _copy_output(process.stderr, streams, errors=True)
        )
        await process.wait_closed()
        await beside.cancel_all()
        code = process.returncode
    return LOST if code is None else code


async def _copy_output(stream: asyncssh.SSHReader[bytes], streams: ShellStreams, *, errors: bool) -> None:
    while piece := await stream.read(1 << 16):
        await streams.write(piece, errors=errors)


async def _send_input(process: asyncssh.SSHClientProcess[bytes], streams: ShellStreams) -> None:
    """Send what the user types to the remote program, then end of file."""
    async for data in streams.typed():
        process.stdin.write(data)
        await process.stdin.drain()
    process.stdin.write_eof()


async def _report_sizes(
    process: asyncssh.SSHClientProcess[bytes], request: ShellRequest, streams: ShellStreams
) -> None:
    async for rows, columns in streams.sizes((request.rows, request.columns)):
        process.change_terminal_size(columns, rows)


async def _until_left(process: asyncssh.SSHClientProcess[bytes], streams: ShellStreams) -> None:
    """Close the remote program when the user closes the control socket."""
    await streams.left()
    process.close()
