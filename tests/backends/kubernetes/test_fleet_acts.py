"""Jobs that are submitted to a fleet's host with their policies, dequeued and deleted with them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from cockpit.errors import RequestRefused
from cockpit.model.refusal import RefusalKind
from cockpit.model.spec import Failover, Mode, Suspension
from tests.backends.kubernetes.fleet_objects import (
    ACK,
    BINDINGS,
    CLUSTERS,
    JOBS,
    KARMADA,
    POLICIES,
    a_binding,
    a_member,
    a_policy,
    serve_fleet,
)
from tests.backends.kubernetes.test_backend import a_job
from tests.builders import a_spec
from tests.doubles.kubernetes_api import FakeApi, Reply

if TYPE_CHECKING:
    from cockpit.backends.kubernetes.backend import KubernetesBackend
    from cockpit.model.spec import JobSpec

pytestmark = pytest.mark.req("KU-11")
ACK_POLICIES, KARMADA_POLICIES = POLICIES.format(ACK), POLICIES.format(KARMADA)


@pytest.fixture
def backend(backend: KubernetesBackend, server: FakeApi) -> KubernetesBackend:
    serve_fleet(server)
    server.create(CLUSTERS, a_member())
    return backend


@pytest.fixture
def karmada(backend: KubernetesBackend, server: FakeApi) -> KubernetesBackend:
    """A host that serves Karmada's own policies alone."""
    del server.kinds[f"/apis/{ACK}"]
    serve_fleet(server, KARMADA)
    return backend


def a_pytorch(**fields: Any) -> JobSpec:
    return a_spec(**{"name": "train", "image": "img:1", "mode": Mode.PYTORCH, "nodes": 3, **fields})


async def the_id(backend: KubernetesBackend) -> Any:
    (row,) = await backend.jobs()
    return row.id


@pytest.mark.req("FL-04", "FL-08")
async def test_a_job_is_created_after_its_policy_which_then_belongs_to_it(
    backend: KubernetesBackend, server: FakeApi
) -> None:
    spec = a_pytorch(suspension=Suspension(scheduling=True), failover=Failover(toleration_seconds=60))
    await backend.submit([spec])
    made, job = server.object(f"{ACK_POLICIES}/train"), server.object(f"{JOBS}/train")
    assert made["spec"] == {
        "suspension": {"scheduling": True},
        "propagateDeps": True,
        "failover": {"application": {"decisionConditions": {"tolerationSeconds": 60}, "purgeMode": "Immediately"}},
        "placement": {
            "replicaScheduling": {"replicaSchedulingType": "Divided", "customSchedulingType": "Gang"},
            "spreadConstraints": [{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}],
        },
        "resourceSelectors": [{"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "name": "train"}],
    }
    (owner,) = made["metadata"]["ownerReferences"]
    assert (owner["uid"], owner["kind"]) == (job["metadata"]["uid"], "PyTorchJob")
    # The policy says that it waits: suspended itself, the job would be so on its member.
    assert "scheduling.x-k8s.io/suspend" not in job["metadata"]["annotations"]
    assert "suspend" not in job["spec"]["runPolicy"]
    posts = [each for each in server.requests if each.startswith("POST /apis/") and "team-a" in each]
    dry, real = posts[:2], posts[2:]
    assert all("dryRun=All" in each and "fieldValidation=Strict" in each for each in dry)
    assert [each.partition("?")[0].rpartition("/")[2] for each in real] == ["propagationpolicies", "pytorchjobs"]


@pytest.mark.req("FL-05")
async def test_only_a_job_that_says_so_may_go_to_several_clusters(backend: KubernetesBackend, server: FakeApi) -> None:
    await backend.submit([a_spec(name="sweep", image="img:1", divide_over_clusters=True)])
    placement = server.object(f"{ACK_POLICIES}/sweep")["spec"]["placement"]
    assert "spreadConstraints" not in placement
    assert placement["replicaScheduling"]["customSchedulingType"] == "Gang"


async def test_karmadas_dialect_has_neither_gangs_nor_suspended_scheduling(
    karmada: KubernetesBackend, server: FakeApi
) -> None:
    await karmada.submit([a_pytorch(suspension=Suspension(scheduling=True))])
    spec = server.object(f"{KARMADA_POLICIES}/train")["spec"]
    assert spec["suspension"] == {"dispatching": True}
    assert spec["placement"]["replicaScheduling"] == {
        "replicaSchedulingType": "Divided",
        "replicaDivisionPreference": "Aggregated",
    }
    assert spec["failover"]["application"]["purgeMode"] == "Directly"
    with pytest.raises(RequestRefused, match="divide_over_clusters: Karmada's policies have no customSchedulingType"):
        await karmada.submit([a_spec(name="sweep", image="img:1", divide_over_clusters=True)])
    assert server.find("/apis/batch/v1/namespaces/team-a/jobs/sweep") is None


async def test_an_older_karmada_gets_its_own_word_for_removal_at_once(
    karmada: KubernetesBackend, server: FakeApi
) -> None:
    message = 'spec.failover.application.purgeMode: Unsupported value: "Directly"'
    server.answer_next(f"POST {KARMADA_POLICIES}", Reply.failure(422, "Invalid", message))
    await karmada.submit([a_pytorch()])
    assert server.object(f"{KARMADA_POLICIES}/train")["spec"]["failover"]["application"]["purgeMode"] == "Immediately"


async def test_nothing_is_left_of_a_job_that_is_refused_after_its_policy(
    backend: KubernetesBackend, server: FakeApi
) -> None:
    await backend.jobs()
    server.answer_next(f"POST {JOBS}?fieldValidation=Strict&dryRun", Reply(status=201, body=b'{"metadata": {}}'))
    server.answer_next(f"POST {JOBS}", Reply.failure(403, "Forbidden", "exceeded quota"))
    with pytest.raises(RequestRefused, match="exceeded quota"):
        await backend.submit([a_pytorch()])
    assert server.find(f"{ACK_POLICIES}/train") is None


async def test_who_may_make_no_policy_can_use_one_that_selects_the_job(
    backend: KubernetesBackend, server: FakeApi
) -> None:
    denied = Reply.failure(403, "Forbidden", "propagationpolicies is forbidden")
    server.answer_next(f"POST {ACK_POLICIES}", denied)
    with pytest.raises(RequestRefused, match="propagationpolicies is forbidden"):
        await backend.submit([a_pytorch()])
    server.create(ACK_POLICIES, a_policy())
    server.answer_next(f"POST {ACK_POLICIES}", denied)
    # What the job asks of the fleet would be lost.
    with pytest.raises(RequestRefused, match="propagationpolicies is forbidden"):
        await backend.submit([a_pytorch(suspension=Suspension(scheduling=True))])
    await backend.job(await _submitted(backend, server, denied))
    assert server.find(f"{ACK_POLICIES}/train") is None


async def _submitted(backend: KubernetesBackend, server: FakeApi, denied: Reply) -> Any:
    server.answer_next(f"POST {ACK_POLICIES}", denied)
    (job,) = await backend.submit([a_pytorch()])
    return job


async def test_a_deleted_job_takes_its_own_policy_along_and_no_other(
    backend: KubernetesBackend, server: FakeApi
) -> None:
    server.create(ACK_POLICIES, a_policy())
    (job,) = await backend.submit([a_pytorch()])
    await backend.cancel(job)
    assert server.find(f"{JOBS}/train") is None
    assert server.find(f"{ACK_POLICIES}/train") is None
    assert server.find(f"{ACK_POLICIES}/example-policy") is not None


@pytest.mark.req("FL-07")
async def test_release_lifts_the_suspension_of_the_jobs_own_policy_and_of_its_binding(
    backend: KubernetesBackend, server: FakeApi
) -> None:
    (job,) = await backend.submit([a_pytorch(suspension=Suspension(scheduling=True))])
    server.create(BINDINGS, a_binding(spec={"suspension": {"scheduling": True}}))
    await backend.release(job)
    assert "suspension" not in server.object(f"{ACK_POLICIES}/train")["spec"]
    assert "suspension" not in server.object(f"{BINDINGS}/train-pytorchjob")["spec"]
    with pytest.raises(RequestRefused, match="not suspended"):
        await backend.release(job)


@pytest.mark.req("FL-07")
async def test_release_leaves_a_policy_of_many_jobs_as_it_is(backend: KubernetesBackend, server: FakeApi) -> None:
    server.create(ACK_POLICIES, a_policy(suspension={"scheduling": True}))
    server.create(JOBS, a_job())
    job = await the_id(backend)
    with pytest.raises(RequestRefused, match=r"has not made the binding of job .* yet") as refused:
        await backend.release(job)
    assert refused.value.refusal.kind is RefusalKind.CONFLICT
    server.create(BINDINGS, a_binding(spec={"suspension": {"scheduling": True}}))
    await _until_bound(backend, job)
    await backend.release(job)
    assert server.object(f"{ACK_POLICIES}/example-policy")["spec"]["suspension"] == {"scheduling": True}
    assert "suspension" not in server.object(f"{BINDINGS}/train-pytorchjob")["spec"]


async def _until_bound(backend: KubernetesBackend, job: Any) -> None:
    async for _ in backend.watch_jobs(anything=True):
        found = backend._list.jobs[job].fleet
        if found is not None and found.binding is not None:
            return


async def test_a_job_of_a_fleet_cannot_begin_anew(backend: KubernetesBackend) -> None:
    (job,) = await backend.submit([a_pytorch()])
    with pytest.raises(RequestRefused, match="sees no pods of a job"):
        await backend.requeue(job)


@pytest.mark.req("KU-11")
async def test_the_objects_of_a_submission_are_shown_as_they_are_created_and_none_is_created(
    backend: KubernetesBackend, server: FakeApi
) -> None:
    await assert_shown_as_created(backend, server, ACK_POLICIES)


@pytest.mark.req("KU-11")
async def test_the_objects_are_shown_in_karmadas_dialect_on_its_host(
    karmada: KubernetesBackend, server: FakeApi
) -> None:
    await assert_shown_as_created(karmada, server, KARMADA_POLICIES)


async def assert_shown_as_created(host: KubernetesBackend, server: FakeApi, policies: str) -> None:
    spec = a_pytorch(suspension=Suspension(scheduling=True))
    policy, job = await host.manifests([spec])
    assert not [each for each in server.requests if each.startswith("POST ") and "dryRun" not in each and JOBS in each]
    assert server.find(f"{policies}/train") is None
    assert server.find(f"{JOBS}/train") is None
    await host.submit([spec])
    for shown, made in ((policy, f"{policies}/train"), (job, f"{JOBS}/train")):
        there = server.object(made)
        assert (shown["kind"], shown["apiVersion"]) == (there["kind"], there["apiVersion"])
        assert shown["spec"] == there["spec"]
        assert shown["metadata"]["namespace"] == "team-a"


async def test_objects_are_not_shown_of_a_job_that_the_server_would_refuse(
    backend: KubernetesBackend, server: FakeApi
) -> None:
    server.answer_next(f"POST {ACK_POLICIES}", Reply.failure(403, "Forbidden", "policies is forbidden"))
    with pytest.raises(RequestRefused, match="forbidden"):
        await backend.manifests([a_pytorch(suspension=Suspension(scheduling=True))])
