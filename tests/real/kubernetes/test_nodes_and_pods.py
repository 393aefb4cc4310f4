"""The nodes of the test cluster, and pods on the fake ones and on the real one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from kubernetes.aio.client import CoreV1Api
from kubernetes.aio.stream import WsApiClient

from tests.real.kubernetes.cluster import ALICE, REAL_NODE
from tests.real.kubernetes.conftest import CARDS, NODES, exec_client_of
from tests.real.kubernetes.daemons import wait_until
from tests.real.kubernetes.pods import ENDED, create_pod, fake_pod, real_pod, wait_for_phase

if TYPE_CHECKING:
    from kubernetes.aio.client import ApiClient

    from tests.real.kubernetes.cluster import RealKubernetes

pytestmark = [pytest.mark.real, pytest.mark.real_kubernetes]


def test_the_fake_nodes_have_their_cards(cluster: RealKubernetes):
    nodes = cluster.admin.get("/api/v1/nodes?labelSelector=type%3Dkwok")["items"]
    assert [each["metadata"]["name"] for each in nodes] == [f"gpu-{number:04d}" for number in range(NODES)]
    assert {each["status"]["allocatable"]["nvidia.com/gpu"] for each in nodes} == {str(CARDS)}


@pytest.mark.parametrize(("exit_code", "phase"), [(0, "Succeeded"), (3, "Failed")])
def test_a_fake_pod_runs_and_ends_as_its_annotations_say(
    cluster: RealKubernetes, namespace: str, exit_code: int, phase: str
):
    path = create_pod(cluster.admin, namespace, fake_pod("short", cards=8, seconds="1s", exit_code=exit_code))
    ended = wait_for_phase(cluster.admin, path, *ENDED)
    assert ended["status"]["phase"] == phase
    assert ended["spec"]["nodeName"].startswith("gpu-")
    (container,) = ended["status"]["containerStatuses"]
    assert container["state"]["terminated"]["exitCode"] == exit_code


def test_a_pod_that_fits_no_node_waits_with_the_schedulers_reason(cluster: RealKubernetes, namespace: str):
    path = create_pod(cluster.admin, namespace, fake_pod("large", cards=CARDS + 1))
    conditions = wait_for_condition(cluster, path, "PodScheduled")
    assert conditions["reason"] == "Unschedulable"
    assert f"0/{NODES + 1} nodes are available" in conditions["message"]


def wait_for_condition(cluster: RealKubernetes, path: str, kind: str) -> dict[str, str]:
    found: list[dict[str, str]] = []

    def has_condition() -> bool:
        conditions = cluster.admin.get(path)["status"].get("conditions", ())
        found[:] = [each for each in conditions if each["type"] == kind]
        return bool(found)

    wait_until(f"{path} has no {kind}", has_condition)
    return found[0]


async def test_a_real_pod_prints_and_ends_with_its_exit_code(cluster: RealKubernetes, namespace: str, alice: ApiClient):
    api = CoreV1Api(alice)
    await api.create_namespaced_pod(namespace, real_pod("job", "sh", "-c", "echo out; echo err >&2; exit 7"))
    ended = wait_for_phase(cluster.admin, f"/api/v1/namespaces/{namespace}/pods/job", *ENDED)
    assert ended["spec"]["nodeName"] == REAL_NODE
    assert ended["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 7
    assert sorted((await api.read_namespaced_pod_log("job", namespace)).split()) == ["err", "out"]


async def test_a_command_runs_inside_a_real_pod_and_its_exit_code_is_known(
    cluster: RealKubernetes, namespace: str, alice: ApiClient
):
    pod = real_pod("job", "sh", "-c", "echo inside >file; exec sleep infinity")
    wait_for_phase(cluster.admin, create_pod(cluster.admin, namespace, pod), "Running")
    async with exec_client_of(cluster, ALICE) as client:
        command = ["sh", "-c", "cat file; exit 5"]
        opened = await CoreV1Api(client).connect_get_namespaced_pod_exec(
            "job", namespace, command=command, stdout=True, stderr=True, _preload_content=False
        )
        async with opened as socket:
            frames = [(message.data[0], message.data[1:]) async for message in socket]
    assert b"".join(data for channel, data in frames if channel == 1) == b"inside\n"
    (failure,) = [data for channel, data in frames if channel == 3]
    assert WsApiClient.parse_error_data(failure) == 5
