"""Kinds of objects that a server begins or ceases to serve while cockpit is connected."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing

import pytest

from cockpit.backends.kubernetes import session
from cockpit.backends.kubernetes.backend import KubernetesBackend
from cockpit.backends.kubernetes.resources import KUBE_QUEUE_KINDS, QUEUES, QUOTA_TREES, WORKLOADS
from cockpit.backends.kubernetes.wire import reflector, served_kinds
from cockpit.backends.kubernetes.wire.answers import ApiError
from cockpit.backends.kubernetes.wire.api import Api
from cockpit.backends.kubernetes.wire.served_kinds import ServedKinds
from cockpit.errors import RequestRefused, Unreachable
from cockpit.model.job import JobState
from cockpit.model.spec import Mode
from tests.backends.kubernetes.objects import a_template
from tests.builders import a_spec
from tests.doubles.kubernetes_api import FakeApi, Reply

pytestmark = pytest.mark.req("KU-01")

LONGEST = 20.0
KUBEFLOW = "/apis/kubeflow.org/v1"
MPI_2 = "/apis/kubeflow.org/v2beta1"
TREES = "/apis/scheduling.sigs.k8s.io/v1beta1"
VOLCANO = "/apis/batch.volcano.sh/v1alpha1"


@pytest.fixture
def backend(backend: KubernetesBackend, monkeypatch: pytest.MonkeyPatch) -> KubernetesBackend:
    monkeypatch.setattr(session, "CHECK_SECONDS", 0.01)
    monkeypatch.setattr(reflector, "FIRST_PAUSE_SECONDS", 0.01)
    return backend


async def until(backend: KubernetesBackend, holds: Callable[[], bool]) -> None:
    """Wait until something is so after a change that is shown."""
    async with asyncio.timeout(LONGEST), aclosing(backend.watch_jobs(anything=True)) as watch:
        async for _ in watch:
            if holds():
                return


async def states(backend: KubernetesBackend, name: str) -> AsyncIterator[JobState]:
    """Yield the states of a job as they are shown."""
    async with asyncio.timeout(LONGEST), aclosing(backend.watch_jobs()) as watch:
        async for delta in watch:
            for row in delta.changed:
                if row.name == name:
                    yield row.state


async def test_an_operator_that_is_installed_later_brings_its_jobs(backend: KubernetesBackend, server: FakeApi) -> None:
    assert await backend.jobs() == []
    server.create(f"{KUBEFLOW}/namespaces/team-a/mpijobs", {"kind": "MPIJob", "metadata": {"name": "late"}})
    server.kinds = {**server.kinds, KUBEFLOW: ("pytorchjobs", "mpijobs")}
    async with aclosing(states(backend, "late")) as seen:
        assert await anext(seen) is JobState.QUEUED


async def test_jobs_of_an_operator_that_is_removed_are_gone(backend: KubernetesBackend, server: FakeApi) -> None:
    server.create(f"{KUBEFLOW}/namespaces/team-a/pytorchjobs", {"kind": "PyTorchJob", "metadata": {"name": "train"}})
    async with aclosing(states(backend, "train")) as seen:
        assert await anext(seen) is JobState.QUEUED
        server.kinds = {"/apis/batch/v1": ("jobs",)}
        assert await anext(seen) is JobState.STOPPED


async def test_what_a_cluster_can_do_follows_its_kinds(backend: KubernetesBackend, server: FakeApi) -> None:
    await backend.jobs()
    assert "does not serve elasticquotatrees.scheduling.sigs.k8s.io" in backend.capabilities.why_not("apply_quota")
    assert "serves none of Kueue, KubeQueue" in backend.capabilities.why_not("queues")
    before = server.kinds
    server.kinds = {**before, TREES: ("elasticquotatrees",)}
    await until(backend, lambda: backend.capabilities.has("apply_quota") and backend.capabilities.has("queues"))
    server.kinds = before
    await until(backend, lambda: not backend.capabilities.has("apply_quota"))
    assert "does not serve elasticquotatrees.scheduling.sigs.k8s.io" in backend.capabilities.why_not("apply_quota")


async def test_a_new_kind_that_cannot_be_listed_keeps_nothing_else_back(
    backend: KubernetesBackend, server: FakeApi
) -> None:
    assert await backend.jobs() == []
    for _ in range(1000):
        server.answer_next(f"GET {VOLCANO}/jobs", Reply.failure(500, "InternalError", "webhook: connection refused"))
    server.kinds = {**server.kinds, VOLCANO: ("jobs",)}
    await until(backend, lambda: any("volcano" in each for each in server.requests))
    async with asyncio.timeout(LONGEST):
        assert await backend.jobs() == []
    server.replies.clear()
    server.create(f"{VOLCANO}/namespaces/team-a/jobs", {"kind": "Job", "metadata": {"name": "late"}})
    async with aclosing(states(backend, "late")) as seen:
        assert await anext(seen) is JobState.QUEUED


async def test_a_job_outlasts_the_version_in_which_its_kind_is_served(
    backend: KubernetesBackend, server: FakeApi
) -> None:
    server.kinds = {**server.kinds, KUBEFLOW: ("pytorchjobs", "mpijobs")}
    content = {"kind": "MPIJob", "metadata": {"name": "mpi"}, "spec": {"template": a_template()}}
    made = server.create(f"{KUBEFLOW}/namespaces/team-a/mpijobs", content)
    (row,) = await backend.jobs()
    seen = [row.state]
    async with asyncio.timeout(LONGEST), aclosing(backend.watch_jobs(anything=True)) as watch:
        # The same object, as the other version of its kind is read.
        server.create(f"{MPI_2}/namespaces/team-a/mpijobs", content)
        other = server.object(f"{MPI_2}/namespaces/team-a/mpijobs/mpi")
        other["metadata"]["uid"] = made["metadata"]["uid"]
        server.kinds = {**server.kinds, KUBEFLOW: ("pytorchjobs",), MPI_2: ("mpijobs",)}
        async for delta in watch:
            assert not delta.removed
            seen += [each.state for each in delta.changed]
            if any("v2beta1/mpijobs?" in each for each in server.requests):
                break
    assert set(seen) == {JobState.QUEUED}


GONE = Reply(404, b"404 page not found\n", {"Content-Type": "text/plain"})


async def test_a_server_that_lacks_a_kind_is_asked_for_its_kinds_at_once(
    backend: KubernetesBackend, server: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Without a cause it would not be asked for the rest of this test.
    monkeypatch.setattr(session, "CHECK_SECONDS", 10 * LONGEST)
    monkeypatch.setattr(session, "RECHECK_SECONDS", 0.01)
    monkeypatch.setattr(served_kinds, "LOOKS_WITHOUT_TAG", 1000)
    server.version = "v1.24.17"
    assert await backend.jobs() == []
    server.create(f"{MPI_2}/namespaces/team-a/mpijobs", {"kind": "MPIJob", "metadata": {"name": "late"}})
    server.kinds = {"/apis/batch/v1": ("jobs",), MPI_2: ("mpijobs",)}
    server.answer_next(f"POST {KUBEFLOW}/namespaces/team-a/pytorchjobs", GONE)
    with pytest.raises(RequestRefused, match=r"pytorchjobs\.kubeflow\.org/v1 are not served any more"):
        await backend.submit([a_spec(name="new", image="img:1", mode=Mode.PYTORCH, nodes=2)])
    async with aclosing(states(backend, "late")) as seen:
        assert await anext(seen) is JobState.QUEUED


async def test_what_was_never_served_is_no_cause_to_ask(
    backend: KubernetesBackend, server: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "CHECK_SECONDS", 10 * LONGEST)
    monkeypatch.setattr(session, "RECHECK_SECONDS", 0.0)
    await backend.jobs()
    assert not backend._session._lacks_kind.is_set()
    path = "/apis/visibility.kueue.x-k8s.io/v1beta2/namespaces/team-a/localqueues/gpu/pendingworkloads"
    for asked, is_cause in ((path, False), (f"{KUBEFLOW}/namespaces/team-a/pytorchjobs/x", True)):
        server.answer_next(f"GET {asked}", GONE)
        with pytest.raises(ApiError):
            await backend._cluster.api.get(asked)
        assert backend._session._lacks_kind.is_set() is is_cause


async def test_a_server_that_says_often_that_it_lacks_a_kind_is_not_asked_often(
    backend: KubernetesBackend, server: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "CHECK_SECONDS", 10 * LONGEST)
    monkeypatch.setattr(session, "RECHECK_SECONDS", 5 * LONGEST)
    await backend.jobs()
    server.requests.clear()
    for _ in range(50):
        server.answer_next(f"POST {KUBEFLOW}/namespaces/team-a/pytorchjobs", GONE)
        with pytest.raises(RequestRefused):
            await backend.submit([a_spec(name="new", image="img:1", mode=Mode.PYTORCH, nodes=2)])
    assert not [each for each in server.requests if each.startswith("GET /apis ")]


@pytest.mark.req("PF-20")
async def test_a_server_is_asked_for_its_kinds_by_the_sign_of_life_alone(api: Api, server: FakeApi) -> None:
    server.kinds = {KUBEFLOW: ("pytorchjobs",), "/apis/batch/v1": ("jobs",)}
    kinds = ServedKinds(api, WORKLOADS)
    assert [await kinds.look() for _ in range(5)] == [True, False, False, False, False]
    assert server.requests == ["GET /apis"] * 5
    assert {each.plural for each in kinds.among(WORKLOADS)} == {"pytorchjobs", "jobs"}


async def test_a_kind_is_gone_when_two_answers_in_a_row_lack_it(api: Api, server: FakeApi) -> None:
    """Of several servers behind one address one may not know of a kind yet."""
    both = {KUBEFLOW: ("pytorchjobs",), TREES: ("elasticquotatrees",)}
    wanted = (*WORKLOADS, *KUBE_QUEUE_KINDS)
    kinds, found = ServedKinds(api, wanted), []
    for answer in (
        both,
        {KUBEFLOW: ("pytorchjobs",)},
        both,
        {KUBEFLOW: ("pytorchjobs",)},
        {KUBEFLOW: ("pytorchjobs",)},
    ):
        server.kinds = answer
        await kinds.look()
        found.append(QUOTA_TREES in kinds.among(wanted))
    assert found == [True, True, True, True, False]


async def test_what_an_extension_server_served_counts_while_it_does_not_answer(api: Api, server: FakeApi) -> None:
    server.kinds = {TREES: ("elasticquotatrees",)}
    kinds = ServedKinds(api, KUBE_QUEUE_KINDS)
    await kinds.look()
    server.stale = (TREES,)
    for _ in range(3):
        await kinds.look()
    assert kinds.among(KUBE_QUEUE_KINDS) == {QUOTA_TREES}


async def test_of_two_versions_the_newer_is_read_once_it_is_served(api: Api, server: FakeApi) -> None:
    server.kinds = {"/apis/kueue.x-k8s.io/v1beta1": ("workloads",)}
    kinds = ServedKinds(api, QUEUES)
    await kinds.look()
    assert {each.version for each in kinds.among(QUEUES)} == {"v1beta1"}
    server.kinds = {**server.kinds, "/apis/kueue.x-k8s.io/v1beta2": ("workloads",)}
    assert await kinds.look()
    assert {each.version for each in kinds.among(QUEUES)} == {"v1beta2"}


async def test_an_old_server_is_asked_for_each_group_now_and_then(
    api: Api, server: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(served_kinds, "LOOKS_WITHOUT_TAG", 3)
    server.version, server.kinds = "v1.24.17", {"/apis/batch/v1": ("jobs",)}
    kinds = ServedKinds(api, WORKLOADS)
    await kinds.look()
    server.kinds = {**server.kinds, KUBEFLOW: ("pytorchjobs",)}
    server.requests.clear()
    assert [await kinds.look() for _ in range(3)] == [False, False, True]
    assert server.requests[:2] == ["GET /version"] * 2
    assert {each.plural for each in kinds.among(WORKLOADS)} == {"pytorchjobs", "jobs"}


async def test_an_answer_that_is_no_list_of_kinds_says_so(api: Api, server: FakeApi) -> None:
    server.answer_next("GET /apis ", Reply(200, b"<html>login</html>"))
    with pytest.raises(Unreachable, match="answer about its kinds cannot be read"):
        await ServedKinds(api, WORKLOADS).look()
