"""Ways to a real API server: through a proxy, and with a kubeconfig in several files."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

import pytest

from cockpit.backends.kubernetes.wire.api import Api
from cockpit.backends.kubernetes.wire.connection import Connection
from cockpit.errors import Unreachable
from cockpit.runtime.clock import SystemClock
from tests.real.kubernetes.cluster import ADMIN

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.real.kubernetes.cluster import RealKubernetes

pytestmark = [pytest.mark.real, pytest.mark.real_kubernetes, pytest.mark.req("KU-01")]


class Proxy:
    """An HTTP proxy for connections with TLS (CONNECT), which remembers where they went."""

    def __init__(self) -> None:
        self.targets: list[str] = []
        self.address = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        method, target, _ = (await reader.readuntil(b"\r\n\r\n")).decode().split(" ", 2)
        assert method == "CONNECT"
        self.targets.append(target)
        host, port = target.split(":")
        far_reader, far_writer = await asyncio.open_connection(host, int(port))
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await asyncio.gather(_copy(reader, far_writer), _copy(far_reader, writer))


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    writer.close()


@asynccontextmanager
async def running_proxy() -> AsyncIterator[Proxy]:
    proxy = Proxy()
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    proxy.address = f"http://{host}:{port}"
    yield proxy
    server.close()


async def status(*files: Path) -> dict[str, Any]:
    """Return who the server says that the user of the context `real` is."""
    api = Api(Connection("real", tuple(map(str, files)), SystemClock().now))
    try:
        body = await api.send("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", b"{}")
    finally:
        await api.close()
    user: dict[str, Any] = json.loads(body)["status"]["userInfo"]
    return user


async def test_the_kubeconfigs_proxy_leads_to_the_server(cluster: RealKubernetes, tmp_path: Path) -> None:
    config = json.loads(cluster.kubeconfig(ADMIN).read_text())
    file = tmp_path / "config"
    async with running_proxy() as proxy:
        config["clusters"][0]["cluster"]["proxy-url"] = proxy.address
        file.write_text(json.dumps(config))
        assert (await status(file))["username"] == ADMIN
        assert proxy.targets == [cluster.address.removeprefix("https://")]
    with pytest.raises(Unreachable, match="of the context 'real' does not answer"):
        await status(file)


async def test_the_environments_proxy_counts_as_for_kubectl(
    cluster: RealKubernetes, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = cluster.kubeconfig(ADMIN)
    async with running_proxy() as proxy:
        monkeypatch.setenv("HTTPS_PROXY", proxy.address)
        assert (await status(file))["username"] == ADMIN
        assert len(proxy.targets) == 1
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        assert (await status(file))["username"] == ADMIN
        assert len(proxy.targets) == 1


async def test_a_client_certificate_may_be_in_files_beside_one_of_several_kubeconfigs(
    cluster: RealKubernetes, tmp_path: Path
) -> None:
    config = json.loads(cluster.kubeconfig(ADMIN).read_text())
    certificate, key = cluster.pair(ADMIN)
    keys, clusters = tmp_path / "keys", tmp_path / "clusters"
    for folder in (keys, clusters):
        folder.mkdir()
    for name, file in (("user.crt", certificate), ("user.key", key)):
        (keys / name).write_bytes(file.read_bytes())
    user = {"client-certificate": "user.crt", "client-key": "user.key"}
    (keys / "config").write_text(json.dumps({"users": [{"name": ADMIN, "user": user}]}))
    (clusters / "config").write_text(json.dumps({each: config[each] for each in ("clusters", "contexts")}))
    assert (await status(keys / "config", clusters / "config"))["groups"] == ["system:masters", "system:authenticated"]
    (keys / "user.crt").write_text("no certificate")
    with pytest.raises(Unreachable, match="certificates of the context 'real' cannot be used"):
        await status(keys / "config", clusters / "config")
