"""The tests' own API server answers as a real one: each case runs over both."""

from __future__ import annotations

import asyncio
import json
import ssl
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

import pytest
from aiohttp import ClientSession, TCPConnector

from cockpit.backends.kubernetes.wire.served_kinds import ACCEPT
from tests.doubles.kubernetes_api import VERSION, FakeApi, Reply
from tests.real.kubernetes.cluster import ADMIN
from tests.real.kubernetes.conftest import running_cluster

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from tests.real.kubernetes.cluster import RealKubernetes

pytestmark = [pytest.mark.real, pytest.mark.real_kubernetes]

MERGE = {"Content-Type": "application/merge-patch+json"}


class Server:
    """One of the two, and a collection of leases in it, which nothing else changes.

    bookmark: has one sent, where that does not happen by itself; forget_past: makes all older versions too old.
    """

    def __init__(self, session: ClientSession, namespace: str) -> None:
        self.session = session
        self.leases = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
        self.bookmark: Callable[[], object] = lambda: None
        self.forget_past: Callable[[], Awaitable[None]]

    async def create(self, name: str) -> tuple[int, Any]:
        body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name}, "spec": {}}
        async with self.session.post(self.leases, json=body) as answer:
            return answer.status, await answer.json()

    async def patch(self, name: str, metadata: object) -> tuple[int, Any]:
        body = json.dumps({"metadata": metadata})
        async with self.session.patch(f"{self.leases}/{name}", data=body, headers=MERGE) as answer:
            return answer.status, await answer.json()

    async def get(self, path: str = "", **query: str) -> tuple[int, Any]:
        async with self.session.get(f"{self.leases}{path}", params=query) as answer:
            return answer.status, await answer.json()

    async def delete(self, name: str) -> int:
        async with self.session.delete(f"{self.leases}/{name}") as answer:
            return answer.status

    async def version(self) -> str:
        _, listed = await self.get()
        return listed["metadata"]["resourceVersion"]

    async def watch(self, **query: str) -> AsyncIterator[dict[str, Any]]:
        """Events until the server ends the watch; its status must be 200."""
        async with self.session.get(self.leases, params={"watch": "true", **query}) as answer:
            assert answer.status == 200
            if "allowWatchBookmarks" in query:
                self.bookmark()
            async for line in answer.content:
                yield json.loads(line)


def session_of(cluster: RealKubernetes, **options: Any) -> ClientSession:
    """An administrator's, unless options say otherwise."""
    context = ssl.create_default_context(cafile=cluster.authority)
    if not options:
        context.load_cert_chain(*cluster.pair(ADMIN))
    return ClientSession(cluster.address, connector=TCPConnector(ssl=context), **options)


@pytest.fixture
async def real_server(cluster: RealKubernetes, namespace: str) -> AsyncIterator[Server]:
    async with session_of(cluster) as session:
        server = Server(session, namespace)
        server.forget_past = lambda: asyncio.to_thread(cluster.forget_past)
        yield server


@pytest.fixture
async def fake_server() -> AsyncIterator[Server]:
    async with FakeApi() as api, ClientSession(api.address) as session:
        server = Server(session, "here")
        api.kinds = {"/apis/coordination.k8s.io/v1": ("leases",)}
        server.bookmark = lambda: api.send_bookmark("Lease", "coordination.k8s.io/v1")

        async def forget_past() -> None:
            api.forget_past()

        server.forget_past = forget_past
        yield server


@pytest.fixture(params=["real", "fake"])
def server(request: pytest.FixtureRequest) -> Server:
    return request.getfixturevalue(f"{request.param}_server")


async def test_a_list_comes_in_pages_of_one_version(server: Server):
    for number in range(5):
        await server.create(f"lease-{number}")
    names, versions, left, token = [], set(), [], ""
    while True:
        query = {"continue": token} if token else {}
        status, page = await server.get(limit="2", **query)
        assert status == 200
        names += [each["metadata"]["name"] for each in page["items"]]
        versions.add(page["metadata"]["resourceVersion"])
        left.append(page["metadata"].get("remainingItemCount", 0))
        token = page["metadata"].get("continue", "")
        if not token:
            break
    assert names == [f"lease-{number}" for number in range(5)]
    assert len(versions) == 1
    assert left == [3, 1, 0]


async def test_with_version_0_a_list_comes_whole(server: Server):
    for number in range(3):
        await server.create(f"lease-{number}")
    async with asyncio.timeout(60):
        while True:  # the server's memory may be a moment behind
            _, page = await server.get(limit="1", resourceVersion="0")
            assert "continue" not in page["metadata"]
            if len(page["items"]) == 3:
                break


async def test_pages_and_watches_of_a_forgotten_version_are_gone(server: Server):
    for number in range(3):
        await server.create(f"lease-{number}")
    _, page = await server.get(limit="1")
    await server.create("later")
    await server.forget_past()
    status, said = await server.get(limit="1", **{"continue": page["metadata"]["continue"]})
    assert (status, said["code"], said["reason"]) == (410, 410, "Expired")
    (event,) = [event async for event in server.watch(resourceVersion=page["metadata"]["resourceVersion"])]
    assert event["type"] == "ERROR"
    assert (event["object"]["code"], event["object"]["reason"]) == (410, "Expired")


async def test_a_watch_tells_every_change_since_a_version(server: Server):
    since = await server.version()
    await server.create("one")
    await server.patch("one", {"labels": {"colour": "red"}})
    await server.delete("one")
    events = []
    async for event in server.watch(resourceVersion=since, timeoutSeconds="60"):
        events.append(event)
        if event["type"] == "DELETED":
            break
    assert [each["type"] for each in events] == ["ADDED", "MODIFIED", "DELETED"]
    versions = [int(each["object"]["metadata"]["resourceVersion"]) for each in events]
    assert versions == sorted(set(versions))
    assert versions[0] > int(since)
    assert events[1]["object"]["metadata"]["labels"] == {"colour": "red"}


async def test_a_watch_without_a_version_begins_with_what_is_there(server: Server):
    await server.create("one")
    async for event in server.watch(timeoutSeconds="60"):
        assert (event["type"], event["object"]["metadata"]["name"]) == ("ADDED", "one")
        break


async def test_a_watch_ends_in_order_when_its_time_is_over(server: Server):
    since = await server.version()
    assert [event async for event in server.watch(resourceVersion=since, timeoutSeconds="1")] == []


async def test_a_bookmark_has_a_version_and_nothing_else(server: Server):
    since = await server.version()
    query = {"resourceVersion": since, "allowWatchBookmarks": "true", "timeoutSeconds": "4"}
    events: list[Any] = []
    for _ in range(5):  # a real one comes two seconds before the end; a busy server may miss that moment
        events = events or [event async for event in server.watch(**query)]
    assert {each["type"] for each in events} == {"BOOKMARK"}
    content = events[0]["object"]
    assert (content["kind"], content["apiVersion"]) == ("Lease", "coordination.k8s.io/v1")
    assert int(content["metadata"]["resourceVersion"]) >= int(since)
    assert "name" not in content["metadata"]


async def test_refusals_have_their_reasons(server: Server):
    _, created = await server.create("one")
    status, said = await server.create("one")
    assert (status, said["reason"], said["kind"]) == (409, "AlreadyExists", "Status")
    await server.patch("one", {"labels": {"colour": "red"}})
    status, said = await server.patch("one", {"resourceVersion": created["metadata"]["resourceVersion"]})
    assert (status, said["reason"]) == (409, "Conflict")
    status, said = await server.patch("one", {"uid": "another"})
    assert (status, said["reason"]) == (422, "Invalid")
    assert said["message"].endswith('metadata.uid: Invalid value: "another": field is immutable')
    status, said = await server.get("/missing")
    assert (status, said["reason"], said["message"]) == (
        404,
        "NotFound",
        'leases.coordination.k8s.io "missing" not found',
    )


async def test_a_dry_run_creates_nothing(server: Server):
    body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "one"}}
    async with server.session.post(server.leases, params={"dryRun": "All"}, json=body) as answer:
        assert (answer.status, (await answer.json())["metadata"]["name"]) == (201, "one")
    assert (await server.get("/one"))[0] == 404


async def test_a_group_lists_its_kinds(server: Server):
    async with server.session.get("/apis/coordination.k8s.io/v1") as answer:
        listed = await answer.json()
    assert (answer.status, listed["kind"]) == (200, "APIResourceList")
    assert listed["groupVersion"] == "coordination.k8s.io/v1"
    assert [each["namespaced"] for each in listed["resources"] if each["name"] == "leases"] == [True]


async def test_a_group_that_is_not_served_is_not_found(server: Server):
    async with server.session.get("/apis/missing.test/v1") as answer:
        said = await answer.text()
    assert (answer.status, answer.content_type, said) == (404, "text/plain", "404 page not found\n")


async def test_all_kinds_are_told_in_one_answer_and_not_again_while_it_is_known(server: Server):
    accept = {"Accept": ACCEPT}
    async with server.session.get("/apis", headers=accept) as answer:
        told, tag = await answer.json(content_type=None), answer.headers["ETag"]
    assert (answer.status, told["kind"]) == (200, "APIGroupDiscoveryList")
    (group,) = [each for each in told["items"] if each["metadata"]["name"] == "coordination.k8s.io"]
    (version,) = [each for each in group["versions"] if each["version"] == "v1"]
    assert version["freshness"] == "Current"
    assert "leases" in {each["resource"] for each in version["resources"]}
    async with server.session.get("/apis", headers={**accept, "If-None-Match": tag}) as answer:
        assert (answer.status, await answer.read(), answer.headers["ETag"]) == (304, b"", tag)


async def test_the_version_is_told(server: Server):
    async with server.session.get("/version") as answer:
        assert (answer.status, (await answer.json())["gitVersion"]) == (200, VERSION)


CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


async def test_a_busy_server_says_when_to_come_again():
    with running_cluster(nodes=0) as cluster:
        text = "x" * 900_000
        maps = ({"metadata": {"name": f"large-{number}"}, "data": {"text": text}} for number in range(30))
        cluster.admin.create_many(CONFIG_MAPS, maps)
        cluster.daemons.stop("kube-apiserver")
        cluster.start_api_server("--max-requests-inflight=1")
        viewer = {"Authorization": "Bearer viewer-token"}  # an administrator is never turned away
        async with session_of(cluster, headers=viewer) as session, AsyncExitStack() as unread:
            # More than the network's buffers hold, as a rule: each is under way until it is read.
            for _ in range(10):
                await unread.enter_async_context(session.get(CONFIG_MAPS))
                expected = await answer_to(session)
                if expected[0] == 429:
                    break
    async with FakeApi() as api, ClientSession(api.address) as session:
        api.answer_next("GET", Reply.come_later(1))
        assert await answer_to(session) == expected
    assert expected[0] == 429


async def answer_to(session: ClientSession) -> tuple[int, str, str, str]:
    async with session.get("/api/v1/nodes") as answer:
        return answer.status, answer.headers.get("Retry-After", ""), answer.headers["Content-Type"], await answer.text()
