"""Why Kueue does not admit a job, out of what it writes at the job's workload."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from cockpit.backends.kubernetes.mapping.kueue import admission_reason
from cockpit.backends.kubernetes.mapping.rows import reason_of
from cockpit.backends.kubernetes.objects.kueue import AdmissionCheck, KueueWorkload, RequeueState
from cockpit.model.pod_reasons import FlavorObstacle, FlavorTried, PodsNotCreated, QueueWaits
from cockpit.model.reasons import never_starts
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
    reason = reason_of(job)
    assert isinstance(reason, QueueWaits)
    assert (reason.code, reason.message) == ("WaitingForQuota", QUOTA)
    assert job.queue == "team-a"
    job = a_job(workload=a_pytorch_job())
    job.queued = a_workload(a_condition("Admitted"))
    assert reason_of(job) == PodsNotCreated("PyTorchJob")


NOT_ASSIGNED = "couldn't assign flavors to pod set main:"
SHORT = f"{NOT_ASSIGNED} insufficient unused quota for nvidia.com/gpu in flavor h100, 4 more needed"
TAINT = "{spot true NoSchedule <nil>}"
LARGE_NOW = (
    f"{NOT_ASSIGNED} insufficient quota for nvidia.com/gpu in flavor h100, previously considered "
    "podsets requests (0) + current podset request (24) > maximum capacity (16)"
)
LARGE_BEFORE = (
    f"{NOT_ASSIGNED} insufficient quota for nvidia.com/gpu in flavor h100, request > maximum capacity (24 > 16)"
)


@pytest.mark.req("KU-04", "KU-05")
@pytest.mark.parametrize(
    ("reason", "message", "code", "never", "flavors"),
    [
        (
            "Pending",
            SHORT,
            "WaitingForQuota",
            False,
            [FlavorTried("h100", FlavorObstacle.SHORT, "nvidia.com/gpu", missing="4")],
        ),
        (
            "ExceedsMaxQuota",
            LARGE_NOW,
            "ExceedsMaxQuota",
            True,
            [FlavorTried("h100", FlavorObstacle.TOO_LARGE, "nvidia.com/gpu", most="16")],
        ),
        # Versions before 0.16 call every reason Pending.
        (
            "Pending",
            LARGE_BEFORE,
            "ExceedsMaxQuota",
            True,
            [FlavorTried("h100", FlavorObstacle.TOO_LARGE, "nvidia.com/gpu", most="16")],
        ),
        (
            "Pending",
            f"{LARGE_BEFORE}, insufficient unused quota for nvidia.com/gpu in flavor a100, 2 more needed",
            "WaitingForQuota",
            False,
            [
                FlavorTried("h100", FlavorObstacle.TOO_LARGE, "nvidia.com/gpu", most="16"),
                FlavorTried("a100", FlavorObstacle.SHORT, "nvidia.com/gpu", missing="2"),
            ],
        ),
        (
            "NoMatchingFlavor",
            f"{NOT_ASSIGNED} untolerated taint {TAINT} in flavor h100, flavor a100 doesn't match node affinity",
            "NoMatchingFlavor",
            True,
            [
                FlavorTried("h100", FlavorObstacle.EXCLUDED, about=f"the taint {TAINT}"),
                FlavorTried("a100", FlavorObstacle.EXCLUDED, about="other node labels"),
            ],
        ),
        (
            "Pending",
            "couldn't assign flavors to pod set main: resource cpu unavailable in ClusterQueue",
            "NoMatchingFlavor",
            True,
            [FlavorTried("", FlavorObstacle.NO_QUOTA, "cpu")],
        ),
    ],
)
def test_what_each_flavor_lacks_is_read_from_kueues_sentence(
    reason: str, message: str, code: str, never: bool, flavors: list[FlavorTried]
) -> None:
    found = admission_reason(a_workload(a_condition("QuotaReserved", true=False, reason=reason, message=message)))
    assert found is not None
    assert (found.code, found.never, list(found.flavors)) == (code, never, flavors)
    assert never_starts(found) is never


@pytest.mark.req("KU-05")
def test_admission_checks_that_are_not_ready_are_named() -> None:
    workload = a_workload(a_condition("QuotaReserved"))
    checks = (AdmissionCheck("budget", "Pending", "asked"), AdmissionCheck("nodes", "Ready"))
    found = admission_reason(replace(workload, status=replace(workload.status, admission_checks=checks)))
    assert found is not None
    assert found.message == "it has its quota, and waits for budget is Pending: asked"


@pytest.mark.req("KU-05")
def test_a_workload_that_was_put_back_says_until_when() -> None:
    evicted = a_condition("Evicted", reason="PodsReadyTimeout", message="Exceeded the PodsReady timeout")
    requeued = a_condition("Requeued", true=False, reason="PodsReadyTimeout")
    workload = a_workload(evicted, requeued, a_condition("QuotaReserved", true=False, reason="Pending", message="x"))
    state = RequeueState(2, datetime(2026, 3, 1, 10, tzinfo=UTC))
    found = admission_reason(replace(workload, status=replace(workload.status, requeue_state=state)))
    assert found is not None
    assert (found.code, found.until) == ("PodsReadyTimeout", 1_772_359_200_000)
    deactivated = a_condition("Evicted", reason="DeactivatedDueToRequeuingLimitExceeded", message="too often")
    found = admission_reason(a_workload(deactivated, active=False))
    assert found is not None
    assert (found.code, found.message) == ("DeactivatedDueToRequeuingLimitExceeded", "too often")
