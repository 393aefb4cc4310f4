"""The table of a fleet on its host, and what is read of members through the host's proxy or the user's own contexts."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import pytest

from cockpit.backends.kubernetes.fleet.members import own_context
from cockpit.backends.kubernetes.fleet.table import pod_word
from cockpit.backends.kubernetes.opening import open_context
from cockpit.backends.kubernetes.wire.kubeconfig import Context
from cockpit.errors import RequestRefused
from cockpit.model.asking import LogRequest
from cockpit.model.events import ClusterReported
from cockpit.model.fleet_placement import FleetWaits
from cockpit.model.fleetrow import FleetJobRow, FleetPodRow
from cockpit.model.ids import Millis
from tests.backends.kubernetes.conftest import answers
from tests.backends.kubernetes.fleet_objects import (
    ACK,
    BINDINGS,
    CLUSTERS,
    JOBS,
    POLICIES,
    PROXY,
    a_binding,
    a_member,
    a_policy,
    reported,
    serve_fleet,
)
from tests.backends.kubernetes.objects import a_pod as a_pod_struct
from tests.backends.kubernetes.objects import an_ended_pod, merged
from tests.backends.kubernetes.test_backend import LONGEST, PODS, a_job, a_pod
from tests.backends.kubernetes.test_events import EVENTS
from tests.doubles.kubernetes_api import FakeApi, Reply

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from cockpit.backends.kubernetes.backend import KubernetesBackend

pytestmark = pytest.mark.req("FL-09", "KU-11")
OF_FLEET = {"labels": {"work.karmada.io/permanent-id": "1"}, "annotations": {"resourcebinding.karmada.io/name": "x"}}
CREATED_AT = Millis(1767225600000)
"""When everything of the tests' own server was created."""


@pytest.fixture
async def member() -> AsyncIterator[FakeApi]:
    """The member cn-1, which answers for itself."""
    async with FakeApi() as made:
        made.kinds = {"/apis/kubeflow.org/v1": ("pytorchjobs",), "/apis/batch/v1": ("jobs",)}
        answers(made, "POST /apis/authentication.k8s.io", {"status": {"userInfo": {"username": "alice"}}})
        answers(made, "POST /apis/authorization.k8s.io", {"status": {"allowed": True}})
        yield made


@pytest.fixture
def backend(backend: KubernetesBackend, server: FakeApi, member: FakeApi) -> KubernetesBackend:
    """The host, with a proxy to cn-1; cn-2 is not reachable."""
    serve_fleet(server)
    server.create(CLUSTERS, a_member("cn-1"))
    server.create(CLUSTERS, a_member("cn-2", ready=False))
    server.behind[PROXY.format("cn-1")] = member
    return backend


def run_job(server: FakeApi, member: FakeApi) -> None:
    """A job of the fleet that runs on cn-1, with one pod that runs and one that fails again and again."""
    created = {"conditions": [{"type": "Created", "status": "True"}]}
    server.create(JOBS, a_job(metadata={"annotations": {"cockpit/submitted-by": "alice"}}, status=created))
    server.create(POLICIES.format(ACK), a_policy())
    server.create(BINDINGS, a_binding("cn-1", status={"aggregatedStatus": [reported("cn-1", "Running")]}))
    running = {"conditions": [{"type": "Running", "status": "True"}]}
    there = member.create(JOBS, a_job(metadata=OF_FLEET, status=running))
    state = {"running": {"startedAt": "2026-03-01T09:00:00Z"}}
    status = {"phase": "Running", "containerStatuses": [{"name": "main", "ready": True, "state": state}]}
    member.create(PODS, a_pod(there, spec={"nodeName": "n1"}, status=status))
    waiting = {"waiting": {"reason": "CrashLoopBackOff"}}
    crashed = {"phase": "Running", "containerStatuses": [{"name": "main", "restartCount": 3, "state": waiting}]}
    member.create(PODS, a_pod(there, "train-worker-0", spec={"nodeName": "n2"}, status=crashed))


async def test_a_row_has_the_fleets_state_and_the_members_own(
    backend: KubernetesBackend, server: FakeApi, member: FakeApi
) -> None:
    run_job(server, member)
    (job,) = await backend.jobs()
    (row,) = (await backend.fleet(job=job.id)).jobs
    assert row.heard_at is not None
    assert row == FleetJobRow(
        job=job.id,
        name="train",
        user="alice",
        cluster="cn-1",
        fleet_state="Created",
        state="Running",
        created_at=CREATED_AT,
        adopted=True,
        own="PyTorchJob team-a/train",
        replicas=1,
        division="Gang",
        ready=1,
        reason="1 pod failed and is restarted after a pause (CrashLoopBackOff)",
        heard_at=row.heard_at,
    )


async def test_pods_are_those_of_the_members_with_kubectls_words(
    backend: KubernetesBackend, server: FakeApi, member: FakeApi
) -> None:
    run_job(server, member)
    (job,) = await backend.jobs()
    first, second = (await backend.fleet(job=job.id, pods=True)).pods
    assert first == FleetPodRow(
        job=job.id,
        name="train-master-0",
        cluster="cn-1",
        ready=1,
        containers=1,
        status="Running",
        restarts=0,
        created_at=CREATED_AT,
        rank=0,
        node="n1",
        own="PyTorchJob team-a/train",
    )
    assert (second.name, second.ready, second.status, second.restarts) == ("train-worker-0", 0, "CrashLoopBackOff", 3)


async def test_jobs_without_a_cluster_on_silent_ones_and_of_members_alone_have_rows(
    backend: KubernetesBackend, server: FakeApi, member: FakeApi
) -> None:
    server.create(JOBS, a_job("waits"))
    server.create(JOBS, a_job("away"))
    server.create(BINDINGS, a_binding("cn-2", job="away", status={"aggregatedStatus": [reported("cn-2", "Running")]}))
    member.create(JOBS, a_job("direct"))
    rows = {row.name: row for row in (await backend.fleet()).jobs}
    assert (rows["waits"].cluster, rows["waits"].state, rows["waits"].adopted) == ("", "", False)
    assert rows["waits"].reason.startswith("no PropagationPolicy selects it")
    # What the member has reported to the fleet is shown, and that it is silent.
    away = rows["away"]
    assert (away.cluster, away.state, away.silence, away.heard_at) == (
        "cn-2",
        "Running",
        "cluster is not reachable",
        None,
    )
    direct = rows["direct"]
    assert (direct.job, direct.fleet_state, direct.cluster, direct.adopted) == (0, "", "cn-1", False)
    assert [row.name for row in (await backend.fleet(job=rows["waits"].job)).jobs] == ["waits"]


async def test_the_members_own_object_and_log_are_read_through_the_host(
    backend: KubernetesBackend, server: FakeApi, member: FakeApi
) -> None:
    run_job(server, member)
    (job,) = await backend.jobs()
    found = await backend.own_object(job.id)
    assert (found.cluster, found.own) == ("cn-1", "PyTorchJob team-a/train")
    assert json.loads(found.text)["metadata"]["uid"] == member.object(f"{JOBS}/train")["metadata"]["uid"]
    of_host = await backend.own_object(job.id, cluster="fake")
    assert json.loads(of_host.text)["metadata"]["uid"] == server.object(f"{JOBS}/train")["metadata"]["uid"]
    with pytest.raises(RequestRefused, match="is not bound to cn-2; it is on cn-1"):
        await backend.own_object(job.id, cluster="cn-2")
    log = "GET /api/v1/namespaces/team-a/pods/train-master-0/log"
    member.answer_next(log, Reply(body=b"2026-03-01T09:00:00Z step 1\n"))
    chunk = await backend.logs(LogRequest(job=job.id))
    assert b"step 1" in chunk.data


@pytest.mark.req("KU-05")
async def test_a_bound_job_is_explained_by_the_member_that_does_not_run_it(
    backend: KubernetesBackend, server: FakeApi, member: FakeApi
) -> None:
    server.create(JOBS, a_job())
    server.create(POLICIES.format(ACK), a_policy())
    server.create(BINDINGS, a_binding("cn-1"))
    (job,) = await backend.jobs()

    async def message() -> str:
        explanation = (await backend.explain(job.id)).explanation
        assert explanation is not None
        assert isinstance(explanation.reason, FleetWaits)
        return explanation.reason.message

    assert await message() == "cn-1 has no PyTorchJob team-a/train yet, or not any more"
    there = member.create(JOBS, a_job(metadata=OF_FLEET))
    said = "0/2 nodes are available: 2 Insufficient nvidia.com/gpu."
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": said}
    member.create(PODS, a_pod(there, status={"conditions": [condition]}))
    expected = "none of 2 nodes can take its pod; 2 have too little free nvidia.com/gpu"
    # The member is watched from the first question on.
    async with asyncio.timeout(LONGEST), aclosing(backend._fleet._members.member("cn-1").watch_jobs()) as watch:
        async for _ in watch:
            if await message() == expected:
                break


async def test_a_cluster_that_is_no_host_has_no_fleet(backend: KubernetesBackend, server: FakeApi) -> None:
    for each in ("/apis/work.karmada.io/v1alpha2", "/apis/cluster.karmada.io/v1alpha1"):
        del server.kinds[each]
    with pytest.raises(RequestRefused, match="This cluster is no fleet of several clusters"):
        await backend.fleet()


async def test_the_users_own_context_for_a_member_is_used_instead_of_the_proxy(
    server: FakeApi, member: FakeApi, tmp_path: Path
) -> None:
    serve_fleet(server)
    server.kinds["/apis/kubeflow.org/v1"] = ("pytorchjobs",)
    answers(server, "POST /apis/authentication.k8s.io", {"status": {"userInfo": {"username": "alice"}}})
    answers(server, "POST /apis/authorization.k8s.io", {"status": {"allowed": True}})
    server.create(CLUSTERS, a_member("cn-1", spec={"apiEndpoint": member.address}))
    run_job(server, member)
    contexts: dict[str, Any] = {
        "clusters": [{"name": name, "cluster": {"server": each.address}} for name, each in _named(server, member)],
        "contexts": [{"name": name, "context": {"cluster": name, "user": "ann"}} for name, _ in _named(server, member)],
        "users": [{"name": "ann", "user": {"token": "secret"}}],
    }
    file = tmp_path / "config"
    file.write_text(json.dumps(contexts))
    opened = open_context("host", {"KUBECONFIG": str(file)})
    try:
        assert [row.state for row in (await opened.fleet()).jobs] == ["Running"]
    finally:
        await opened.close()
    assert not [each for each in server.requests if "/proxy/" in each]


def _named(server: FakeApi, member: FakeApi) -> tuple[tuple[str, FakeApi], ...]:
    return ("host", server), ("of-another-name", member)


def test_a_context_is_found_by_name_and_else_by_address() -> None:
    one, other = Context("cn-1", "https://a", "u", "default"), Context("b", "https://b", "u", "default")
    known = {each.name: each for each in (one, other)}
    assert own_context("cn-1", "https://b", known) == "cn-1"
    assert own_context("cn-2", "https://b", known) == "b"
    assert own_context("cn-2", "", known | {"c": other._replace(server="")}) == ""


def test_the_word_of_a_pod_is_that_of_its_container() -> None:
    assert pod_word(a_pod_struct()) == "Pending"
    assert pod_word(an_ended_pod(code=1)) == "Error"
    assert pod_word(an_ended_pod()) == "Completed"
    assert pod_word(a_pod_struct(**merged({}, {"status": {"phase": "Failed", "reason": "Evicted"}}))) == "Evicted"
    assert pod_word(a_pod_struct(metadata={"deletionTimestamp": "2026-03-01T09:00:00Z"})) == "Terminating"


@pytest.mark.req("KU-05")
async def test_the_events_of_a_replica_are_those_of_its_member_under_the_host_s_number(
    backend: KubernetesBackend, server: FakeApi, member: FakeApi
) -> None:
    run_job(server, member)
    pod = member.object(f"{PODS}/train-worker-0")["metadata"]
    about = {"kind": "Pod", "name": pod["name"], "namespace": "team-a", "uid": pod["uid"]}
    said = {"reason": "BackOff", "message": "Back-off restarting failed container", "type": "Warning"}
    at = {"lastTimestamp": "2026-03-01T09:00:00Z", "source": {"component": "kubelet"}}
    member.create(EVENTS, {"metadata": {"name": "train-worker-0.1"}, "involvedObject": about, **said, **at})
    (job,) = await backend.jobs()
    (record,) = [each for each in await backend.events(job=job.id, rank=1) if isinstance(each.body, ClusterReported)]
    assert isinstance(record.body, ClusterReported)
    assert (record.body.job, record.body.about, record.body.reason) == (job.id, "Pod train-worker-0", "BackOff")
    assert not [each for each in await backend.events(job=job.id) if getattr(each.body, "reason", "") == "BackOff"]


async def test_each_member_is_asked_once_for_the_pods_of_many_jobs(
    backend: KubernetesBackend, server: FakeApi, member: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5):
        server.create(JOBS, a_job(f"train-{number}"))
        server.create(BINDINGS, a_binding("cn-1", job=f"train-{number}"))
        there = member.create(JOBS, a_job(f"train-{number}", metadata=OF_FLEET))
        member.create(PODS, a_pod(there, f"train-{number}-master-0"))
    asked: list[str] = []
    each = backend._fleet._members.each

    async def counted(names: Any, ask: Any) -> Any:
        asked.extend(names)
        return await each(names, ask)

    monkeypatch.setattr(backend._fleet._members, "each", counted)
    jobs = [row.id for row in (await backend.jobs())][:4]
    pods = (await backend.fleet(jobs=jobs, pods=True)).pods
    assert sorted({pod.job for pod in pods}) == sorted(jobs)
    assert asked == ["cn-1"]
    before = len(member.requests)
    assert (await backend.fleet(jobs=jobs, pods=True)).pods == pods
    assert len(member.requests) - before == 0, "what is watched is not asked for again"
