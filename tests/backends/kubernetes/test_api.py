"""Single requests and whole lists: what is sent, repeated, renewed and refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cockpit.backends.kubernetes.objects.pod import Pod
from cockpit.backends.kubernetes.resources import PODS
from cockpit.backends.kubernetes.wire.answers import ApiError
from cockpit.backends.kubernetes.wire.api import Api
from cockpit.backends.kubernetes.wire.connection import Connection
from cockpit.backends.kubernetes.wire.lists import PAGE, Page, read_list
from cockpit.errors import Unreachable
from cockpit.model.ids import Millis
from tests.backends.kubernetes.conftest import Waits, write_kubeconfig
from tests.doubles.kubernetes_api import FakeApi, Reply

DECODER = msgspec.json.Decoder(Page[Pod])
HERE = "/api/v1/namespaces/here/pods"


def pod(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}}


async def names(api: Api) -> list[str]:
    return [each.metadata.name for each in (await read_list(api, PODS, DECODER)).items]


@pytest.mark.req("KU-02")
async def test_a_long_list_is_read_in_pages_from_one_version(api: Api, server: FakeApi) -> None:
    wanted = [f"p{number:04}" for number in range(2 * PAGE + 1)]
    for name in wanted:
        server.create(HERE, pod(name))
    assert await names(api) == wanted
    lists = [each for each in server.requests if each.startswith("GET /api/v1/pods")]
    assert len(lists) == 3
    # With resourceVersion=0 a server would ignore the limit.
    assert all(f"limit={PAGE}" in each and "resourceVersion" not in each for each in lists)


@pytest.mark.req("KU-02")
async def test_a_list_that_expires_while_it_is_read_is_read_once_more(api: Api, server: FakeApi) -> None:
    server.create(HERE, pod("a"))
    server.answer_next("GET", Reply.failure(410, "Expired", "too old"))
    assert await names(api) == ["a"]
    server.answer_next("GET", Reply.failure(410, "Expired", "too old"))
    server.answer_next("GET", Reply.failure(410, "Expired", "too old"))
    with pytest.raises(ApiError) as error:
        await names(api)
    assert error.value.is_expired


@pytest.mark.req("KU-02")
async def test_a_busy_server_is_asked_again_when_it_says(api: Api, server: FakeApi, waits: Waits) -> None:
    server.create(HERE, pod("a"))
    server.answer_next("GET", Reply.come_later(3))
    server.answer_next("GET", Reply.come_later(40))
    assert await names(api) == ["a"]
    # A server cannot make a user wait for as long as it likes.
    assert waits.seconds == [3.0, 10.0]


@pytest.mark.req("KU-02")
async def test_patience_with_a_busy_server_ends(api: Api, server: FakeApi, waits: Waits) -> None:
    for _ in range(9):
        server.answer_next("GET", Reply.come_later(9))
    with pytest.raises(ApiError, match=r"429.*Too many requests, please try again later"):
        await names(api)
    assert waits.seconds == [9.0, 9.0, 9.0]


@pytest.mark.req("KU-02")
async def test_a_cut_answer_is_no_answer(api: Api, server: FakeApi) -> None:
    body = json.dumps({"items": [pod("a")]}).encode()
    server.answer_next("GET", Reply(body=body, cut=20))
    with pytest.raises(Unreachable, match="does not answer"):
        await names(api)
    server.answer_next("GET", Reply(body=body[:-3]))
    with pytest.raises(Unreachable, match="answer about pods cannot be read"):
        await names(api)


@pytest.mark.req("KU-01", "TR-04")
async def test_a_server_that_is_not_there_is_named_with_its_context(tmp_path: Path) -> None:
    file = write_kubeconfig(tmp_path, "http://127.0.0.1:9")
    api = Api(Connection("fake", (str(file),), lambda: Millis(0)))
    with pytest.raises(Unreachable, match=r"http://127.0.0.1:9 of the context 'fake' does not answer"):
        await api.get("/version")
    await api.close()


@pytest.mark.req("KU-01")
async def test_the_words_of_a_refusal_are_the_servers(api: Api, server: FakeApi) -> None:
    words = 'pods is forbidden: User "ann" cannot list resource "pods" in API group "" at the cluster scope'
    server.answer_next("GET", Reply.failure(403, "Forbidden", words))
    with pytest.raises(ApiError) as error:
        await names(api)
    assert (error.value.is_forbidden, error.value.message) == (True, words)
    server.answer_next("GET", Reply(502, b"<html>\x1b[31mBad gateway</html>"))
    with pytest.raises(ApiError) as error:
        await names(api)
    assert (error.value.code, "\x1b" in str(error.value)) == (502, False)


# An exec plugin that gives another token each time, and says until when it is valid.
PLUGIN = """
import json, pathlib
calls = pathlib.Path({calls!r})
calls.write_text(calls.read_text() + "x" if calls.exists() else "x")
status = {{"token": "token-%d" % len(calls.read_text()), "expirationTimestamp": "2026-03-01T10:00:00Z"}}
print(json.dumps({{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status}}))
"""
TEN_OCLOCK = 1_772_359_200_000


def with_plugin(folder: Path, address: str) -> Path:
    plugin = folder / "plugin.py"
    plugin.write_text(PLUGIN.format(calls=str(folder / "calls")))
    api_version = "client.authentication.k8s.io/v1"
    user = f"{{exec: {{apiVersion: {api_version}, command: python3, args: ['{plugin}'], interactiveMode: Never}}}}"
    return write_kubeconfig(folder, address, user)


@pytest.mark.req("KU-01")
async def test_credentials_of_a_plugin_are_renewed_before_they_end(server: FakeApi, tmp_path: Path) -> None:
    now = [TEN_OCLOCK - 3_600_000]
    file = with_plugin(tmp_path, server.address)
    api = Api(Connection("fake", (str(file),), lambda: Millis(now[0])))
    for at in (now[0], TEN_OCLOCK - 61_000, TEN_OCLOCK - 60_000):
        now[0] = at
        await api.get("/api/v1/pods")
    assert len((tmp_path / "calls").read_text()) == 2
    await api.close()


@pytest.mark.req("KU-01")
async def test_credentials_that_the_server_refuses_are_renewed_once(server: FakeApi, tmp_path: Path) -> None:
    file = with_plugin(tmp_path, server.address)
    api = Api(Connection("fake", (str(file),), lambda: Millis(0)))
    server.answer_next("GET", Reply.failure(401, "Unauthorized", "Unauthorized"))
    await api.get("/api/v1/pods")
    assert len((tmp_path / "calls").read_text()) == 2
    for _ in range(2):
        server.answer_next("GET", Reply.failure(401, "Unauthorized", "Unauthorized"))
    with pytest.raises(
        Unreachable, match=r"does not accept the credentials of the context 'fake' \(401\). Log in again"
    ):
        await api.get("/api/v1/pods")
    await api.close()


@pytest.mark.req("KU-01", "TR-10")
async def test_a_plugin_that_fails_says_why(server: FakeApi, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    failing = (
        "{exec: {apiVersion: client.authentication.k8s.io/v1, command: sh, args: ['-c', 'echo no login >&2; exit 3']}}"
    )
    file = write_kubeconfig(tmp_path, server.address, failing)
    api = Api(Connection("fake", (str(file),), lambda: Millis(0)))
    with pytest.raises(Unreachable, match=r"gives no credentials: exec: process returned 3.*no login"):
        await api.get("/version")
    # The client's own log would be written across the screen.
    assert capfd.readouterr() == ("", "")
    await api.close()
