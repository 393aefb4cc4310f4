"""What a user is told of a job that waits for kube-scheduler: over the tests' own API server."""

from __future__ import annotations

from datetime import UTC
from typing import Any

import pytest

from cockpit.backends.kubernetes.backend import KubernetesBackend
from cockpit.errors import RequestRefused
from cockpit.model.forecast import Change, NoBound, Outlook
from cockpit.model.ids import JobId, Millis
from cockpit.model.job import JobState
from cockpit.model.pod_reasons import (
    ClaimTrouble,
    ClaimWaits,
    PodsNotCreated,
    PodsStarting,
    QuotaUse,
    StartStep,
    Unschedulable,
)
from cockpit.model.spec import Mode, NodeSpec
from cockpit.present.columns import Context
from cockpit.present.outlook import outlook_lines
from cockpit.present.spans import plain
from tests.backends.kubernetes.objects import GPU, merged
from tests.builders import a_spec
from tests.doubles.kubernetes_api import FakeApi

PODS, NODES = "/api/v1/namespaces/team-a/pods", "/api/v1/nodes"
CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
NEVER_ENDS, ENDS = "2026-03-01T09:00:00Z", "2126-03-01T09:00:00Z"
MESSAGE = "0/2 nodes are available: 2 Insufficient nvidia.com/gpu. no new claims to deallocate"


def a_node(name: str, **changes: Any) -> dict[str, Any]:
    status = {
        "allocatable": {"cpu": "96", "memory": "1000Gi", "pods": "110", GPU: "8"},
        "conditions": [{"type": "Ready", "status": "True"}],
    }
    labels = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}
    return merged({"kind": "Node", "metadata": {"name": name, "labels": labels}, "status": status}, changes)


def a_pod(name: str, cards: int, **changes: Any) -> dict[str, Any]:
    container = {"name": "main", "image": "img:1", "resources": {"limits": {GPU: cards}}}
    base = {"kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [container]}}
    return merged({**base, "status": {"phase": "Pending"}}, changes)


def running(name: str, node: str, cards: int, **spec: Any) -> dict[str, Any]:
    # It started a hundred years from now, so that its end is in the future whenever the test runs.
    started = {"containerStatuses": [{"name": "main", "state": {"running": {"startedAt": ENDS}}}], "startTime": ENDS}
    return a_pod(name, cards, spec={"nodeName": node, **spec}, status={"phase": "Running", **started})


def refused(name: str, cards: int, message: str = MESSAGE, **spec: Any) -> dict[str, Any]:
    scheduled = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    return a_pod(name, cards, spec=spec, status={"conditions": [scheduled]})


async def number(backend: KubernetesBackend, name: str) -> JobId:
    return next(row.id for row in await backend.jobs() if row.name == name)


async def explained(backend: KubernetesBackend, name: str) -> Outlook:
    return await backend.explain(await number(backend, name))


def words(outlook: Outlook) -> str:
    return "\n".join(plain(each) for each in outlook_lines(outlook, Context(now=Millis(0), zone=UTC)))


@pytest.mark.req("KU-05", "SC-13")
async def test_a_waiting_pod_is_explained_by_the_nodes_with_what_would_help(
    backend: KubernetesBackend, server: FakeApi
) -> None:
    for name in ("n1", "n2"):
        server.create(NODES, a_node(name))
    server.create(CLASSES, {"metadata": {"name": "urgent"}, "value": 100})
    server.create(PODS, running("one", "n1", 4))
    server.create(PODS, running("two", "n2", 7))
    server.create(PODS, refused("wants", 8))
    outlook = await explained(backend, "wants")
    found = {(each.change, each.after): (each.forecast.now, each.evicts) for each in outlook.what_ifs}
    assert found == {(Change.CARDS, "4"): (True, 0), (Change.PRIORITY_CLASS, "urgent"): (True, 1)}
    # The pods that have the cards have no time limit.
    assert (outlook.forecast.likely_at, outlook.forecast.no_bound) == (None, NoBound.NO_TIME_LIMIT)
    shown = words(outlook)
    assert "2 have too little free nvidia.com/gpu; by the nodes themselves, 1 has 4 H100 free, 1 has 1 H100" in shown
    assert "a pod needs 8 H100" in shown
    assert "in use by" in shown
    assert "with 4 cards instead of 8: now" in shown
    assert "with the priority class urgent instead of 0, which evicts about 1 pod: now" in shown


@pytest.mark.req("KU-05", "SC-12")
async def test_the_list_and_the_explanation_name_the_same_start_and_no_bound(
    backend: KubernetesBackend, server: FakeApi
) -> None:
    server.create(NODES, a_node("n1"))
    server.create(PODS, running("one", "n1", 4, activeDeadlineSeconds=3600))
    server.create(PODS, refused("wants", 8))
    job, ends = await number(backend, "wants"), await number(backend, "one")
    (start,) = await backend.starts([job, ends])
    outlook = await backend.explain(job)
    assert (start.job, start.at) == (job, outlook.forecast.likely_at)
    assert [each.job for each in outlook.forecast.after] == [ends]
    assert (outlook.forecast.latest_at, outlook.forecast.no_bound) == (None, NoBound.NOTHING_RESERVED)
    assert "by cockpit's own plan" in words(outlook)


@pytest.mark.req("KU-05")
async def test_a_message_that_the_nodes_contradict_is_called_old(backend: KubernetesBackend, server: FakeApi) -> None:
    server.create(NODES, a_node("n1"))
    pod = server.create(PODS, refused("wants", 8))
    about = {"uid": pod["metadata"]["uid"], "name": "wants"}
    event = {"metadata": {"name": "e"}, "involvedObject": about, "reason": "FailedScheduling"}
    server.create("/api/v1/namespaces/team-a/events", {**event, "eventTime": "1970-01-01T08:15:00.000000Z"})
    outlook = await explained(backend, "wants")
    assert outlook.forecast.now
    assert "1 node could take a pod now, so the scheduler's message of 08:15 is old" in words(outlook)


QUOTA = {
    "metadata": {"name": "team"},
    "status": {"hard": {"requests.nvidia.com/gpu": "8", "limits.cpu": "1"}, "used": {"requests.nvidia.com/gpu": "4"}},
}


def a_job(name: str, cards: int, pods: int = 1) -> dict[str, Any]:
    template = {"spec": a_pod("x", cards)["spec"]}
    return {"metadata": {"name": name}, "spec": {"template": template, "parallelism": pods, "completions": pods}}


@pytest.mark.req("KU-05", "SC-13")
async def test_a_quota_that_keeps_a_controller_from_making_pods_is_named_with_what_it_allows(
    backend: KubernetesBackend, server: FakeApi
) -> None:
    server.create(NODES, a_node("n1"))
    server.create("/api/v1/namespaces/team-a/resourcequotas", QUOTA)
    server.create("/apis/batch/v1/namespaces/team-a/jobs", a_job("big", 8))
    server.create("/apis/batch/v1/namespaces/team-a/jobs", a_job("many", 2, pods=3))
    outlook = await explained(backend, "big")
    assert outlook.explanation is not None
    assert outlook.explanation.reason == PodsNotCreated("Job", "", (QuotaUse("team", GPU, 8, 4, 8),))
    assert "the quota team allows 8 nvidia.com/gpu, 4 nvidia.com/gpu in use, 8 nvidia.com/gpu asked" in words(outlook)
    assert {(each.change, each.after) for each in outlook.what_ifs} == {(Change.CARDS, "4")}
    outlook = await explained(backend, "many")
    found = {(each.change, each.after): each.forecast.now for each in outlook.what_ifs}
    assert found == {(Change.CARDS, "1"): True, (Change.NODES, "2"): True}
    spec = a_spec(name="other", image="img:1", specs=(NodeSpec(card_milli=8000),))
    (outlook,) = await backend.predict([spec])
    assert outlook.explanation is not None
    assert isinstance(outlook.explanation.reason, PodsNotCreated)
    assert [each.after for each in outlook.what_ifs] == ["4"]


@pytest.mark.req("KU-05")
async def test_the_words_of_a_controller_that_cannot_make_pods_are_shown(
    backend: KubernetesBackend, server: FakeApi
) -> None:
    server.create(NODES, a_node("n1"))
    job = server.create("/apis/batch/v1/namespaces/team-a/jobs", a_job("big", 8))
    said = 'pods "big-x" is forbidden: no PriorityClass with name urgnt was found\x1b[31m'
    event = {"metadata": {"name": "e"}, "involvedObject": {"uid": job["metadata"]["uid"]}, "reason": "FailedCreate"}
    server.create("/api/v1/namespaces/team-a/events", {**event, "message": said})
    outlook = await explained(backend, "big")
    assert outlook.explanation is not None
    assert outlook.explanation.reason == PodsNotCreated("Job", said)
    assert "no PriorityClass with name urgnt was found" in words(outlook)
    assert "\x1b" not in words(outlook)


@pytest.mark.req("KU-05")
async def test_a_volume_claim_that_does_not_exist_is_named_and_nothing_is_foretold(
    backend: KubernetesBackend, server: FakeApi
) -> None:
    server.create(NODES, a_node("n1"))
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    message = '0/1 nodes are available: persistentvolumeclaim "data" not found. not found'
    server.create(PODS, refused("wants", 8, message, volumes=[volume]))
    outlook = await explained(backend, "wants")
    assert outlook.explanation is not None
    assert isinstance(outlook.explanation.reason, Unschedulable)
    assert outlook.explanation.reason.claims == (ClaimWaits("data", ClaimTrouble.ABSENT),)
    assert (outlook.forecast.likely_at, outlook.what_ifs) == (None, ())
    assert "the volume claim data does not exist" in words(outlook)


@pytest.mark.req("KU-05")
async def test_nodes_that_cannot_use_a_bound_volume_take_no_pod(backend: KubernetesBackend, server: FakeApi) -> None:
    for name, zone in (("n1", "z1"), ("n2", "z2")):
        server.create(NODES, a_node(name, metadata={"labels": {"zone": zone}}))
    claims = "/api/v1/namespaces/team-a/persistentvolumeclaims"
    server.create(claims, {"metadata": {"name": "data"}, "spec": {"volumeName": "v"}, "status": {"phase": "Bound"}})
    terms = [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["z1"]}]}]
    affinity = {"required": {"nodeSelectorTerms": terms}}
    server.create("/api/v1/persistentvolumes", {"metadata": {"name": "v"}, "spec": {"nodeAffinity": affinity}})
    server.create(PODS, running("one", "n1", 4))
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    message = "0/2 nodes are available: 1 Insufficient nvidia.com/gpu, 1 node(s) had volume node affinity conflict."
    server.create(PODS, refused("wants", 8, message, volumes=[volume]))
    outlook = await explained(backend, "wants")
    assert "1 has 4 H100 free, 1 cannot use its volume" in words(outlook)
    assert [(each.change, each.after) for each in outlook.what_ifs] == [(Change.CARDS, "4")]


@pytest.mark.req("KU-05")
async def test_a_pod_that_another_plugin_refuses_has_no_forecast(backend: KubernetesBackend, server: FakeApi) -> None:
    server.create(NODES, a_node("n1"))
    server.create(PODS, refused("wants", 8, "0/1 nodes are available: 1 the moon is in the way."))
    outlook = await explained(backend, "wants")
    assert (outlook.forecast.likely_at, outlook.what_ifs) == (None, ())
    assert await backend.starts([outlook.job]) == []


@pytest.mark.req("KU-05")
async def test_a_job_whose_pods_are_placed_is_explained_too(backend: KubernetesBackend, server: FakeApi) -> None:
    server.create(NODES, a_node("n1"))
    waits = {"waiting": {"reason": "ImagePullBackOff", "message": "no such image\x1b[31m"}}
    status = {"containerStatuses": [{"name": "main", "state": waits}]}
    server.create(PODS, a_pod("pulls", 1, spec={"nodeName": "n1"}, status=status))
    (row,) = await backend.jobs()
    assert row.state is JobState.STARTING
    outlook = await backend.explain(row.id)
    assert outlook.explanation is not None
    assert isinstance(outlook.explanation.reason, PodsStarting)
    assert "cannot pull the image (ImagePullBackOff); no such image" in words(outlook)
    assert "\x1b" not in words(outlook)


@pytest.mark.req("KU-05")
async def test_a_volume_that_cannot_be_mounted_is_what_a_placed_pod_waits_for(
    backend: KubernetesBackend, server: FakeApi
) -> None:
    server.create(NODES, a_node("n1"))
    pod = server.create(PODS, a_pod("mounts", 1, spec={"nodeName": "n1"}))
    about = {"uid": pod["metadata"]["uid"], "name": "mounts"}
    said = 'MountVolume.SetUp failed for volume "data": no such server'
    for name, reason, message in (("e1", "Scheduled", "assigned"), ("e2", "FailedMount", said)):
        event = {"metadata": {"name": name}, "involvedObject": about, "reason": reason, "message": message}
        server.create("/api/v1/namespaces/team-a/events", event)
    outlook = await explained(backend, "mounts")
    assert outlook.explanation is not None
    assert outlook.explanation.reason == PodsStarting(StartStep.VOLUME, 1, "FailedMount", said)
    assert "1 pod waits for a volume (FailedMount); MountVolume.SetUp failed" in words(outlook)


@pytest.mark.req("SC-12", "SC-13")
async def test_a_job_that_is_not_submitted_is_predicted_by_the_same_rules(
    backend: KubernetesBackend, server: FakeApi
) -> None:
    server.create(NODES, a_node("n1"))
    server.create(PODS, running("one", "n1", 4, activeDeadlineSeconds=3600))
    fits, waits = (
        a_spec(name=name, image="img:1", mode=Mode.PYTORCH, nodes=2, specs=(NodeSpec(card_milli=cards * 1000),))
        for name, cards in (("fits", 2), ("waits", 4))
    )
    (outlook,) = await backend.predict([fits])
    assert (outlook.forecast.now, outlook.explanation) == (True, None)
    assert "by cockpit's own plan, not Kubernetes's" in words(outlook)
    (outlook,) = await backend.predict([waits])
    assert not outlook.forecast.now
    assert [each.job for each in outlook.forecast.after] == [await number(backend, "one")]
    assert (Change.CARDS, "2") in {(each.change, each.after) for each in outlook.what_ifs}
    with pytest.raises(RequestRefused, match="is no name on Kubernetes"):
        await backend.predict([a_spec(name="Not_One", image="img:1")])
