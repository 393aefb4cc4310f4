"""A WebSocket to an API server."""

from __future__ import annotations

from pathlib import Path

import pytest
from aiohttp import WSMsgType, web

from cockpit.backends.kubernetes.wire import api as module
from cockpit.backends.kubernetes.wire.api import Api
from cockpit.backends.kubernetes.wire.connection import Connection
from cockpit.model.ids import Millis
from tests.backends.kubernetes.conftest import write_kubeconfig


@pytest.mark.req("KU-09")
async def test_an_idle_stream_is_kept_alive_by_pings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "HEARTBEAT_SECONDS", 0.05)
    seen: list[WSMsgType] = []

    async def serve(request: web.Request) -> web.WebSocketResponse:
        # The server answers no ping by itself, and ends at the second one: the first was answered by hand.
        socket = web.WebSocketResponse(autoping=False, protocols=("v5.channel.k8s.io",))
        await socket.prepare(request)
        async for message in socket:
            seen.append(message.type)
            if message.type is WSMsgType.PING:
                await socket.pong()
            if len(seen) > 1:
                await socket.close()
        return socket

    application = web.Application()
    application.router.add_get("/{path:.*}", serve)
    runner = web.AppRunner(application)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0]
    api = Api(Connection("fake", (str(write_kubeconfig(tmp_path, f"http://{host}:{port}")),), lambda: Millis(0)))
    stream = await api.websocket("/exec", (), ("v5.channel.k8s.io",))
    async for _ in stream:
        raise AssertionError("nothing is sent")
    assert seen == [WSMsgType.PING, WSMsgType.PING]
    await api.close()
    await runner.cleanup()
