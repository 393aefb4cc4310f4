"""Changes of a job's fields: what is changed where, what stays, and what is refused with which reason."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from cockpit.backends.kubernetes.backend import KubernetesBackend
from cockpit.backends.kubernetes.writing import merge_patch
from cockpit.errors import MayBeAccepted, RequestRefused
from cockpit.model.asking import SiteFactor, WantedLimit
from cockpit.model.ids import JobId
from cockpit.model.spec import NO_LIMIT_SECONDS, JobSpec, PriorityWord
from tests.backends.kubernetes.objects import a_template, merged
from tests.doubles.kubernetes_api import FakeApi, Reply

PYTORCH = "/apis/kubeflow.org/v1/namespaces/team-a/pytorchjobs"
JOBS = "/apis/batch/v1/namespaces/team-a/jobs"
PODS = "/api/v1/namespaces/team-a/pods"
WORKLOADS = "/apis/kueue.x-k8s.io/v1beta1/namespaces/team-a/workloads"
CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
KUEUE_CLASSES = "/apis/kueue.x-k8s.io/v1beta1/workloadpriorityclasses"
THEIRS = {"annotations": {"theirs": "stays"}, "labels": {"team": "vision"}}


@pytest.fixture
def backend(backend: KubernetesBackend, server: FakeApi) -> KubernetesBackend:
    for name, value in (("urgent", 1000), ("batch", -5), ("batch-too", -5)):
        server.create(CLASSES, {"metadata": {"name": name}, "value": value})
    return backend


def a_pytorch_job(*, suspend: bool = True, workers: int = 2, **spec: Any) -> dict[str, Any]:
    roles = {
        "Master": {"replicas": 1, "template": a_template()},
        "Worker": {"replicas": workers, "template": a_template()},
    }
    if "elasticPolicy" in spec:
        del roles["Master"]
    body = {"pytorchReplicaSpecs": roles, "runPolicy": {"suspend": suspend, "cleanPodPolicy": "None"}}
    return {"kind": "PyTorchJob", "metadata": {"name": "train", **THEIRS}, "spec": merged(body, spec)}


def a_batch_job(**spec: Any) -> dict[str, Any]:
    return {"kind": "Job", "metadata": {"name": "train"}, "spec": {"template": a_template(), **spec}}


def a_pod_of(owner: dict[str, Any]) -> dict[str, Any]:
    reference = {"uid": owner["metadata"]["uid"], "kind": owner["kind"], "name": "train", "controller": True}
    return {"kind": "Pod", "metadata": {"name": "train-0", "ownerReferences": [reference]}, **a_template()}


async def the_job(backend: KubernetesBackend) -> tuple[JobId, JobSpec]:
    (row,) = await backend.jobs()
    return row.id, (await backend.job(row.id)).job.spec


def patches(server: FakeApi) -> list[str]:
    return [each for each in server.requests if each.startswith("PATCH")]


@pytest.mark.req("KU-07", "KU-12")
async def test_a_change_is_decided_anew_when_somebody_else_was_faster(
    backend: KubernetesBackend, server: FakeApi
) -> None:
    server.create(PYTORCH, a_pytorch_job(runPolicy={"activeDeadlineSeconds": 600}))
    job, _ = await the_job(backend)
    conflict = Reply.failure(409, "Conflict", "the object has been modified")
    server.answer_next(f"PATCH {PYTORCH}/train", conflict)
    await backend.set_time_limit(job, WantedLimit(60, beside=True))
    made = server.object(f"{PYTORCH}/train")
    assert made["spec"]["runPolicy"] == {"suspend": True, "cleanPodPolicy": "None", "activeDeadlineSeconds": 660}
    assert {name: made["metadata"][name] for name in THEIRS} == THEIRS
    assert len(patches(server)) == 2
    for _ in range(5):
        server.answer_next(f"PATCH {PYTORCH}/train", conflict)
    with pytest.raises(RequestRefused, match="the object has been modified"):
        await backend.set_time_limit(job, WantedLimit(60, beside=True))
    # The largest limit stands for none.
    await backend.set_time_limit(job, WantedLimit(NO_LIMIT_SECONDS))
    assert "activeDeadlineSeconds" not in server.object(f"{PYTORCH}/train")["spec"]["runPolicy"]
    server.answer_next(f"PATCH {PYTORCH}/train", Reply(body=b"{}", cut=0))
    with pytest.raises(MayBeAccepted):
        await backend.set_time_limit(job, WantedLimit(60))


@pytest.mark.req("KU-07")
async def test_a_suspended_job_gets_another_priority_class(backend: KubernetesBackend, server: FakeApi) -> None:
    server.create(PYTORCH, a_pytorch_job())
    job, _ = await the_job(backend)
    await backend.set_priority(job, PriorityWord.URGENT)
    roles = server.object(f"{PYTORCH}/train")["spec"]["pytorchReplicaSpecs"]
    assert [each["template"]["spec"]["priorityClassName"] for each in roles.values()] == ["urgent", "urgent"]
    assert (await backend.job(job)).job.spec.priority is PriorityWord.URGENT
    # A number is the class with that value.
    await backend.set_priority(job, -5)
    assert (await backend.job(job)).job.spec.qos == "batch"
    await backend.set_priority(job, PriorityWord.NORMAL)
    roles = server.object(f"{PYTORCH}/train")["spec"]["pytorchReplicaSpecs"]
    assert ["priorityClassName" in each["template"]["spec"] for each in roles.values()] == [False, False]
    made = server.object(f"{PYTORCH}/train")
    assert {name: made["metadata"][name] for name in THEIRS} == THEIRS


@pytest.mark.req("KU-07")
@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        (
            PriorityWord.VERY_URGENT,
            r"no PriorityClass with the name very-urgent. It has batch \(-5\), .* urgent \(1000\)",
        ),
        (77, "no PriorityClass with the value 77"),
        (SiteFactor(5), "Kubernetes adds nothing to a priority"),
    ],
)
async def test_a_priority_without_a_class_is_refused(
    backend: KubernetesBackend, server: FakeApi, wanted: Any, words: str
) -> None:
    server.create(PYTORCH, a_pytorch_job())
    job, _ = await the_job(backend)
    with pytest.raises(RequestRefused, match=words):
        await backend.set_priority(job, wanted)
    assert patches(server) == []


@pytest.mark.req("KU-07")
async def test_the_priority_of_pods_that_exist_is_not_changed(backend: KubernetesBackend, server: FakeApi) -> None:
    job = server.create(PYTORCH, a_pytorch_job(suspend=False))
    server.create(PODS, a_pod_of(job))
    number, spec = await the_job(backend)
    with pytest.raises(RequestRefused, match=r"team-a/train\) has pods: hold it, which deletes them"):
        await backend.set_priority(number, PriorityWord.URGENT)
    with pytest.raises(RequestRefused, match="has pods: hold it"):
        await backend.edit(number, replace(spec, priority=PriorityWord.URGENT))
    assert patches(server) == []


@pytest.mark.req("KU-04", "KU-07")
async def test_kueue_orders_a_job_by_its_label(backend: KubernetesBackend, server: FakeApi) -> None:
    server.kinds = {}
    kinds = ("workloads", "workloadpriorityclasses")
    job = server.create(PYTORCH, a_pytorch_job(suspend=False))
    reference = {"uid": job["metadata"]["uid"], "kind": "PyTorchJob", "name": "train", "controller": True}
    server.create(WORKLOADS, {"metadata": {"name": "w", "ownerReferences": [reference]}, "spec": {"queueName": "q"}})
    server.create(KUEUE_CLASSES, {"metadata": {"name": "gold"}, "value": 9})
    server.create(PODS, a_pod_of(job))
    server.kinds = {
        "/apis/kubeflow.org/v1": ("pytorchjobs",),
        "/apis/batch/v1": ("jobs",),
        "/apis/kueue.x-k8s.io/v1beta1": kinds,
    }
    number, _ = await the_job(backend)
    # Its pods exist: Kueue's class concerns their place in its queue, not them.
    await backend.set_priority(number, 9)
    made = server.object(f"{PYTORCH}/train")
    assert made["metadata"]["labels"] == {"team": "vision", "kueue.x-k8s.io/priority-class": "gold"}
    roles = made["spec"]["pytorchReplicaSpecs"]
    assert "priorityClassName" not in json.dumps(roles)
    assert (await backend.job(number)).row.qos == "gold"
    with pytest.raises(RequestRefused, match="no WorkloadPriorityClass with the name urgent"):
        await backend.set_priority(number, PriorityWord.URGENT)


@pytest.mark.req("KU-07", "KU-12")
async def test_an_edit_changes_what_differs_in_one_patch(backend: KubernetesBackend, server: FakeApi) -> None:
    server.create(PYTORCH, a_pytorch_job())
    job, spec = await the_job(backend)
    assert (spec.nodes, spec.mode) == (3, "pytorch")
    wanted = replace(spec, time_limit_seconds=900, priority=PriorityWord.URGENT, nodes=5)
    await backend.edit(job, wanted)
    made = server.object(f"{PYTORCH}/train")
    assert made["spec"]["runPolicy"]["activeDeadlineSeconds"] == 900
    roles = made["spec"]["pytorchReplicaSpecs"]
    assert {name: each["replicas"] for name, each in roles.items()} == {"Master": 1, "Worker": 4}
    assert len(patches(server)) == 1
    assert (await backend.job(job)).job.spec == wanted
    with pytest.raises(RequestRefused, match="The edit changes nothing"):
        await backend.edit(job, wanted)


@pytest.mark.req("KU-07")
async def test_an_edit_of_other_fields_is_refused_whole_and_names_them(
    backend: KubernetesBackend, server: FakeApi
) -> None:
    server.create(PYTORCH, a_pytorch_job())
    job, spec = await the_job(backend)
    with pytest.raises(RequestRefused, match="changes no command and no image of a PyTorchJob: cancel it"):
        await backend.edit(job, replace(spec, command="other", image="other:1", time_limit_seconds=900))
    with pytest.raises(RequestRefused, match="nodes: a PyTorchJob with the roles Master, Worker has no 1 pods"):
        await backend.edit(job, replace(spec, nodes=1))
    assert patches(server) == []


@pytest.mark.req("KU-07")
async def test_an_elastic_job_is_scaled_while_it_runs(backend: KubernetesBackend, server: FakeApi) -> None:
    policy = {"minReplicas": 1, "maxReplicas": 4, "rdzvBackend": "c10d"}
    job = server.create(PYTORCH, a_pytorch_job(suspend=False, elasticPolicy=policy))
    server.create(PODS, a_pod_of(job))
    number, spec = await the_job(backend)
    assert spec.elastic is not None
    assert (spec.elastic.min_workers, spec.elastic.workers, spec.elastic.max_workers) == (1, 2, 4)
    await backend.edit(number, replace(spec, nodes=6, elastic=replace(spec.elastic, workers=6, max_workers=8)))
    made = server.object(f"{PYTORCH}/train")["spec"]
    assert made["elasticPolicy"] == {**policy, "maxReplicas": 8}
    assert made["pytorchReplicaSpecs"]["Worker"]["replicas"] == 6
    assert (await backend.job(number)).row.workers == (1, 6, 8)
    with pytest.raises(RequestRefused, match="elastic: 9 workers are not between 1 and 8"):
        await backend.edit(number, replace(spec, elastic=replace(spec.elastic, workers=9, max_workers=8)))
    with pytest.raises(RequestRefused, match="elastic: a PyTorchJob is elastic from its submission or never"):
        await backend.edit(number, replace(spec, elastic=None))


@pytest.mark.req("KU-07")
@pytest.mark.parametrize(
    ("given", "made"),
    [
        ({"parallelism": 4}, {"parallelism": 2}),
        ({"parallelism": 4, "completions": 9}, {"parallelism": 2, "completions": 9}),
        (
            {"parallelism": 4, "completions": 4, "completionMode": "Indexed"},
            {"parallelism": 2, "completions": 2, "completionMode": "Indexed"},
        ),
    ],
    ids=["work queue", "completions", "elastic indexed"],
)
async def test_a_job_runs_more_or_fewer_pods_at_a_time(
    backend: KubernetesBackend, server: FakeApi, given: dict[str, Any], made: dict[str, Any]
) -> None:
    server.create(JOBS, a_batch_job(**given))
    job, spec = await the_job(backend)
    await backend.edit(job, replace(spec, nodes=2))
    spec_now = server.object(f"{JOBS}/train")["spec"]
    assert {name: value for name, value in spec_now.items() if name != "template"} == made


@pytest.mark.req("KU-07")
async def test_the_indices_of_a_job_that_completes_them_in_turn_stay(
    backend: KubernetesBackend, server: FakeApi
) -> None:
    server.create(JOBS, a_batch_job(parallelism=2, completions=4, completionMode="Indexed"))
    job, spec = await the_job(backend)
    with pytest.raises(RequestRefused, match="completes 4 indices in turn; their number stays"):
        await backend.edit(job, replace(spec, nodes=3))
    server.change(f"{JOBS}/train", {"spec": {"completionMode": "NonIndexed"}})
    with pytest.raises(RequestRefused, match="completes 4 pods in all; more at a time change nothing"):
        await backend.edit(job, replace(spec, nodes=5))


@pytest.mark.req("KU-12")
def test_a_merge_patch_has_only_what_differs() -> None:
    before = {"a": 1, "b": {"c": 2, "d": [1, 2]}, "e": "gone", "f": {"g": 1}}
    after = {"a": 1, "b": {"c": 3, "d": [1, 2]}, "f": {"g": 1}, "h": {"i": 1}}
    assert merge_patch(before, after) == {"b": {"c": 3}, "e": None, "h": {"i": 1}}
