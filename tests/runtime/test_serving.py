"""An engine that is asked to stop ends in order."""

from __future__ import annotations

import asyncio
import socket
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from cockpit.runtime import serving
from cockpit.runtime.server import Server

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.req("TR-04")
async def test_the_socket_is_removed_before_any_connection_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who is refused at an address that is there takes the engine for one that died, and starts another."""
    address = tmp_path / "engine.sock"
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(address))
    listener.listen()
    there: list[bool] = []
    stop = Server.stop

    async def stopped(self: Server) -> None:
        there.append(address.exists())
        await stop(self)

    async def nothing(*_: Any) -> None:
        pass

    monkeypatch.setattr(Server, "stop", stopped)
    monkeypatch.setattr(serving, "_begin", nothing)
    host = SimpleNamespace(act=nothing, stop=nothing)
    engine: Any = SimpleNamespace(
        begun=asyncio.Event(), stopping=asyncio.Event(), socket=address, host=host, members=None, version="1"
    )
    engine.stopping.set()
    await serving.serve(engine, listener, None)  # type: ignore[arg-type]  # nothing begins
    assert there == [False]
