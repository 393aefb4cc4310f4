"""A command inside a container, over the WebSocket of `exec`, with the Kubernetes client."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from kubernetes.aio.client import CoreV1Api
from kubernetes.aio.stream import WsApiClient

from tests.real.kubernetes.clients import exec_client_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.real.kubernetes.cluster import RealKubernetes

V4, V5 = "v4.channel.k8s.io", "v5.channel.k8s.io"
STDIN, STDOUT, STDERR, ERROR, RESIZE, CLOSE = 0, 1, 2, 3, 4, 255
PATIENCE_SECONDS = 60


class ExecSession:
    """printed: what came so far, by channel."""

    def __init__(self, socket: Any) -> None:
        self._socket = socket
        self.printed: dict[int, bytes] = {}

    async def send(self, data: bytes) -> None:
        await self._socket.send_bytes(bytes([STDIN]) + data)

    async def close_input(self) -> None:
        """Known since version 5 of the protocol."""
        await self._socket.send_bytes(bytes([CLOSE, STDIN]))

    async def resize(self, columns: int, rows: int) -> None:
        size = json.dumps({"Width": columns, "Height": rows}).encode()
        await self._socket.send_bytes(bytes([RESIZE]) + size)

    async def read_until(self, words: bytes) -> None:
        """Read until the output contains these words."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while words not in self.printed.get(STDOUT, b""):
                self._take(await self._socket.receive_bytes())

    async def exit_code(self) -> int:
        """Read to the end."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            async for message in self._socket:
                self._take(message.data)
        return WsApiClient.parse_error_data(self.printed[ERROR])

    def _take(self, frame: bytes) -> None:
        self.printed[frame[0]] = self.printed.get(frame[0], b"") + frame[1:]


@asynccontextmanager
async def exec_in(
    cluster: RealKubernetes,
    user: str,
    pod: tuple[str, str],
    *command: str,
    protocol: str = V4,
    container: str | None = None,
    **streams: bool,
) -> AsyncIterator[ExecSession]:
    """Run a command in a pod, given as namespace and name. `streams`: `stdin`, `tty`."""
    async with exec_client_of(cluster, user) as client:
        namespace, name = pod
        opened = await CoreV1Api(client).connect_get_namespaced_pod_exec_without_preload_content(
            name,
            namespace,
            command=list(command),
            container=container,
            stdout=True,
            stderr=not streams.get("tty", False),
            _headers={"sec-websocket-protocol": protocol},
            **streams,
        )
        async with opened as socket:
            yield ExecSession(socket)
