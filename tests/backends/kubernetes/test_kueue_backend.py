"""Questions about jobs that wait for Kueue, over the tests' own API server."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from cockpit.backends.kubernetes.backend import KubernetesBackend
from cockpit.errors import RequestRefused
from cockpit.model.forecast import NoBound
from cockpit.model.pod_reasons import QueueWaits
from tests.backends.kubernetes.conftest import answers
from tests.backends.kubernetes.objects import GPU, a_condition
from tests.builders import a_spec
from tests.doubles.kubernetes_api import FakeApi, Reply

KUEUE = "/apis/kueue.x-k8s.io"
JOBS = "/apis/batch/v1/namespaces/team-a/jobs"
HOUR = 3_600_000
POSITIONS = "GET /apis/visibility.kueue.x-k8s.io/v1beta2/namespaces/team-a/localqueues/train/pendingworkloads"


def serve(server: FakeApi, version: str) -> None:
    """Serve Kueue in a version, with one queue of 8 cards."""
    server.kinds[f"{KUEUE}/{version}"] = ("workloads", "clusterqueues", "localqueues", "cohorts", "resourceflavors")
    resources = [{"name": GPU, "nominalQuota": "8"}]
    groups = [{"coveredResources": [GPU], "flavors": [{"name": "h100", "resources": resources}]}]
    queue = {"metadata": {"name": "gpu"}, "spec": {"resourceGroups": groups}, "status": {"pendingWorkloads": 1}}
    server.create(f"{KUEUE}/{version}/clusterqueues", queue)
    local = {"metadata": {"name": "train"}, "spec": {"clusterQueue": "gpu"}}
    server.create(f"{KUEUE}/{version}/namespaces/team-a/localqueues", local)


def add_job(
    server: FakeApi, version: str, name: str, cards: int, *, admitted: bool = False, limit: int | None = None
) -> None:
    container = {"name": "main", "image": "i", "resources": {"limits": {GPU: str(cards)}}}
    template = {"spec": {"containers": [container]}}
    deadline = {} if limit is None else {"activeDeadlineSeconds": limit}
    spec = {"suspend": not admitted, "parallelism": 1, "template": template, **deadline}
    job = server.create(JOBS, {"metadata": {"name": name}, "spec": spec, "status": {}})
    owner = {"uid": job["metadata"]["uid"], "kind": "Job", "name": name, "controller": True}
    status: dict[str, Any] = {
        "conditions": [a_condition("QuotaReserved", true=False, reason="WaitingForQuota", message="waits")]
    }
    if admitted:
        assignment = {"name": "main", "flavors": {GPU: "h100"}, "resourceUsage": {GPU: str(cards)}}
        status = {
            "admission": {"clusterQueue": "gpu", "podSetAssignments": [assignment]},
            "conditions": [a_condition("QuotaReserved"), a_condition("Admitted")],
        }
    pod_sets = [{"name": "main", "count": 1, "template": template}]
    workload = {
        "metadata": {"name": f"job-{name}", "ownerReferences": [owner]},
        "spec": {"queueName": "train", "podSets": pod_sets},
        "status": status,
    }
    server.create(f"{KUEUE}/{version}/namespaces/team-a/workloads", workload)


@pytest.mark.req("KU-04", "KU-05", "SC-12")
@pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
async def test_a_job_that_waits_names_the_job_that_holds_the_quota_and_when_it_ends(
    backend: KubernetesBackend, server: FakeApi, version: str
) -> None:
    serve(server, version)
    add_job(server, version, "old", 8, admitted=True, limit=3600)
    add_job(server, version, "new", 4)
    rows = {row.name: row for row in await backend.jobs()}
    outlook = await backend.explain(rows["new"].id)
    assert outlook.explanation is not None
    reason = outlook.explanation.reason
    assert isinstance(reason, QueueWaits)
    assert [(each.asked, each.free, each.used, each.nominal) for each in reason.quotas] == [("4", "0", "8", "8")]
    assert (outlook.holders, outlook.position, outlook.scheduler) == ((rows["old"].id,), 1, "Kueue")
    assert outlook.forecast.likely_at is not None
    assert [each.job for each in outlook.forecast.after] == [rows["old"].id]
    assert outlook.forecast.no_bound is NoBound.NODES_UNSEEN
    (start,) = await backend.starts([rows["new"].id, rows["old"].id])
    assert start.job == rows["new"].id
    assert start.at is not None
    (queue, local) = (await backend.queues()).rows
    assert (queue.path, queue.waiting, local.path) == ("gpu", 1, "gpu/train (team-a)")


@pytest.mark.req("KU-05")
async def test_an_end_that_nobody_knows_gives_no_start(backend: KubernetesBackend, server: FakeApi) -> None:
    serve(server, "v1beta2")
    add_job(server, "v1beta2", "old", 8, admitted=True)
    add_job(server, "v1beta2", "new", 4)
    rows = {row.name: row for row in await backend.jobs()}
    assert (await backend.explain(rows["new"].id)).forecast.likely_at is None
    assert await backend.starts([rows["new"].id]) == []


@pytest.mark.req("KU-04")
async def test_positions_come_from_kueue_where_it_tells_them_else_from_priority_and_age(
    backend: KubernetesBackend, server: FakeApi
) -> None:
    serve(server, "v1beta2")
    for name in ("one", "two"):
        add_job(server, "v1beta2", name, 9)
    rows = {row.name: row for row in await backend.jobs()}
    places = sorted([(await backend.explain(row.id)).position for row in rows.values()])
    assert places == [1, 2]
    item = {"metadata": {"name": "job-two"}, "positionInClusterQueue": 6, "positionInLocalQueue": 3}
    answers(server, POSITIONS, {"items": [item]})
    outlook = await backend.explain(rows["two"].id)
    assert outlook.explanation is not None
    assert isinstance(outlook.explanation.reason, QueueWaits)
    assert (outlook.position, outlook.explanation.reason.position_in_queue) == (7, 4)
    server.answer_next(POSITIONS, Reply(403, json.dumps({"message": "forbidden"}).encode()))
    assert (await backend.explain(rows["two"].id)).position in {1, 2}


@pytest.mark.req("KU-04", "KU-07")
async def test_a_partition_is_a_queue_of_kueue_in_the_jobs_namespace(
    backend: KubernetesBackend, server: FakeApi
) -> None:
    serve(server, "v1beta2")
    spec = a_spec("train", image="img:1", project="team-a")
    (job,) = await backend.submit([replace(spec, partitions=("train",))])
    labels = server.object(f"{JOBS}/train")["metadata"]["labels"]
    assert labels["kueue.x-k8s.io/queue-name"] == "train"
    assert {row.id: row.partitions for row in await backend.jobs()} == {job: ("train",)}
    for partitions, said in ((("other",), "no queue 'other' of Kueue; there is train"), (("train", "b"), "name one")):
        with pytest.raises(RequestRefused, match=rf"jobs\[0\].partitions: .*{said}"):
            await backend.submit([replace(spec, name="next", partitions=partitions)])
    predicted = await backend.predict([replace(spec, partitions=("train",)), spec])
    assert [each.scheduler for each in predicted] == ["Kueue", "Kubernetes"]
    assert predicted[0].forecast.likely_at is None
