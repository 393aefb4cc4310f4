"""Kinds of objects that the server serves, and whose lists it does not answer when cockpit connects."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing

import pytest

from cockpit.backends.base import Phase
from cockpit.backends.kubernetes.backend import KubernetesBackend
from cockpit.backends.kubernetes.wire import reflector
from cockpit.errors import CockpitError, RequestRefused
from cockpit.model.job import JobState
from tests.doubles.kubernetes_api import FakeApi, Reply

pytestmark = pytest.mark.req("KU-01", "TR-04")

LONGEST = 20.0
TRAINING = "/apis/kubeflow.org/v1/pytorchjobs"
BATCH = "/apis/batch/v1/jobs"
BROKEN = Reply.failure(500, "InternalError", "conversion webhook failed: connection refused")
SILENT = Reply(hangs=True)


@pytest.fixture
def backend(backend: KubernetesBackend, server: FakeApi, monkeypatch: pytest.MonkeyPatch) -> KubernetesBackend:
    monkeypatch.setattr(reflector, "FIRST_PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(reflector, "LONGEST_PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(reflector, "TURN_SECONDS", 0.01)
    monkeypatch.setattr(reflector, "SLOW_SECONDS", 0.05)
    server.create("/apis/batch/v1/namespaces/team-a/jobs", {"kind": "Job", "metadata": {"name": "there"}})
    server.create(
        "/apis/kubeflow.org/v1/namespaces/team-a/pytorchjobs", {"kind": "PyTorchJob", "metadata": {"name": "late"}}
    )
    server.create("/api/v1/nodes", {"kind": "Node", "metadata": {"name": "n1"}})
    return backend


async def names(backend: KubernetesBackend) -> set[str]:
    async with asyncio.timeout(LONGEST):
        return {row.name for row in await backend.jobs()}


async def until(backend: KubernetesBackend, holds: Callable[[], bool]) -> None:
    """Wait until something is so after a change that is shown."""
    async with asyncio.timeout(LONGEST), aclosing(backend.watch_jobs(anything=True)) as watch:
        async for _ in watch:
            if holds():
                return


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (BROKEN, "(500 InternalError): conversion webhook failed: connection refused"),
        (SILENT, "does not answer: pytorchjobs.kubeflow.org were not listed within 0 s"),
    ],
    ids=["500", "silence"],
)
async def test_the_rest_is_shown_while_a_kind_cannot_be_listed(
    backend: KubernetesBackend, server: FakeApi, reply: Reply, words: str
) -> None:
    server.broken = {f"GET {TRAINING}": reply}
    assert await names(backend) == {"there"}
    assert backend.connection.phase is Phase.CONNECTED
    (trouble,) = (await backend.overview()).trouble
    assert trouble.startswith("pytorchjobs.kubeflow.org cannot be read: ")
    assert words in trouble
    assert trouble.endswith("Cockpit asks again.")


async def test_a_kind_is_shown_as_soon_as_it_is_answered(backend: KubernetesBackend, server: FakeApi) -> None:
    server.broken = {f"GET {TRAINING}": BROKEN}
    assert await names(backend) == {"there"}
    async with asyncio.timeout(LONGEST), aclosing(backend.watch_jobs()) as watch:
        assert {row.name for row in (await anext(watch)).changed} == {"there"}
        server.broken = {}
        (row,) = (await anext(watch)).changed
    assert (row.name, row.state) == ("late", JobState.QUEUED)
    assert (await backend.overview()).trouble == ()


async def test_nodes_that_cannot_be_listed_are_missing_by_capability(
    backend: KubernetesBackend, server: FakeApi
) -> None:
    server.broken = {"GET /api/v1/nodes": BROKEN}
    assert await names(backend) == {"there", "late"}
    why = backend.capabilities.why_not("nodes")
    assert why.startswith("Nodes cannot be listed: ")
    assert "conversion webhook failed" in why
    with pytest.raises(RequestRefused, match="Nodes cannot be listed"):
        await backend.nodes()
    server.broken = {}
    await until(backend, lambda: backend.capabilities.has("nodes"))
    assert [each.node.name for each in await backend.nodes()] == ["n1"]


async def test_a_job_list_without_pods_says_so(backend: KubernetesBackend, server: FakeApi) -> None:
    server.broken = {"GET /api/v1/pods": BROKEN, f"GET {TRAINING}": BROKEN, f"GET {BATCH}": BROKEN}
    with pytest.raises(RequestRefused, match=r"Pods cannot be listed: .*conversion webhook failed"):
        await names(backend)
    assert [each.node.name for each in await backend.nodes()] == ["n1"]


async def test_what_is_known_stays_when_the_server_goes_while_a_kind_is_missing(
    backend: KubernetesBackend, server: FakeApi
) -> None:
    server.broken = {f"GET {TRAINING}": BROKEN}
    assert await names(backend) == {"there"}
    server.broken = {"GET ": Reply.failure(500, "InternalError", "etcdserver: no leader")}
    server.cut_watches()
    await until(backend, lambda: backend.connection.phase is Phase.STALE)
    assert await names(backend) == {"there"}
    assert "no leader" in backend.silence


async def test_a_server_that_lists_nothing_is_not_there(backend: KubernetesBackend, server: FakeApi) -> None:
    server.broken = {"GET /api/v1/": BROKEN, f"GET {TRAINING}": BROKEN, f"GET {BATCH}": BROKEN}
    with pytest.raises(CockpitError, match="conversion webhook failed"):
        await names(backend)
