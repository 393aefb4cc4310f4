"""The starts of a job's replicas, which count as its attempts."""

from __future__ import annotations

from typing import Any

import pytest

from cockpit.backends.kubernetes.mapping.runs import attempts_of, runs_of
from tests.backends.kubernetes.objects import a_job, a_pytorch_job, a_running_pod, an_ended_pod, merged

pytestmark = pytest.mark.req("UI-14", "KU-07")

LABEL = "training.kubeflow.org/replica-index"


def at(hour: int, index: str = "") -> dict[str, Any]:
    labels = {LABEL: index} if index else {}
    return {"metadata": {"creationTimestamp": f"2026-07-01T{hour:02}:00:00Z", "labels": labels}}


def test_pods_with_one_index_are_starts_of_one_replica_in_the_order_of_their_creation() -> None:
    restarts = {"status": {"containerStatuses": [{"name": "main", "restartCount": 1, "state": {"running": {}}}]}}
    pods = [
        a_running_pod("c", **at(9, "1")),
        a_running_pod("b", **merged(at(12, "0"), restarts)),
        an_ended_pod("a", code=1, **at(11, "0")),
        an_ended_pod("z", code=1, **at(10, "0")),
    ]
    job = a_job(*pods, workload=a_pytorch_job(2))
    ranks = {pod.metadata.name: rank for rank, pod in enumerate(job.pods)}
    starts = [(run.pod.metadata.name, run.later) for run in runs_of(job, ranks["a"])]
    assert starts == [("z", 0), ("a", 0), ("b", 1), ("b", 0)]
    assert [run.pod.metadata.name for run in runs_of(job, ranks["c"])] == ["c"]
    assert attempts_of(job) == 4


def test_pods_without_an_index_are_told_apart_only_where_one_runs_at_a_time() -> None:
    first, second = an_ended_pod("x", code=1, **at(10)), a_running_pod("b", **at(11))
    several = a_job(first, second, workload=a_pytorch_job(1))
    assert several.wanted == 2
    assert attempts_of(several) == 1
    alone = a_job(first, second, workload=a_pytorch_job(0))
    assert alone.wanted == 1
    assert [run.pod.metadata.name for run in runs_of(alone, 0)] == ["x", "b"]
    assert attempts_of(a_job(workload=a_pytorch_job(1))) == 1, "no pod"
