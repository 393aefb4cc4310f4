"""The copy of one kind of object, through everything that happens to lists and watches."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from random import Random
from typing import Any

import pytest

from cockpit.backends.kubernetes.objects.pod import Pod
from cockpit.backends.kubernetes.resources import PODS
from cockpit.backends.kubernetes.wire import reflector as module
from cockpit.backends.kubernetes.wire.api import Api
from cockpit.backends.kubernetes.wire.reflector import Pace, Reflector
from cockpit.runtime.tasks import Tasks
from tests.doubles.kubernetes_api import FakeApi, Reply

HERE = "/api/v1/namespaces/here/pods"
LONGEST = 20.0


def pod(name: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [], **spec}}


class Copy:
    """A reflector that runs, and the changes that it reported."""

    def __init__(self, api: Api) -> None:
        self.changes: list[tuple[str | None, str | None]] = []
        self._moved = asyncio.Event()
        self.reflector = Reflector(
            api, PODS, Pod, changed=self._changed, pace=Pace(asyncio.Semaphore(1), Random(1)), moved=self._moved.set
        )

    @property
    def nodes(self) -> dict[str, str]:
        return {each.metadata.name: each.spec.node_name for each in self.reflector.objects.values()}

    def _changed(self, old: Pod | None, new: Pod | None) -> None:
        self.changes.append((old and old.spec.node_name, new and new.spec.node_name))
        self._moved.set()

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(LONGEST):
            while not holds():
                self._moved.clear()
                if not holds():
                    await self._moved.wait()


@pytest.fixture
async def copy(api: Api, server: FakeApi, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Copy]:
    monkeypatch.setattr(module, "FIRST_PAUSE_SECONDS", 0.0)
    monkeypatch.setattr(module, "ABSENT_PAUSE_SECONDS", 0.0)
    server.create(HERE, pod("a"))
    copy = Copy(api)
    tasks = Tasks()
    tasks.start(copy.reflector.run(), "the reflector")
    yield copy
    await tasks.cancel_all()


def watches(server: FakeApi) -> list[str]:
    return [each for each in server.requests if "watch=true" in each]


def lists(server: FakeApi) -> list[str]:
    return [each for each in server.requests if "watch=true" not in each and "GET /api/v1/pods" in each]


async def following(copy: Copy, server: FakeApi, watching: int = 1) -> None:
    """Wait until the list is there and a watch is open."""
    await copy.until(lambda: copy.reflector.synced)
    async with asyncio.timeout(LONGEST):
        while len(watches(server)) < watching or not server.open_watches:  # noqa: ASYNC110 - the server has no event for it
            await asyncio.sleep(0)


@pytest.mark.req("KU-02")
async def test_objects_are_listed_once_and_then_followed(copy: Copy, server: FakeApi) -> None:
    await following(copy, server)
    server.create(HERE, pod("b"))
    server.change(f"{HERE}/b", {"spec": {"nodeName": "n1"}})
    server.remove(f"{HERE}/a")
    await copy.until(lambda: copy.nodes == {"b": "n1"})
    assert copy.changes == [(None, ""), (None, ""), ("", "n1"), ("", None)]
    assert len(lists(server)) == 1


@pytest.mark.req("KU-02")
async def test_a_watch_that_ends_goes_on_from_the_last_version_also_from_a_bookmark(
    copy: Copy, server: FakeApi
) -> None:
    await following(copy, server)
    server.create("/api/v1/namespaces/here/configmaps", {"metadata": {"name": "other"}})
    server.send_bookmark("Pod", "v1")
    server.cut_watches()
    await following(copy, server, watching=2)
    server.create(HERE, pod("b"))
    await copy.until(lambda: "b" in copy.nodes)
    assert "resourceVersion=1002&" in watches(server)[1]
    assert len(lists(server)) == 1


@pytest.mark.req("KU-02")
async def test_a_forgotten_version_means_a_new_list_in_which_what_is_gone_is_missing(
    copy: Copy, server: FakeApi
) -> None:
    await following(copy, server)
    server.stall()
    server.remove(f"{HERE}/a")
    server.create(HERE, pod("c"))
    server.forget_past(end_watches=True)
    server.go_on()
    await copy.until(lambda: copy.nodes == {"c": ""} and len(lists(server)) == 2)
    server.answer_next("GET /api/v1/pods?watch", Reply.failure(410, "Expired", "too old"))
    server.cut_watches()
    await copy.until(lambda: len(lists(server)) == 3)


@pytest.mark.req("KU-02")
async def test_repeated_events_change_nothing(copy: Copy, server: FakeApi) -> None:
    await following(copy, server)
    server.repeats = 3
    server.create(HERE, pod("b"))
    server.create(HERE, pod("c"))
    await copy.until(lambda: "c" in copy.nodes)
    assert len(copy.changes) == 3


@pytest.mark.req("KU-02")
async def test_a_cut_line_ends_the_watch_and_loses_nothing(copy: Copy, server: FakeApi) -> None:
    await following(copy, server)
    server.send_raw(b'{"type": "MODIFIED", "object": {"metad\n')
    await following(copy, server, watching=2)
    server.create(HERE, pod("b"))
    await copy.until(lambda: copy.nodes == {"a": "", "b": ""})
    assert copy.reflector.trouble is None


@pytest.mark.req("TR-04", "KU-02")
@pytest.mark.parametrize(
    "line",
    [
        b"\x00\xff garbage\n",
        b"null\n",
        b'{"type": "MODIFIED", "object": {"metadata": []}}\n',
        b'{"type": "MODIFIED"}\n',
        b'{"type": "NEWER", "object": {"metadata": {"name": "a", "uid": 7}}}\n',
        b"x" * 10_000_000 + b"\n",
        b"\n\n",
    ],
    ids=["garbage", "null", "another form", "no object", "a wrong uid", "10 MB", "empty lines"],
)
async def test_a_watch_of_nonsense_loses_nothing_and_goes_on(copy: Copy, server: FakeApi, line: bytes) -> None:
    await following(copy, server)
    server.send_raw(line)
    server.create(HERE, pod("b"))
    await copy.until(lambda: copy.nodes == {"a": "", "b": ""})
    assert None not in [new for _, new in copy.changes]


FORBIDDEN = Reply.failure(403, "Forbidden", "pods is forbidden: no")


def states(copy: Copy) -> list[str]:
    """The list of what is wrong with the copy, which grows with each change of it."""
    seen: list[str] = []
    watched = copy.reflector._moved

    def moved() -> None:
        absent, trouble = copy.reflector.absent, copy.reflector.trouble
        seen.append(f"absent: {absent.message}" if absent is not None else f"trouble: {trouble}" if trouble else "")
        watched()

    copy.reflector._moved = moved
    return seen


@pytest.mark.req("KU-01", "TR-04")
async def test_a_lost_right_empties_the_copy_and_says_why_until_it_is_given_back(copy: Copy, server: FakeApi) -> None:
    await following(copy, server)
    seen = states(copy)
    server.answer_next("GET /api/v1/pods?watch", FORBIDDEN)
    for _ in range(module.REFUSALS):
        server.answer_next("GET /api/v1/pods?limit", FORBIDDEN)
    server.cut_watches()
    await copy.until(lambda: "absent: pods is forbidden: no" in seen)
    await copy.until(lambda: copy.nodes == {"a": ""} and copy.reflector.absent is None)
    assert [change for change in copy.changes if change[1] is None] == [("", None)]


@pytest.mark.req("TR-04")
@pytest.mark.parametrize("refusal", [FORBIDDEN, Reply.failure(404, "NotFound", "page not found")])
async def test_a_server_that_refuses_while_it_starts_takes_nothing_from_the_copy(
    copy: Copy, server: FakeApi, refusal: Reply
) -> None:
    await following(copy, server)
    seen = states(copy)
    server.answer_next("GET /api/v1/pods?watch", refusal)
    for _ in range(module.REFUSALS - 1):
        server.answer_next("GET /api/v1/pods?limit", refusal)
    server.cut_watches()
    server.create(HERE, pod("b"))
    await copy.until(lambda: "b" in copy.nodes)
    assert (None in [new for _, new in copy.changes], [each for each in seen if "absent" in each]) == (False, [])


@pytest.mark.req("KU-01")
async def test_what_may_be_listed_and_not_watched_is_listed_again_and_again(
    copy: Copy, server: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "POLL_SECONDS", 0.0)
    await following(copy, server)
    seen = states(copy)
    for _ in range(3):
        server.answer_next("GET /api/v1/pods?watch", FORBIDDEN)
    server.cut_watches()
    async with asyncio.timeout(LONGEST):
        while server.replies:  # noqa: ASYNC110 - the server has no event for it
            await asyncio.sleep(0)
    server.create(HERE, pod("b"))
    await copy.until(lambda: "b" in copy.nodes)
    assert (len(lists(server)) >= 4, set(seen) <= {""}) == (True, True)


@pytest.mark.req("TR-04")
async def test_a_watch_that_is_cut_once_is_no_trouble(copy: Copy, server: FakeApi) -> None:
    await following(copy, server)
    seen = states(copy)
    server.answer_next("GET /api/v1/pods?watch", Reply(body=b"x", cut=0))
    server.cut_watches()
    server.create(HERE, pod("b"))
    await copy.until(lambda: "b" in copy.nodes)
    assert [each for each in seen if each] == []


@pytest.mark.req("TR-04")
async def test_while_the_server_is_silent_the_copy_stays_and_says_so(
    copy: Copy, server: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    await following(copy, server)
    seen: list[str] = []
    watched = copy.reflector._moved

    def moved() -> None:
        seen.append(str(copy.reflector.trouble))
        watched()

    copy.reflector._moved = moved
    server.answer_next("GET /api/v1/pods?watch", Reply(body=b"x", cut=0))
    server.answer_next("GET /api/v1/pods?watch", Reply.failure(500, "InternalError", "etcdserver: no leader"))
    server.cut_watches()
    await copy.until(lambda: any("no leader" in each for each in seen))
    assert copy.nodes == {"a": ""}
    server.create(HERE, pod("b"))
    await copy.until(lambda: "b" in copy.nodes and copy.reflector.trouble is None)
