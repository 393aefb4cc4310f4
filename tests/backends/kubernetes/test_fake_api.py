"""What the tests' own API server does on demand, and a healthy one does not."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from aiohttp import ClientPayloadError, ClientSession

from tests.doubles.kubernetes_api import FakeApi, Reply

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from aiohttp import ClientResponse

PODS = "/api/v1/namespaces/here/pods"


@pytest.fixture
async def api() -> AsyncIterator[FakeApi]:
    async with FakeApi() as api:
        yield api


@pytest.fixture
async def session(api: FakeApi) -> AsyncIterator[ClientSession]:
    async with ClientSession(api.address) as session:
        yield session


def pod(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}}


async def next_event(answer: ClientResponse) -> dict[str, Any]:
    return json.loads(await answer.content.readline())


async def test_an_answer_is_given_once_and_only_to_its_request(api: FakeApi, session: ClientSession):
    api.answer_next(f"GET {PODS}", Reply.come_later(7))
    async with session.get("/api/v1/nodes") as answer:
        assert answer.status == 200
    async with session.get(PODS) as answer:
        assert (answer.status, answer.headers["Retry-After"]) == (429, "7")
        assert (await answer.text()).startswith("Too many requests")
    async with session.get(PODS) as answer:
        assert answer.status == 200
    assert api.requests == ["GET /api/v1/nodes", f"GET {PODS}", f"GET {PODS}"]


async def test_a_list_may_be_gone_by_its_status(api: FakeApi, session: ClientSession):
    api.answer_next("GET", Reply.failure(410, "Expired", "too old"))
    async with session.get(PODS) as answer:
        assert (answer.status, (await answer.json())["reason"]) == (410, "Expired")


async def test_an_answer_breaks_off(api: FakeApi, session: ClientSession):
    api.answer_next("GET", Reply(body=b'{"items": []}', cut=5))
    async with session.get(PODS) as answer:
        with pytest.raises(ClientPayloadError):
            await answer.read()


async def test_a_stalled_watch_is_open_and_silent_until_it_goes_on(api: FakeApi, session: ClientSession):
    async with session.get(PODS, params={"watch": "1"}) as answer:
        api.stall()
        api.create(PODS, pod("one"))
        async with session.get(PODS) as listed:  # the server had its turn meanwhile
            assert len((await listed.json())["items"]) == 1
        assert (api.open_watches, answer.content.total_bytes) == (1, 0)
        api.go_on()
        assert (await next_event(answer))["object"]["metadata"]["name"] == "one"


async def test_events_are_repeated(api: FakeApi, session: ClientSession):
    api.repeats = 2
    async with session.get(PODS, params={"watch": "1"}) as answer:
        api.create(PODS, pod("one"))
        assert await next_event(answer) == await next_event(answer)


async def test_a_watch_gets_broken_lines_and_ends_when_it_is_cut(api: FakeApi, session: ClientSession):
    async with session.get(PODS, params={"watch": "1"}) as answer:
        api.send_raw(b'{"type": "ADDED", "obj')
        api.cut_watches()
        assert await answer.read() == b'{"type": "ADDED", "obj'
    assert api.open_watches == 0


async def test_an_open_watch_expires_with_an_error_line(api: FakeApi, session: ClientSession):
    async with session.get(PODS, params={"watch": "1"}) as answer:
        api.create(PODS, pod("one"))
        assert (await next_event(answer))["type"] == "ADDED"
        api.forget_past(end_watches=True)
        event = await next_event(answer)
        assert (event["type"], event["object"]["code"]) == ("ERROR", 410)
        assert await answer.read() == b""


async def test_a_watch_sees_its_own_namespace_alone(api: FakeApi, session: ClientSession):
    async with session.get(PODS, params={"watch": "1"}) as mine, session.get("/api/v1/pods?watch=1") as all_of_them:
        api.create("/api/v1/namespaces/elsewhere/pods", pod("other"))
        api.create(PODS, pod("mine"))
        assert (await next_event(mine))["object"]["metadata"]["name"] == "mine"
        assert (await next_event(all_of_them))["object"]["metadata"]["namespace"] == "elsewhere"
