"""The fake nodes of the test cluster, and pods on them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.real.kubernetes.conftest import CARDS, NODES
from tests.real.kubernetes.daemons import wait_until
from tests.real.kubernetes.pods import ENDED, create_pod, fake_pod, wait_for_phase

if TYPE_CHECKING:
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


def test_a_fake_pod_runs_on_the_node_that_it_names(cluster: RealKubernetes, namespace: str):
    path = create_pod(cluster.admin, namespace, fake_pod("bound", node="gpu-0013"))
    assert wait_for_phase(cluster.admin, path, "Running")["spec"]["nodeName"] == "gpu-0013"


def test_a_fake_pod_fails_for_the_reason_of_its_annotation(cluster: RealKubernetes, namespace: str):
    pod = fake_pod("short", seconds="1s", exit_code=137, reason="OOMKilled")
    ended = wait_for_phase(cluster.admin, create_pod(cluster.admin, namespace, pod), *ENDED)
    assert ended["status"]["containerStatuses"][0]["state"]["terminated"]["reason"] == "OOMKilled"


def test_a_stuck_fake_pod_says_why_its_container_does_not_start(cluster: RealKubernetes, namespace: str):
    path = create_pod(cluster.admin, namespace, fake_pod("stuck", stuck="ImagePullBackOff"))

    def statuses() -> list[dict[str, Any]]:
        return cluster.admin.get(path)["status"].get("containerStatuses", [])

    wait_until("the pod has no container", statuses)
    assert statuses()[0]["state"]["waiting"]["reason"] == "ImagePullBackOff"
    assert cluster.admin.get(path)["status"]["phase"] == "Pending"
