"""Rights that are given or taken away while cockpit is connected."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing

import pytest

from cockpit.backends.kubernetes import access_reviews, quota_acts, rights
from cockpit.backends.kubernetes.backend import KubernetesBackend
from cockpit.backends.kubernetes.resources import PODS, PYTORCH_JOBS
from cockpit.backends.kubernetes.rights import Rights
from cockpit.backends.kubernetes.wire.access import VisibleNamespaces
from cockpit.backends.kubernetes.wire.api import Api
from cockpit.errors import RequestRefused
from cockpit.model.job import JobState
from cockpit.model.jobrow import JobRow
from cockpit.model.refusal import RefusalKind
from cockpit.model.spec import Access
from cockpit.runtime.tasks import Tasks
from tests.backends.kubernetes.objects import a_template
from tests.doubles.kubernetes_api import FakeApi, Reply

pytestmark = pytest.mark.req("KU-01")

LONGEST = 20.0
JOBS = "/apis/kubeflow.org/v1/namespaces/{}/pytorchjobs"
EVERYTHING = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
READING = {"verbs": ["get", "list", "watch"], "apiGroups": ["*"], "resources": ["*"]}


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every answer about rights be old at once."""
    monkeypatch.setattr(rights, "REVIEW_SECONDS", 0.01)
    for module in (rights, quota_acts, access_reviews):
        monkeypatch.setattr(module, "OLD_SECONDS", 0.01)


def a_job(server: FakeApi, name: str = "train", namespace: str = "team-a") -> None:
    replicas = {"Master": {"replicas": 1, "template": a_template()}}
    content = {"kind": "PyTorchJob", "metadata": {"name": name}, "spec": {"pytorchReplicaSpecs": replicas}}
    server.create(JOBS.format(namespace), content)


async def until(backend: KubernetesBackend, holds: Callable[[dict[str, JobRow]], bool]) -> None:
    """Wait until the rows of the jobs, by name, are so."""
    rows: dict[str, JobRow] = {}
    async with asyncio.timeout(LONGEST), aclosing(backend.watch_jobs(anything=True)) as watch:
        async for delta in watch:
            rows = {name: row for name, row in rows.items() if row.id not in delta.removed}
            rows |= {row.name: row for row in delta.changed}
            if holds(rows):
                return


@pytest.mark.usefixtures("quick")
async def test_a_right_to_change_jobs_comes_and_goes(backend: KubernetesBackend, server: FakeApi) -> None:
    server.rules = [READING]
    a_job(server)
    (row,) = await backend.jobs()
    assert row.may is Access.RO
    server.rules = [EVERYTHING]
    await until(backend, lambda rows: rows["train"].may is Access.RW)
    server.rules = [READING]
    await until(backend, lambda rows: rows["train"].may is Access.RO)


async def test_a_refusal_shows_at_once_that_a_right_is_gone(backend: KubernetesBackend, server: FakeApi) -> None:
    a_job(server)
    (row,) = await backend.jobs()
    assert row.may is Access.RW
    server.rules = [READING]
    server.answer_next("DELETE", Reply.failure(403, "Forbidden", "pytorchjobs is forbidden"))
    with pytest.raises(RequestRefused) as refused:
        await backend.cancel(row.id)
    assert refused.value.refusal.kind is RefusalKind.DENIED
    await until(backend, lambda rows: rows["train"].may is Access.RO)


async def test_what_is_read_all_the_time_and_refused_asks_for_no_rights(api: Api, server: FakeApi) -> None:
    paths: list[str] = []
    api.refused = paths.append
    for path in ("/api/v1/nodes", "/api/v1/namespaces/a/pods/p/log"):
        server.answer_next(f"GET {path}", Reply.failure(403, "Forbidden", "no"))
        with pytest.raises(Exception, match="no"):
            await api.get(path)
    assert paths == ["/api/v1/namespaces/a/pods/p/log"]


@pytest.mark.usefixtures("quick")
async def test_kinds_are_listed_anew_when_the_right_to_read_them_changes(
    backend: KubernetesBackend, server: FakeApi
) -> None:
    a_job(server)
    await backend.jobs()
    pods = {"verbs": ["list", "watch"], "apiGroups": [""], "resources": ["pods"]}
    server.rules = [{**EVERYTHING, "apiGroups": ["kubeflow.org"]}]
    server.answer_next("GET /api/v1/pods", Reply.failure(403, "Forbidden", "pods is forbidden"))
    await until(backend, lambda _: PODS in backend._inventory.absent)
    server.rules = [*server.rules, pods]
    # Without the change it would be asked for after a minute.
    await until(backend, lambda _: PODS not in backend._inventory.absent)


@pytest.mark.usefixtures("quick")
async def test_namespaces_that_become_visible_are_read_and_others_leave_without_an_end_of_their_jobs(
    backend: KubernetesBackend, server: FakeApi
) -> None:
    server.replies.clear()
    server.readable = ("team-a",)
    for each in ("team-a", "team-b"):
        server.create("/api/v1/namespaces", {"metadata": {"name": each}})
    a_job(server, "ours")
    a_job(server, "theirs", "team-b")
    assert [row.name for row in await backend.jobs()] == ["ours"]
    for readable in (("team-a", "team-b"), ("team-a",), ("",), ("team-b",), ("team-a",), ("",)):
        server.readable = readable
        wanted = {"ours"} if "team-b" not in readable else {"theirs"}
        wanted = {"ours", "theirs"} if readable in (("",), ("team-a", "team-b")) else wanted
        await until(backend, lambda rows, wanted=wanted: rows.keys() == wanted)
        states = {row.state for row in await backend.jobs(ended=True)}
        assert states == {JobState.QUEUED}


async def test_of_many_namespaces_a_few_are_asked_about_anew_in_turn(api: Api, server: FakeApi) -> None:
    server.readable = ("team-3",)
    for number in range(9):
        server.create("/api/v1/namespaces", {"metadata": {"name": f"team-{number}"}})
    visible = VisibleNamespaces(api, "team-0", PODS)
    assert await visible.look()
    assert visible.names == ("team-3",)
    server.readable = ("team-3", "team-8")
    found = []
    for _ in range(3):
        server.requests.clear()
        found.append(await visible.look(4))
        assert sum("selfsubjectaccessreviews" in each for each in server.requests) == 5
    assert found.count(True) == 1
    assert visible.names == ("team-3", "team-8")


@pytest.mark.req("PF-20")
async def test_answers_are_asked_for_anew_only_when_they_are_old(
    api: Api, server: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rights, "REVIEW_SECONDS", 0.0)
    known = Rights(api)
    names = [f"team-{number}" for number in range(3)]
    await known.learn(names)
    reviews = "POST /apis/authorization.k8s.io/v1/selfsubjectrulesreviews"
    assert server.requests == [reviews] * 3
    looks, looked, changed = 0, asyncio.Event(), asyncio.Event()

    def namespaces() -> list[str]:
        nonlocal looks
        looks += 1
        if looks == 50:
            looked.set()
        return names

    tasks = Tasks()
    tasks.start(known.review(namespaces, lambda *_: changed.set()), "the review")
    async with asyncio.timeout(LONGEST):
        await looked.wait()
        assert server.requests == [reviews] * 3
        server.rules = [READING]
        known.doubt("team-1")
        await changed.wait()
    await tasks.cancel_all()
    assert server.requests == [reviews] * 4
    assert [known.access(each, PYTORCH_JOBS) for each in names] == [Access.RW, Access.RO, Access.RW]
