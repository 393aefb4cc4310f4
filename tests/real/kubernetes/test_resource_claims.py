"""Cards of resource claims, which the real scheduler allocates: whole devices, shared ones, and parts of devices."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import pytest

from cockpit.model.ids import Millis
from cockpit.present.columns import Context
from cockpit.present.tables.nodes import usage
from tests.real.kubernetes.control_plane import ADMIN
from tests.real.kubernetes.daemons import wait_until
from tests.real.kubernetes.pods import create_pod, fake_pod, wait_for_phase
from tests.real.kubernetes.test_backend import cockpit_of

if TYPE_CHECKING:
    from cockpit.backends.kubernetes.backend import KubernetesBackend
    from cockpit.model.view import NodeRow
    from tests.real.kubernetes.cluster import RealKubernetes

pytestmark = [pytest.mark.real, pytest.mark.real_kubernetes]

API = "/apis/resource.k8s.io/v1"
DRIVER = "gpu.example.com"
NODE = "claims-0000"
TAINT = "test.cockpit/claims"
LONGEST = 60.0


def device(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "attributes": attributes(name), "capacity": {"memory": {"value": "80Gi"}}, **more}


def attributes(name: str) -> dict[str, Any]:
    return {"productName": {"string": "NVIDIA-H100-80GB-HBM3"}, "name": {"string": name}}


def part(name: str, memory: str) -> dict[str, Any]:
    """A device that is a part of the card whose counters are `cut`."""
    counters = {"memory": {"value": memory}}
    consumed = [{"counterSet": "cut", "counters": counters}]
    return {"name": name, "attributes": attributes(name), "consumesCounters": consumed}


def resource_slice(name: str, **spec: Any) -> dict[str, Any]:
    pool = {"name": NODE, "generation": 1, "resourceSliceCount": 2}
    return {"metadata": {"name": name}, "spec": {"driver": DRIVER, "pool": pool, "nodeName": NODE, **spec}}


@pytest.fixture
def node(cluster: RealKubernetes) -> Iterator[str]:
    """A fake node of its own for resource claims: two cards, one that is cut and one that several claims share."""
    admin = cluster.admin
    amounts = {"cpu": "64", "memory": "256Gi", "pods": "110"}
    admin.create(
        "/api/v1/nodes",
        {
            "metadata": {"name": NODE, "annotations": {"kwok.x-k8s.io/node": "fake"}},
            "spec": {"taints": [{"key": TAINT, "effect": "NoSchedule"}]},
            "status": {"allocatable": amounts, "capacity": amounts},
        },
    )
    of_driver = {"cel": {"expression": f'device.driver == "{DRIVER}"'}}
    device_class = {"selectors": [of_driver], "extendedResourceName": "example.com/gpu"}
    admin.create(f"{API}/deviceclasses", {"metadata": {"name": DRIVER}, "spec": device_class})
    shared = device("shared", allowMultipleAllocations=True)
    devices = [device("gpu-0"), device("gpu-1"), part("cut-1g", "10Gi"), part("cut-2g", "20Gi"), shared]
    counters = [{"name": "cut", "counters": {"memory": {"value": "80Gi"}}}]
    admin.create(f"{API}/resourceslices", resource_slice("devices", devices=devices))
    admin.create(f"{API}/resourceslices", resource_slice("counters", sharedCounters=counters))
    yield NODE
    for path in (f"{API}/resourceslices/devices", f"{API}/resourceslices/counters", f"{API}/deviceclasses/{DRIVER}"):
        admin.delete(path)
    admin.delete(f"/api/v1/nodes/{NODE}")
    wait_until("the node is still there", lambda: not admin.exists(f"/api/v1/nodes/{NODE}"))


def request(device_name: str, **more: Any) -> dict[str, Any]:
    """A request for the device of this name."""
    named = {"cel": {"expression": f'device.attributes["{DRIVER}"].name == "{device_name}"'}}
    return {"name": "card", "exactly": {"deviceClassName": DRIVER, "selectors": [named], **more}}


def claiming(name: str, **source: str) -> dict[str, Any]:
    """A pod that tolerates the node and uses a claim, or one of its own by a template."""
    pod = fake_pod(name)
    pod["spec"] |= {
        "tolerations": [{"key": TAINT, "operator": "Exists"}],
        "resourceClaims": [{"name": "card", **source}],
    }
    pod["spec"]["containers"][0]["resources"] = {"claims": [{"name": "card"}]}
    return pod


async def nodes_when(backend: KubernetesBackend, holds: Callable[[NodeRow], bool]) -> NodeRow:
    """Wait until the node is so, and return its row."""
    async with asyncio.timeout(LONGEST), aclosing(backend.watch_jobs(anything=True)) as watch:
        async for _ in watch:
            row = next((each for each in await backend.nodes() if each.node.name == NODE), None)
            if row is not None and holds(row):
                return row
    raise AssertionError("a watch never ends")


@pytest.mark.req("KU-06")
async def test_the_scheduler_allocates_devices_and_cockpit_shows_who_has_which(
    cluster: RealKubernetes, namespace: str, node: str
) -> None:
    del node
    claims, pods = f"{API}/namespaces/{namespace}/resourceclaims", []
    some = {"capacity": {"requests": {"memory": "20Gi"}}}
    wanted = {"whole": request("gpu-1"), "both": request("gpu-0"), "part": request("shared", **some)}
    for name, each in wanted.items():
        cluster.admin.create(claims, {"metadata": {"name": name}, "spec": {"devices": {"requests": [each]}}})
    template = {"metadata": {"name": "cut"}, "spec": {"spec": {"devices": {"requests": [request("cut-2g")]}}}}
    cluster.admin.create(f"{API}/namespaces/{namespace}/resourceclaimtemplates", template)
    for name, claim in (("alone", "whole"), ("first", "both"), ("second", "both"), ("some", "part")):
        pods.append(create_pod(cluster.admin, namespace, claiming(name, resourceClaimName=claim)))
    pods.append(create_pod(cluster.admin, namespace, claiming("made", resourceClaimTemplateName="cut")))
    for path in pods:
        wait_for_phase(cluster.admin, path, "Running")
    async with cockpit_of(cluster, ADMIN, namespace) as backend:
        row = await nodes_when(backend, lambda row: len(row.slices) == len(pods))
        # In the order of the devices' names: the hardware that is cut, two whole devices, the shared one.
        assert [(card.model, card.memory_mib) for card in row.node.cards] == [("H100", 81920)] * 4
        assert usage(row, Context(now=Millis(0))) == (
            "1(1):made",
            "2(1):first",
            "2(2):second",
            "3:alone",
            "4(1):some",
        )
        shown = {
            job.name: (job.card_milli, job.card_models) for job in await backend.jobs() if job.project == namespace
        }
        assert shown == {
            "alone": (1000, ("H100",)),
            "first": (500, ("H100",)),
            "second": (500, ("H100",)),
            "some": (250, ("H100",)),
            "made": (250, ("H100",)),
        }
        cluster.admin.delete(pods[0], gracePeriodSeconds=0)
        row = await nodes_when(backend, lambda row: len(row.slices) == len(pods) - 1)
        assert "alone" not in {use.name for use in row.slices}


@pytest.mark.req("KU-06")
async def test_a_waiting_claim_is_a_request_and_one_that_serves_a_resource_counts_once(
    cluster: RealKubernetes, namespace: str, node: str
) -> None:
    del node
    claims = f"{API}/namespaces/{namespace}/resourceclaims"
    two = {"name": "cards", "exactly": {"deviceClassName": DRIVER, "count": 64}}
    cluster.admin.create(claims, {"metadata": {"name": "many"}, "spec": {"devices": {"requests": [two]}}})
    create_pod(cluster.admin, namespace, claiming("waits", resourceClaimName="many"))
    template = {"metadata": {"name": "one"}, "spec": {"spec": {"devices": {"requests": [request("gpu-0")]}}}}
    cluster.admin.create(f"{API}/namespaces/{namespace}/resourceclaimtemplates", template)
    pod = claiming("held", resourceClaimTemplateName="one")
    job = {"suspend": True, "parallelism": 3, "completions": 3, "template": {"spec": pod["spec"]}}
    cluster.admin.create(f"/apis/batch/v1/namespaces/{namespace}/jobs", {"metadata": {"name": "held"}, "spec": job})
    extended = claiming("extended", resourceClaimName="unused")
    del extended["spec"]["resourceClaims"]
    extended["spec"]["containers"][0]["resources"] = {"limits": {"example.com/gpu": "1"}}
    wait_for_phase(cluster.admin, create_pod(cluster.admin, namespace, extended), "Running")
    async with cockpit_of(cluster, ADMIN, namespace) as backend:
        row = await nodes_when(backend, lambda row: len(row.slices) == 1)
        assert [(use.name, use.assumed) for use in row.slices] == [("extended", False)]
        shown = {job.name: job.card_milli for job in await backend.jobs() if job.project == namespace}
        assert shown == {"waits": 64_000, "held": 3000, "extended": row.slices[0].milli}
