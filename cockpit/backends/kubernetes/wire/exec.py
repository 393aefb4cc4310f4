"""Runs a command in a container of a pod over a WebSocket.

Source: k8s.io/apimachinery, util/remotecommand. Each binary frame begins with the number of its channel: 0 input,
1 output, 2 errors, 3 the end (a Status with the exit code), 4 the size of the terminal. With protocol v5 the frame 255
and a channel's number closes that channel, which tells a program the end of its input; v4 has no such frame.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from cockpit.backends.kubernetes.resources import PODS
from cockpit.backends.kubernetes.wire.answers import Status
from cockpit.backends.remote_shell import LOST, ShellStreams
from cockpit.errors import Unreachable
from cockpit.runtime.tasks import Tasks

if TYPE_CHECKING:
    from aiohttp import ClientWebSocketResponse

    from cockpit.backends.kubernetes.objects.pod import Pod
    from cockpit.backends.kubernetes.wire.api import Api
    from cockpit.model.asking import ShellRequest

_V5 = "v5.channel.k8s.io"
PROTOCOLS = (_V5, "v4.channel.k8s.io")
_INPUT, _OUTPUT, _ERRORS, _END, _SIZE, _CLOSE = 0, 1, 2, 3, 4, 255
_PIECE = 1 << 15
"""Largest piece of input in one frame."""


async def run_in_pod(
    connect: Callable[[], Api],
    where: tuple[str, str, str],
    argv: Sequence[str],
    request: ShellRequest,
    streams: ShellStreams,
) -> int:
    """Run a command in a pod's container, connected to the streams, and return its exit code.

    `connect` makes a connection of its own, since this runs in an event loop of its own. `where`: namespace, pod and
    container.
    """
    namespace, pod, container = where
    query = [
        ("container", container),
        ("stdin", "true"),
        ("stdout", "true"),
        # A terminal has one stream for both.
        ("stderr", "false" if request.terminal else "true"),
        ("tty", "true" if request.terminal else "false"),
        *(("command", word) for word in argv),
    ]
    api = connect()
    try:
        socket = await api.websocket(PODS.path(namespace, pod, "exec"), query, PROTOCOLS)
        try:
            return await _talk(socket, request, streams)
        finally:
            await socket.close()
    finally:
        await api.close()


async def run_quietly(api: Api, pod: Pod, argv: Sequence[str]) -> tuple[int, str]:
    """Run a command in a pod's first container without input; return its exit code and what it printed."""
    container = pod.spec.containers[0].name if pod.spec.containers else ""
    query = [("container", container), ("stdout", "true"), ("stderr", "true"), *(("command", word) for word in argv)]
    path = PODS.path(pod.metadata.namespace, pod.metadata.name, "exec")
    socket = await api.websocket(path, query, PROTOCOLS)
    code, printed = LOST, b""
    try:
        async for message in socket:
            if isinstance(message.data, bytes) and message.data:
                channel, data = message.data[0], message.data[1:]
                if channel == _END and data:
                    code = exit_code_in(data)
                elif channel in {_OUTPUT, _ERRORS}:
                    printed += data
    finally:
        await socket.close()
    return code, printed.decode(errors="replace")


async def _talk(socket: ClientWebSocketResponse, request: ShellRequest, streams: ShellStreams) -> int:
    beside = Tasks()
    try:
        if request.terminal:
            await _send_size(socket, request.rows, request.columns)
            beside.start(_report_sizes(socket, request, streams), "the size of the terminal")
        beside.start(_send_input(socket, streams), "what is typed")
        beside.start(_until_left(socket, streams), "whether the client still listens")
        return await _copy_output(socket, streams)
    finally:
        await beside.cancel_all()


async def _copy_output(socket: ClientWebSocketResponse, streams: ShellStreams) -> int:
    """Write what arrives until the command ends; return its exit code."""
    code = LOST
    async for message in socket:
        frame = message.data
        if not isinstance(frame, bytes) or not frame:
            continue
        channel, data = frame[0], frame[1:]
        if channel in {_OUTPUT, _ERRORS} and data:
            await streams.write(data, errors=channel == _ERRORS)
        elif channel == _END and data:
            # Output may still follow: the server closes the socket when all has been sent.
            code = exit_code_in(data)
    return code


def exit_code_in(data: bytes) -> int:
    """Return the exit code in the last message of a command. Raises `Unreachable` where the command could not run."""
    try:
        status = msgspec.json.decode(data, type=Status)
    except msgspec.DecodeError:
        return LOST
    if status.status == "Success":
        return 0
    causes = status.details.causes if status.details is not None else None
    for cause in causes or ():
        if cause.reason == "ExitCode" and cause.message.isascii() and cause.message.isdigit():
            return int(cause.message)
    raise Unreachable(f"The command could not be run in the container: {status.message}")


async def _send_input(socket: ClientWebSocketResponse, streams: ShellStreams) -> None:
    with suppress(ConnectionError):
        async for data in streams.typed():
            for start in range(0, len(data), _PIECE):
                await socket.send_bytes(bytes([_INPUT]) + data[start : start + _PIECE])
        if socket.protocol == _V5:
            await socket.send_bytes(bytes([_CLOSE, _INPUT]))


async def _report_sizes(socket: ClientWebSocketResponse, request: ShellRequest, streams: ShellStreams) -> None:
    with suppress(ConnectionError):
        async for rows, columns in streams.sizes((request.rows, request.columns)):
            await _send_size(socket, rows, columns)


async def _send_size(socket: ClientWebSocketResponse, rows: int, columns: int) -> None:
    await socket.send_bytes(bytes([_SIZE]) + json.dumps({"Width": columns, "Height": rows}).encode())


async def _until_left(socket: ClientWebSocketResponse, streams: ShellStreams) -> None:
    await streams.left()
    await asyncio.shield(socket.close())
