"""Shared cards as the backend shows them, over the tests' own API server."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any

import pytest

from cockpit.backends.kubernetes.backend import KubernetesBackend
from cockpit.model.view import NodeRow
from cockpit.present.columns import Context
from cockpit.present.tables.cards import model_rows
from cockpit.present.tables.nodes import usage
from tests.backends.kubernetes.objects import GPU, merged
from tests.backends.kubernetes.test_card_schemes import allocation, recorded
from tests.doubles.kubernetes_api import FakeApi, Reply
from tests.doubles.samples import NOW

PODS = "/api/v1/namespaces/team-a/pods"
NODES = "/api/v1/nodes"
SLICES = "/apis/resource.k8s.io/v1/resourceslices"
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/team-a/resourceclaims"
TEMPLATES = "/apis/resource.k8s.io/v1/namespaces/team-a/resourceclaimtemplates"
DEVICES = "/apis/scheduling.koordinator.sh/v1alpha1/devices"
RUNNING = {"phase": "Running", "containerStatuses": [{"state": {"running": {"startedAt": "2026-03-01T09:00:00Z"}}}]}
LONGEST = 20.0


@pytest.fixture
def backend(backend: KubernetesBackend, server: FakeApi) -> KubernetesBackend:
    server.kinds |= {
        "/apis/resource.k8s.io/v1": ("resourceslices", "resourceclaims", "resourceclaimtemplates"),
        "/apis/scheduling.koordinator.sh/v1alpha1": ("devices",),
    }
    return backend


def a_node(name: str, allocatable: dict[str, str], **metadata: Any) -> dict[str, Any]:
    return {
        "kind": "Node",
        "metadata": {"name": name, **metadata},
        "status": {
            "allocatable": {"cpu": "64", "memory": "512Gi", **allocatable},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def a_pod(name: str, limits: dict[str, object], annotations: dict[str, str] | None = None, **more: Any) -> Any:
    base = {
        "kind": "Pod",
        "metadata": {"name": name, "annotations": annotations or {}},
        "spec": {"containers": [{"name": "main", "resources": {"limits": limits}}]},
        "status": {"phase": "Pending"},
    }
    return merged(base, more)


def on(node: str) -> dict[str, Any]:
    return {"spec": {"nodeName": node}, "status": RUNNING}


async def shown(backend: KubernetesBackend) -> dict[str, tuple[str, ...]]:
    return {row.node.name: usage(row, Context(now=NOW)) for row in await backend.nodes()}


async def node(backend: KubernetesBackend) -> NodeRow:
    (row,) = await backend.nodes()
    return row


@pytest.mark.req("KU-06", "JT-45")
async def test_shares_are_card_slices_with_the_names_of_their_jobs(backend: KubernetesBackend, server: FakeApi) -> None:
    server.create(NODES, a_node("ack", {"aliyun.com/gpu-mem": "30", "aliyun.com/gpu-count": "2"}))
    server.create(NODES, a_node("hami", {GPU: "20"}, annotations=recorded("hami", "node_json")))
    server.create(NODES, a_node("plain", {GPU: "4"}))
    server.create(PODS, a_pod("app", {"aliyun.com/gpu-mem": 3}, allocation(_0=3), **on("ack")))
    server.create(PODS, a_pod("web", {"aliyun.com/gpu-mem": 6}, allocation(_0=6), **on("ack")))
    server.create(PODS, a_pod("train", {GPU: 2}, recorded("hami", "pod"), **on("hami")))
    server.create(PODS, a_pod("eval", {GPU: 1}, **on("plain")))
    assert await shown(backend) == {
        "ack": ("1(1):app", "1(2):web"),
        "hami": ("1(1):train", "1(2):train", "2(1):train"),
        "plain": ("?:eval",),
    }
    rows = {row.node.name: row for row in await backend.nodes()}
    assert [(rows[name].used_card_milli, rows[name].used_cards) for name in rows] == [(600, 1), (600, 2), (1000, 1)]
    # What they have counts, where it is told, and not what they request.
    jobs = {job.name: job.card_milli for job in await backend.jobs()}
    assert jobs == {"app": 200, "web": 400, "train": 600, "eval": 1000}
    overview = await backend.overview()
    assert (overview.card_milli, overview.used_card_milli, overview.trouble) == (8000, 2200, ())
    # How many whole cards of each model are free.
    found = {row.model: (row.cards, row.free) for row in model_rows(rows.values(), overview)}
    assert found == {"gpu": (6, 4), "H100": (2, 0)}


@pytest.mark.req("KU-06")
async def test_the_page_of_a_job_tells_its_cards(backend: KubernetesBackend, server: FakeApi) -> None:
    server.create(NODES, a_node("ack", {"aliyun.com/gpu-mem": "30", "aliyun.com/gpu-count": "2"}))
    server.create(PODS, a_pod("app", {"aliyun.com/gpu-mem": 3}, allocation(_1=3), **on("ack")))
    (row,) = await backend.jobs()
    attempt = (await backend.job(row.id)).job.attempt
    assert attempt is not None
    ((part,),) = (each.slices for each in attempt.placement)
    assert (part.card, part.slot, part.milli, part.assumed) == (1, 0, 200, False)


@pytest.mark.req("KU-06")
async def test_a_waiting_share_is_a_part_of_the_cards_that_come(backend: KubernetesBackend, server: FakeApi) -> None:
    server.create(PODS, a_pod("app", {"aliyun.com/gpu-mem": 4}))
    # No node tells how much memory a card has.
    assert [row.card_milli for row in await backend.jobs()] == [1000]
    server.create(NODES, a_node("ack", {"aliyun.com/gpu-mem": "32", "aliyun.com/gpu-count": "2"}))
    async with asyncio.timeout(LONGEST), aclosing(backend.watch_jobs(anything=True)) as watch:
        async for _ in watch:
            if [row.card_milli for row in await backend.jobs()] == [250]:
                break


@pytest.mark.req("KU-06")
async def test_what_cannot_be_read_is_told_once_for_all_nodes_and_jobs(
    backend: KubernetesBackend, server: FakeApi
) -> None:
    for name in ("n1", "n2", "n3"):
        server.create(NODES, a_node(name, {GPU: "10"}, annotations={"hami.io/node-nvidia-register": "GPU-1,10:"}))
    server.create(NODES, a_node("ack", {"aliyun.com/gpu-mem": "30", "aliyun.com/gpu-count": "2"}))
    broken = {"scheduler.framework.gpushare.allocation": "{"}
    server.create(PODS, a_pod("app", {"aliyun.com/gpu-mem": 3}, broken, **on("ack")))
    assert (await shown(backend))["ack"] == ("?(?):app",)
    of_nodes, of_jobs = (await backend.overview()).trouble
    assert of_nodes == (
        "The cards of node n1 and 2 more cannot be read: "
        "hami.io/node-nvidia-register: 'GPU-1,10' has 2 fields instead of 7."
    )
    assert of_jobs.startswith(
        "The card numbers of job team-a/app cannot be read: scheduler.framework.gpushare.allocation"
    )
    server.remove(f"{PODS}/app")
    async with asyncio.timeout(LONGEST), aclosing(backend.watch_jobs(anything=True)) as watch:
        async for _ in watch:
            if len((await backend.overview()).trouble) == 1:
                break


@pytest.mark.req("KU-06")
async def test_koordinators_devices_are_read(backend: KubernetesBackend, server: FakeApi) -> None:
    devices = [{"type": "gpu", "minor": minor, "health": True, "id": f"GPU-{minor}"} for minor in range(2)]
    server.create(DEVICES, {"kind": "Device", "metadata": {"name": "n1"}, "spec": {"devices": devices}})
    server.create(NODES, a_node("n1", {GPU: "2"}, labels={"node.koordinator.sh/gpu-model": "NVIDIA-A100-SXM4-80GB"}))
    server.create(PODS, a_pod("app", {"koordinator.sh/gpu": 50}, recorded("koordinator", "half"), **on("n1")))
    row = await node(backend)
    assert [(card.model, card.uuid) for card in row.node.cards] == [("A100", "GPU-0"), ("A100", "GPU-1")]
    assert (await shown(backend))["n1"] == ("2(1):app",)
    (job,) = await backend.jobs()
    assert (job.card_milli, job.card_models) == (500, ("A100",))


def a_slice(*devices: dict[str, Any], **spec: Any) -> dict[str, Any]:
    base = {"driver": "gpu.nvidia.com", "pool": {"name": "n1", "generation": 1}, "nodeName": "n1"}
    return {
        "kind": "ResourceSlice",
        "metadata": {"name": f"n1-{spec.get('pool', {}).get('generation', 1)}"},
        "spec": {**base, **spec, "devices": list(devices)},
    }


def a_claim(name: str, *results: dict[str, Any], users: tuple[str, ...] = ()) -> dict[str, Any]:
    request = {"name": "card", "exactly": {"deviceClassName": "gpu.nvidia.com", "count": 1}}
    return {
        "kind": "ResourceClaim",
        "metadata": {"name": name},
        "spec": {"devices": {"requests": [request]}},
        "status": {
            "allocation": {"devices": {"results": [{"driver": "gpu.nvidia.com", "pool": "n1", **r} for r in results]}},
            "reservedFor": [{"resource": "pods", "name": user, "uid": user} for user in users],
        },
    }


def uses(claim: str) -> dict[str, Any]:
    return merged(on("n1"), {"spec": {"resourceClaims": [{"name": "card", "resourceClaimName": claim}]}})


@pytest.mark.req("KU-06")
async def test_devices_of_claims_are_cards_and_pods_that_share_a_claim_share_its_device(
    backend: KubernetesBackend, server: FakeApi
) -> None:
    product = {"productName": {"string": "NVIDIA H100 80GB HBM3"}, "uuid": {"string": "GPU-9"}}
    devices = [
        {"name": f"gpu-{n}", "attributes": product, "capacity": {"memory": {"value": "80Gi"}}} for n in (10, 2, 0)
    ]
    server.create(NODES, a_node("n1", {}))
    old = a_slice({"name": "gpu-77"}, pool={"name": "n1", "generation": 1})
    server.create(SLICES, old)
    server.create(SLICES, a_slice(*devices, pool={"name": "n1", "generation": 2}))
    server.create(SLICES, {**a_slice({"name": "eth0"}, driver="dra.net"), "metadata": {"name": "net"}})
    server.create(CLAIMS, a_claim("mine", {"device": "gpu-2"}, users=("a",)))
    server.create(CLAIMS, a_claim("shared", {"device": "gpu-10"}, users=("a", "b")))
    server.create(CLAIMS, a_claim("watching", {"device": "gpu-0", "adminAccess": True}, users=("c",)))
    server.create(PODS, a_pod("alone", {}, **uses("mine")))
    server.create(PODS, a_pod("first", {}, **uses("shared")))
    server.create(PODS, a_pod("second", {}, **uses("shared")))
    row = await node(backend)
    assert [(card.model, card.memory_mib, card.uuid) for card in row.node.cards] == [("H100", 81920, "GPU-9")] * 3
    assert (await shown(backend))["n1"] == ("2:alone", "3(1):first", "3(2):second")
    assert (row.used_card_milli, {job.name: job.card_milli for job in await backend.jobs()}) == (
        2000,
        {"alone": 1000, "first": 500, "second": 500},
    )


@pytest.mark.req("KU-06")
async def test_parts_of_devices_are_parts_of_their_card(backend: KubernetesBackend, server: FakeApi) -> None:
    def part(name: str, memory: str) -> dict[str, Any]:
        counters = {"memory": {"value": memory}, "engines": {"value": "1"}}
        return {"name": name, "consumesCounters": [{"counterSet": "gpu-0", "counters": counters}]}

    counters = [{"name": "gpu-0", "counters": {"memory": {"value": "80Gi"}, "engines": {"value": "7"}}}]
    server.create(NODES, a_node("n1", {}))
    server.create(SLICES, {**a_slice(sharedCounters=counters), "metadata": {"name": "counters"}})
    whole = {"name": "b", "allowMultipleAllocations": True, "capacity": {"memory": {"value": "40Gi"}}}
    server.create(SLICES, a_slice(part("gpu-0", "80Gi"), part("gpu-0-1g", "10Gi"), part("gpu-0-2g", "20Gi"), whole))
    server.create(CLAIMS, a_claim("cut", {"device": "gpu-0-1g"}, {"device": "gpu-0-2g"}))
    server.create(CLAIMS, a_claim("some", {"device": "b", "consumedCapacity": {"memory": "10Gi"}}))
    server.create(PODS, a_pod("cut", {}, **uses("cut")))
    server.create(PODS, a_pod("some", {}, **uses("some")))
    row = await node(backend)
    assert [card.memory_mib for card in row.node.cards] == [40960, 81920]
    assert {job.name: job.card_milli for job in await backend.jobs()} == {"some": 250, "cut": 375}
    assert [(use.name, use.card, use.milli, use.assumed) for use in row.slices] == [
        ("some", 0, 250, False),
        ("cut", 1, 125, False),
        ("cut", 1, 250, False),
    ]


@pytest.mark.req("KU-06")
async def test_claims_that_a_user_may_not_read_leave_the_cards_unknown(
    backend: KubernetesBackend, server: FakeApi
) -> None:
    server.answer_next("GET /apis/resource.k8s.io/v1/resourceclaims", Reply.failure(403, "Forbidden", "no"))
    server.create(NODES, a_node("n1", {GPU: "4"}))
    server.create(PODS, a_pod("app", {GPU: 1}, **uses("mine")))
    assert (await shown(backend))["n1"] == ("?:app",)
    assert (await backend.overview()).trouble == (
        "The card numbers of job team-a/app cannot be read: you may not read its resource claims.",
    )


@pytest.mark.req("KU-06")
async def test_a_job_on_mig_instances_has_cards_of_their_profile(backend: KubernetesBackend, server: FakeApi) -> None:
    label = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}
    profile = "nvidia.com/mig-1g.10gb"
    server.create(NODES, a_node("n1", {GPU: "2", profile: "7"}, labels=label))
    server.create(PODS, a_pod("cut", {profile: 2}, **on("n1")))
    server.create(PODS, a_pod("whole", {GPU: 1}, **on("n1")))
    rows = {row.name: (row.card_milli, row.card_models) for row in await backend.jobs()}
    assert rows == {"cut": (284, ("H100_1g.10gb",)), "whole": (1000, ("H100",))}
    assert (await shown(backend))["n1"] == ("?:whole", "?(?):cut", "?(?):cut")


@pytest.mark.req("KU-06")
async def test_a_pod_is_a_job_with_cards_as_soon_as_its_claim_is_known(
    backend: KubernetesBackend, server: FakeApi
) -> None:
    server.create(NODES, a_node("n1", {}))
    server.create(SLICES, a_slice({"name": "gpu-0"}))
    server.create(PODS, a_pod("late", {}, **uses("mine")))
    assert await backend.jobs() == []
    server.create(CLAIMS, a_claim("mine", {"device": "gpu-0"}))
    async with asyncio.timeout(LONGEST), aclosing(backend.watch_jobs(anything=True)) as watch:
        async for _ in watch:
            if (await shown(backend))["n1"] == ("1:late",):
                break
    assert [(row.name, row.card_milli) for row in await backend.jobs()] == [("late", 1000)]
    server.remove(f"{CLAIMS}/mine")
    async with asyncio.timeout(LONGEST), aclosing(backend.watch_jobs(anything=True)) as watch:
        async for _ in watch:
            if not await backend.jobs():
                break
    assert (await shown(backend))["n1"] == ()


@pytest.mark.req("KU-06")
async def test_a_suspended_job_requests_what_the_claims_of_its_pods_will(
    backend: KubernetesBackend, server: FakeApi
) -> None:
    requests = [{"name": "card", "exactly": {"deviceClassName": "gpu.nvidia.com", "count": 2}}]
    requests.append({"name": "adapter", "exactly": {"deviceClassName": "dra.net"}})
    template = {"kind": "ResourceClaimTemplate", "metadata": {"name": "two"}}
    server.create(TEMPLATES, {**template, "spec": {"spec": {"devices": {"requests": requests}}}})
    own = [{"name": "card", "resourceClaimTemplateName": "two"}]
    pods = {"spec": {"containers": [{"name": "main"}], "resourceClaims": own}}
    spec = {"suspend": True, "parallelism": 3, "completions": 3, "template": pods}
    server.create("/apis/batch/v1/namespaces/team-a/jobs", {"kind": "Job", "metadata": {"name": "waits"}, "spec": spec})
    assert [(row.name, row.card_milli) for row in await backend.jobs()] == [("waits", 6000)]
