"""The order of the queue, and the class that gives each job its priority."""

from __future__ import annotations

from typing import Any

import pytest

from cockpit.backends.kubernetes.backend import KubernetesBackend
from cockpit.errors import RequestRefused
from cockpit.model.priority import WeightChanges
from cockpit.present.priority import total_words
from tests.backends.kubernetes.objects import a_template
from tests.doubles.kubernetes_api import FakeApi

JOBS = "/apis/batch/v1/namespaces/team-a/jobs"
WORKLOADS = "/apis/kueue.x-k8s.io/v1beta1/namespaces/team-a/workloads"
CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"


@pytest.fixture
def backend(backend: KubernetesBackend, server: FakeApi) -> KubernetesBackend:
    server.kinds["/apis/kueue.x-k8s.io/v1beta1"] = ("workloads",)
    return backend


def a_job(name: str, priority_class: str = "", **more: Any) -> dict[str, Any]:
    template = a_template(spec={"priorityClassName": priority_class})
    return {"kind": "Job", "metadata": {"name": name, **more}, "spec": {"template": template}}


@pytest.mark.req("KU-07", "UI-10")
async def test_the_queue_is_in_the_order_of_the_classes_values(backend: KubernetesBackend, server: FakeApi) -> None:
    server.create(CLASSES, {"metadata": {"name": "urgent"}, "value": 1000})
    server.create(CLASSES, {"metadata": {"name": "usual"}, "value": 5, "globalDefault": True})
    server.create(CLASSES, {"metadata": {"name": "low"}, "value": -10})
    for name, own in (("a", "low"), ("b", ""), ("c", "urgent"), ("held", "urgent"), ("gold", "low")):
        labels = {"kueue.x-k8s.io/priority-class": "gold"} if name == "gold" else {}
        job = server.create(JOBS, a_job(name, own, labels=labels))
    server.change(f"{JOBS}/held", {"spec": {"suspend": True}})
    reference = {"uid": job["metadata"]["uid"], "kind": "Job", "name": "gold", "controller": True}
    queued = {"queueName": "team", "priority": 77}
    server.create(WORKLOADS, {"metadata": {"name": "w", "ownerReferences": [reference]}, "spec": queued})
    shown = await backend.priorities()
    assert [(row.name, row.position, total_words(row.breakdown)) for row in shown.rows if row.breakdown] == [
        ("c", 1, "1 000, by PriorityClass urgent"),
        ("gold", 2, "77, by WorkloadPriorityClass gold"),
        ("b", 3, "5, by PriorityClass usual"),
        ("a", 4, "-10, by PriorityClass low"),
        ("held", None, "0, by PriorityClass urgent"),
    ]
    detail = await backend.job(shown.rows[1].job)
    assert detail.priority == (shown.rows[1].breakdown,)
    with pytest.raises(RequestRefused, match="Kubernetes has no priority weights"):
        await backend.priorities(WeightChanges(age=1))
