"""Jobs begin anew under their numbers, and no job is lost if that fails half-way."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest

from cockpit.backends.kubernetes import requeueing
from cockpit.backends.kubernetes.backend import KubernetesBackend
from cockpit.errors import RequestRefused
from cockpit.model.job import JobState
from tests.backends.kubernetes.objects import a_condition, a_template
from tests.doubles.kubernetes_api import FakeApi, Reply

PYTORCH = "/apis/kubeflow.org/v1/namespaces/team-a/pytorchjobs"
JOBS = "/apis/batch/v1/namespaces/team-a/jobs"
PODS = "/api/v1/namespaces/team-a/pods"
WORKLOADS = "/apis/kueue.x-k8s.io/v1beta1/namespaces/team-a/workloads"
LONGEST = 20.0


@pytest.fixture
def backend(backend: KubernetesBackend, server: FakeApi, tmp_path: Path) -> KubernetesBackend:
    backend._cluster._requeuer._folder = tmp_path / "requeued"
    server.kinds["/apis/kueue.x-k8s.io/v1beta1"] = ("workloads",)
    return backend


def a_pytorch_job() -> dict[str, Any]:
    roles = {"Master": {"replicas": 1, "template": a_template()}}
    spec = {"pytorchReplicaSpecs": roles, "runPolicy": {}}
    return {"kind": "PyTorchJob", "apiVersion": "kubeflow.org/v1", "metadata": {"name": "train"}, "spec": spec}


def an_ended_job() -> dict[str, Any]:
    """A Job as the server has it, with what the server itself has added."""
    own = {"batch.kubernetes.io/controller-uid": "u1", "job-name": "train"}
    template = {"metadata": {"labels": {**own, "app": "x"}}, **a_template()}
    return {
        "kind": "Job",
        "apiVersion": "batch/v1",
        "metadata": {"name": "train", "labels": {**own, "team": "vision"}, "annotations": {"theirs": "stays"}},
        "spec": {"template": template, "selector": {"matchLabels": own}, "backoffLimit": 0},
        "status": {"conditions": [a_condition("Failed")]},
    }


def a_pod_of(owner: dict[str, Any]) -> dict[str, Any]:
    reference = {"uid": owner["metadata"]["uid"], "kind": owner["kind"], "name": "train", "controller": True}
    started = {"state": {"running": {"startedAt": "2026-03-01T09:00:00Z"}}}
    status = {"phase": "Running", "containerStatuses": [{"name": "main", **started}]}
    metadata = {"name": "train-0", "ownerReferences": [reference]}
    return {"kind": "Pod", "metadata": metadata, **a_template(spec={"nodeName": "n1"}), "status": status}


def read(file: str) -> tuple[dict[str, Any], int]:
    """Return a kept manifest, and the mode of its file."""
    return json.loads(Path(file).read_text()), Path(file).stat().st_mode


def left_in(folder: Path) -> list[Path]:
    return list(folder.iterdir())


async def asked(server: FakeApi, beginning: str) -> None:
    """Wait until the server was asked so."""
    async with asyncio.timeout(LONGEST):
        while not any(each.startswith(beginning) for each in server.requests):  # noqa: ASYNC110 - of the test's server
            await asyncio.sleep(0.001)


@pytest.mark.req("KU-07", "KU-12")
async def test_a_running_job_is_suspended_until_its_pods_are_gone(backend: KubernetesBackend, server: FakeApi) -> None:
    job = server.create(PYTORCH, a_pytorch_job())
    server.create(PODS, a_pod_of(job))
    (row,) = await backend.jobs()
    assert row.state is JobState.RUNNING
    async with asyncio.timeout(LONGEST), asyncio.TaskGroup() as group:
        group.create_task(backend.requeue(row.id))
        await asked(server, f"PATCH {PYTORCH}/train")
        assert server.object(f"{PYTORCH}/train")["spec"]["runPolicy"] == {"suspend": True}
        server.remove(f"{PODS}/train-0")
    made = server.object(f"{PYTORCH}/train")
    assert (made["spec"]["runPolicy"], made["metadata"]["uid"]) == ({"suspend": False}, job["metadata"]["uid"])
    assert [each.id for each in await backend.jobs()] == [row.id]
    with pytest.raises(RequestRefused, match=r"team-a/train\) is queued already"):
        await backend.requeue(row.id)


@pytest.mark.req("KU-07")
async def test_pods_that_do_not_end_leave_the_job_suspended_and_say_how_to_go_on(
    backend: KubernetesBackend, server: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requeueing, "GONE_SECONDS", 0.0)
    server.create(PODS, a_pod_of(server.create(PYTORCH, a_pytorch_job())))
    (row,) = await backend.jobs()
    with pytest.raises(RequestRefused, match=r"is suspended, but its pods have not ended .* cockpit resume k"):
        await backend.requeue(row.id)
    assert server.object(f"{PYTORCH}/train")["spec"]["runPolicy"] == {"suspend": True}


@pytest.mark.req("KU-04", "KU-07")
async def test_kueue_evicts_a_job_and_queues_it_once_more(backend: KubernetesBackend, server: FakeApi) -> None:
    job = server.create(PYTORCH, a_pytorch_job())
    server.create(PODS, a_pod_of(job))
    reference = {"uid": job["metadata"]["uid"], "kind": "PyTorchJob", "name": "train", "controller": True}
    server.create(WORKLOADS, {"metadata": {"name": "w", "ownerReferences": [reference]}, "spec": {"queueName": "q"}})
    (row,) = await backend.jobs()
    async with asyncio.timeout(LONGEST), asyncio.TaskGroup() as group:
        group.create_task(backend.requeue(row.id))
        await asked(server, f"PATCH {WORKLOADS}/w")
        assert server.object(f"{WORKLOADS}/w")["spec"] == {"queueName": "q", "active": False}
        server.remove(f"{PODS}/train-0")
    assert server.object(f"{WORKLOADS}/w")["spec"] == {"queueName": "q", "active": True}
    assert "suspend" not in server.object(f"{PYTORCH}/train")["spec"]["runPolicy"]


@pytest.mark.req("KU-07", "KU-12")
async def test_an_ended_job_is_created_once_more_and_keeps_its_number(
    backend: KubernetesBackend, server: FakeApi, tmp_path: Path
) -> None:
    old = server.create(JOBS, an_ended_job())
    (row,) = await backend.jobs(ended=True)
    assert row.state is JobState.ERROR
    await backend.requeue(row.id)
    made = server.object(f"{JOBS}/train")
    assert made["metadata"]["uid"] != old["metadata"]["uid"]
    assert made["metadata"]["labels"] == {"team": "vision"}
    assert made["metadata"]["annotations"] == {"theirs": "stays", "cockpit/job-number": str(row.id)}
    assert made["spec"].keys() == {"template", "backoffLimit"}
    assert made["spec"]["template"]["metadata"]["labels"] == {"app": "x"}
    assert "status" not in made
    assert [(each.id, each.state) for each in await backend.jobs(ended=True)] == [(row.id, JobState.QUEUED)]
    assert left_in(tmp_path / "requeued") == []
    # The server was asked before anything was deleted.
    changes = [each.split("?")[1] for each in server.requests if each.startswith(f"POST {JOBS}?")]
    assert changes == ["dryRun=All"]


@pytest.mark.req("KU-07")
async def test_a_job_that_the_server_would_refuse_is_not_deleted(backend: KubernetesBackend, server: FakeApi) -> None:
    server.create(JOBS, an_ended_job())
    (row,) = await backend.jobs(ended=True)
    server.answer_next(f"POST {JOBS}?dryRun=All", Reply.failure(403, "Forbidden", "exceeded quota"))
    with pytest.raises(RequestRefused, match="exceeded quota"):
        await backend.requeue(row.id)
    assert server.find(f"{JOBS}/train") is not None
    assert not any(each.startswith("DELETE") for each in server.requests)


@pytest.mark.req("KU-07")
async def test_the_manifest_of_a_job_that_was_not_created_once_more_is_in_a_file(
    backend: KubernetesBackend, server: FakeApi
) -> None:
    server.create(JOBS, an_ended_job())
    (row,) = await backend.jobs(ended=True)
    # Accepted when the server is asked, and refused when it is created.
    server.answer_next(f"POST {JOBS}", Reply(body=b'{"metadata": {}}'))
    server.answer_next(f"POST {JOBS}", Reply.failure(403, "Forbidden", "exceeded quota"))
    with pytest.raises(RequestRefused, match=r"was not created once more: .* kubectl create -f") as refused:
        await backend.requeue(row.id)
    named = re.search(r"kubectl create -f (\S+)", refused.value.refusal.message)
    assert named is not None
    kept, mode = read(named[1])
    assert kept["spec"]["template"]["spec"]["containers"] == a_template()["spec"]["containers"]
    assert mode & 0o077 == 0
