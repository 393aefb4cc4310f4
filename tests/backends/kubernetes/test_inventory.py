"""Which objects make a job, in whatever order they arrive."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import msgspec
import pytest

from cockpit.backends.kubernetes.inventory import Inventory
from cockpit.backends.kubernetes.objects.workload import Workload
from cockpit.backends.kubernetes.resources import JOB_SETS, JOBS, PYTORCH_JOBS, TRAIN_JOBS
from tests.backends.kubernetes.objects import a_node, a_pod, a_pytorch_job, a_running_pod


def owned_by(uid: str) -> dict[str, Any]:
    return {"metadata": {"ownerReferences": [{"uid": uid, "kind": "X", "name": "x", "controller": True}]}}


def a_workload(name: str, owner: str = "") -> Workload:
    metadata = {
        "name": name,
        "namespace": "team-a",
        "uid": f"uid-{name}",
        **(owned_by(owner)["metadata"] if owner else {}),
    }
    return msgspec.convert({"metadata": metadata}, Workload)


def changes(inventory: Inventory) -> dict[str, list[str] | None]:
    """Return the names of the pods of each job that has changed; None: it is gone."""
    found = inventory.jobs.take_changes()
    return {uid: None if job is None else sorted(pod.metadata.name for pod in job.pods) for uid, job in found}


@pytest.mark.req("KU-03")
@pytest.mark.parametrize("order", list(permutations(range(4))))
def test_pods_belong_to_the_topmost_workload_in_whatever_order_the_objects_arrive(
    inventory: Inventory, order: tuple[int, ...]
) -> None:
    steps = (
        lambda: inventory.jobs.workload_changed(TRAIN_JOBS, None, a_workload("t")),
        lambda: inventory.jobs.workload_changed(JOB_SETS, None, a_workload("s", "uid-t")),
        lambda: inventory.jobs.workload_changed(JOBS, None, a_workload("j", "uid-s")),
        lambda: inventory.jobs.pod_changed(None, a_running_pod("p", **owned_by("uid-j"))),
    )
    shown: dict[str, list[str] | None] = {}
    for each in order:
        steps[each]()
        shown |= changes(inventory)
    assert {uid: pods for uid, pods in shown.items() if pods is not None} == {"uid-t": ["p"]}


@pytest.mark.req("KU-03")
def test_a_pod_of_no_job_is_one_if_it_has_cards(inventory: Inventory) -> None:
    inventory.jobs.pod_changed(None, a_running_pod("gpu"))
    plain = {"spec": {"containers": [{"name": "web", "resources": {"requests": {"cpu": "2"}}}]}}
    inventory.jobs.pod_changed(None, a_running_pod("web", **plain))
    assert {uid: pods for uid, pods in changes(inventory).items() if pods} == {"uid-gpu": ["gpu"]}
    assert [pod.metadata.name for pod in inventory.jobs.other_pods()] == ["web"]


@pytest.mark.req("KU-03")
def test_a_job_that_is_deleted_is_gone_and_so_are_its_pods(inventory: Inventory) -> None:
    job, pod = a_pytorch_job(), a_pod("p", **owned_by("uid-train"))
    inventory.jobs.workload_changed(PYTORCH_JOBS, None, job)
    inventory.jobs.pod_changed(None, pod)
    assert changes(inventory)["uid-train"] == ["p"]
    inventory.jobs.pod_changed(pod, None)
    inventory.jobs.workload_changed(PYTORCH_JOBS, job, None)
    assert changes(inventory)["uid-train"] is None
    assert inventory.jobs.resource("uid-train") is None


@pytest.mark.req("KU-06")
def test_a_heartbeat_of_a_node_is_no_change(inventory: Inventory) -> None:
    node = a_node()
    inventory._node_changed(None, node)
    before = inventory.nodes_version
    inventory._node_changed(node, a_node(metadata={"resourceVersion": "9"}))
    assert inventory.nodes_version == before
    inventory._node_changed(node, a_node(spec={"unschedulable": True}))
    assert inventory.nodes_version == before + 1
