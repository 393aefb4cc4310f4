"""What kube-queue itself wrote on a real API server, as the cockpit shows it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cockpit.model.job import JobState
from cockpit.model.pod_reasons import PodsNotCreated, QueueWaits
from cockpit.model.reasons import QuotaFull, QuotaWaits
from tests.backends.kubernetes.kube_queue_objects import serve_kube_queue
from tests.backends.kubernetes.test_kube_queue import explained, rows, seen

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cockpit.backends.kubernetes.backend import KubernetesBackend
    from tests.doubles.kubernetes_api import FakeApi

Stage = dict[str, list[dict[str, Any]]]
"""The objects by their collections."""
STAGES: Mapping[str, Stage] = json.loads((Path(__file__).parent / "data/kube_queue_0_1_0.json").read_text())["stages"]
WAITS = QueueWaits("KubeQueue", "research", "Enqueued")


@pytest.fixture
def backend(backend: KubernetesBackend, server: FakeApi) -> KubernetesBackend:
    serve_kube_queue(server)
    del server.kinds["/apis/scheduling.sigs.k8s.io/v1beta1"]
    server.kinds["/apis/kubeflow.org/v1"] = ("tfjobs",)
    return backend


def show(server: FakeApi, stage: Stage) -> None:
    """Have the server serve the objects of a stage, in place of those of another."""
    for collection, objects in stage.items():
        for each in objects:
            path = f"{collection}/{each['metadata']['name']}"
            if server.find(path) is None:
                server.create(collection, each)
            else:
                gone = {"scheduling.x-k8s.io/suspend": None, **each["metadata"].get("annotations", {})}
                server.change(path, {"metadata": {"annotations": gone}, "status": each.get("status")})


@pytest.mark.req("KU-04", "KU-05")
async def test_the_place_that_is_shown_is_the_order_in_which_kube_queue_dequeues(
    backend: KubernetesBackend, server: FakeApi
) -> None:
    show(server, STAGES["waiting"])
    found = await rows(backend)
    # Its extension has taken the annotation off the first job; its operator did not run, and created no pods.
    assert found["first"].reason == PodsNotCreated("TFJob")
    assert {name: row.reason for name, row in found.items() if name != "first"} == {"second": WAITS, "urgent": WAITS}
    assert {row.state for row in found.values()} == {JobState.QUEUED}
    # The queue is the one of the namespace: these queue units name none.
    assert {row.partitions for row in found.values()} == {("research",)}
    assert (found["urgent"].priority, found["second"].priority) == (9, None)
    assert [(await explained(backend, name)).position for name in ("urgent", "second")] == [1, 2]
    show(server, STAGES["one ended"])
    await seen(backend, "urgent", PodsNotCreated("TFJob"))
    assert (await rows(backend))["second"].reason == WAITS
    # The namespace's quota of 4 CPUs is the reason, which kube-queue says nowhere.
    waits = (await explained(backend, "second")).reason
    assert isinstance(waits, QuotaWaits)
    assert waits.limit == QuotaFull("ResourceQuota/team-a", "cpu", 4, 3, 3)
    (queue,) = (await backend.queues()).rows
    assert (queue.name, queue.waiting, queue.running, queue.projects) == ("research", 1, 1, ("team-a",))
    assert (queue.used, queue.max) == ({"cpu": 3000, "mem": 1_024_000}, {"cpu": 4000, "mem": 4_096_000})
    assert (await backend.queues()).tree == ""
