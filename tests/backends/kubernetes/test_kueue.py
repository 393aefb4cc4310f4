"""Why Kueue does not admit a job, and its cluster queues."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from cockpit.backends.kubernetes.mapping.kueue import admission_reason, queue_rows
from cockpit.backends.kubernetes.mapping.rows import reason_of
from cockpit.backends.kubernetes.objects.kueue import ClusterQueue, KueueWorkload, LocalQueue
from cockpit.model.pod_reasons import PodsNotCreated, QueueWaits
from tests.backends.kubernetes.objects import a_condition, a_job, a_pytorch_job

QUOTA = "couldn't assign flavors to pod set master: insufficient unused quota for nvidia.com/gpu in flavor h100"


def a_workload(*conditions: dict[str, str], active: bool = True) -> KueueWorkload:
    spec = {"queueName": "team-a", "active": active}
    return msgspec.convert(
        {"metadata": {"name": "w"}, "spec": spec, "status": {"conditions": list(conditions)}}, KueueWorkload
    )


@pytest.mark.req("KU-04", "KU-05")
@pytest.mark.parametrize(
    ("conditions", "code", "message"),
    [
        ([], "", ""),
        ([a_condition("QuotaReserved", true=False, reason="Pending", message=QUOTA)], "Pending", QUOTA),
        (
            [a_condition("QuotaReserved", true=False, reason="Inadmissible", message="LocalQueue x doesn't exist")],
            "Inadmissible",
            "LocalQueue x doesn't exist",
        ),
        (
            [a_condition("QuotaReserved", reason="QuotaReserved", message="reserved")],
            "AdmissionChecks",
            "it has its quota, and waits for admission checks",
        ),
        ([a_condition("Evicted", reason="Preempted", message="by a job of b")], "Preempted", "by a job of b"),
    ],
)
def test_a_workload_that_is_not_admitted_says_why(conditions: list[Any], code: str, message: str) -> None:
    assert admission_reason(a_workload(*conditions)) == QueueWaits("Kueue", "team-a", code, message)


@pytest.mark.req("KU-04")
def test_an_admitted_workload_and_a_stopped_one() -> None:
    assert admission_reason(a_workload(a_condition("Admitted"))) is None
    stopped = admission_reason(a_workload(active=False))
    assert stopped is not None
    assert stopped.code == "Inactive"


@pytest.mark.req("KU-05")
def test_a_job_that_its_queue_manager_suspends_is_not_held_by_a_user() -> None:
    job = a_job(workload=a_pytorch_job(spec={"runPolicy": {"suspend": True}}))
    job.queued = a_workload(a_condition("QuotaReserved", true=False, reason="Pending", message=QUOTA))
    assert reason_of(job) == QueueWaits("Kueue", "team-a", "Pending", QUOTA)
    assert job.queue == "team-a"
    job = a_job(workload=a_pytorch_job())
    job.queued = a_workload(a_condition("Admitted"))
    assert reason_of(job) == PodsNotCreated("PyTorchJob")


def a_queue(name: str, *, cohort: str = "", borrowing: str | None = None) -> ClusterQueue:
    limit = {} if borrowing is None else {"borrowingLimit": borrowing}
    resources = [
        {"name": "cpu", "nominalQuota": "40"},
        {"name": "memory", "nominalQuota": "100Gi"},
        {"name": "nvidia.com/gpu", "nominalQuota": 8, **limit},
        {"name": "rdma/hca", "nominalQuota": 1},
    ]
    flavors = [{"name": "h100", "resources": resources}, {"name": "a100", "resources": resources[2:3]}]
    usage = [{"name": "h100", "resources": [{"name": "nvidia.com/gpu", "total": "6", "borrowed": "0"}]}]
    return msgspec.convert(
        {
            "metadata": {"name": name},
            "spec": {"cohort": cohort, "resourceGroups": [{"flavors": flavors}]},
            "status": {"flavorsUsage": usage, "pendingWorkloads": 3, "admittedWorkloads": 2},
        },
        ClusterQueue,
    )


@pytest.mark.req("KU-04")
def test_a_cluster_queue_is_a_row_with_what_it_may_borrow() -> None:
    own = msgspec.convert(
        {"metadata": {"name": "q", "namespace": "team-a"}, "spec": {"clusterQueue": "one"}}, LocalQueue
    )
    rows = list(
        queue_rows([a_queue("two", cohort="all", borrowing="4"), a_queue("one"), a_queue("six", cohort="all")], [own])
    )
    assert [(row.name, row.waiting, row.running, row.projects) for row in rows] == [
        ("one", 3, 2, ("team-a",)),
        ("six", 3, 2, ()),
        ("two", 3, 2, ()),
    ]
    one, six, two = rows
    assert one.min == {"cpu": 40_000, "mem": 102_400_000, "gres/gpu": 16_000}
    assert one.used == {"gres/gpu": 6000}
    assert one.max == one.min
    # In a cohort a resource without a limit has no most.
    assert six.max == {}
    assert two.max == {"gres/gpu": 24_000}
