"""When a job would start that is not submitted yet and goes to a queue of Kueue: over the tests' own API server."""

from __future__ import annotations

from datetime import UTC
from typing import Any

import pytest
from msgspec.structs import replace

from cockpit.backends.kubernetes.backend import KubernetesBackend
from cockpit.model.forecast import NoBound, Outlook
from cockpit.model.ids import Millis
from cockpit.model.pod_reasons import FlavorObstacle, QueueWaits, Unschedulable
from cockpit.model.reasons import never_starts
from cockpit.model.spec import JobSpec
from cockpit.present.columns import Context
from cockpit.present.outlook import outlook_lines
from cockpit.present.spans import plain
from tests.backends.kubernetes.objects import GPU, a_condition, merged
from tests.backends.kubernetes.test_explaining import NODES, PODS, a_node, running
from tests.builders import a_spec
from tests.doubles.kubernetes_api import FakeApi

KUEUE = "/apis/kueue.x-k8s.io/v1beta2"
JOBS = "/apis/batch/v1/namespaces/team-a/jobs"
HOUR = 3_600_000


def a_queue(name: str = "gpu", flavors: tuple[str, ...] = ("h100",), cards: int = 8, **spec: Any) -> dict[str, Any]:
    """A cluster queue for all namespaces with so many cards in each flavor."""
    quotas = [
        {"name": GPU, "nominalQuota": cards},
        {"name": "cpu", "nominalQuota": 1000},
        {"name": "memory", "nominalQuota": "9000Gi"},
    ]
    group = {
        "coveredResources": [GPU, "cpu", "memory"],
        "flavors": [{"name": flavor, "resources": quotas} for flavor in flavors],
    }
    return {"metadata": {"name": name}, "spec": {"namespaceSelector": {}, "resourceGroups": [group], **spec}}


def serve(server: FakeApi, *queues: dict[str, Any], **local: Any) -> None:
    """Serve Kueue with these cluster queues, each with a queue of the namespace of the same name."""
    server.kinds[KUEUE] = ("workloads", "clusterqueues", "localqueues", "cohorts", "resourceflavors")
    server.create("/api/v1/namespaces", {"metadata": {"name": "team-a", "labels": {"team": "a"}}})
    for each in queues:
        server.create(f"{KUEUE}/clusterqueues", each)
        name = each["metadata"]["name"]
        own = {"metadata": {"name": name}, "spec": {"clusterQueue": name, **local}}
        server.create(f"{KUEUE}/namespaces/team-a/localqueues", own)


def a_flavor(name: str, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": spec}


def add_job(
    server: FakeApi,
    name: str,
    cards: int,
    *,
    admitted: bool = False,
    limit: int | None = None,
    priority: int = 0,
    said: str = "waits",
) -> None:
    """Add a job to the queue `gpu`. One that is admitted has the flavor h100, and no pods yet."""
    container = {"name": "main", "image": "i", "resources": {"limits": {GPU: str(cards)}}}
    template = {"spec": {"containers": [container]}}
    deadline = {} if limit is None else {"activeDeadlineSeconds": limit}
    spec = {"suspend": not admitted, "parallelism": 1, "template": template, **deadline}
    job = server.create(JOBS, {"metadata": {"name": name}, "spec": spec, "status": {}})
    owner = {"uid": job["metadata"]["uid"], "kind": "Job", "name": name, "controller": True}
    status: dict[str, Any] = {
        "conditions": [a_condition("QuotaReserved", true=False, reason="WaitingForQuota", message=said)]
    }
    if admitted:
        assignment = {"name": "main", "flavors": {GPU: "h100"}, "resourceUsage": {GPU: str(cards)}}
        status = {
            "admission": {"clusterQueue": "gpu", "podSetAssignments": [assignment]},
            "conditions": [a_condition("QuotaReserved"), a_condition("Admitted")],
        }
    workload = {
        "metadata": {"name": f"job-{name}", "ownerReferences": [owner]},
        "spec": {
            "queueName": "gpu",
            "priority": priority,
            "podSets": [{"name": "main", "count": 1, "template": template}],
        },
        "status": status,
    }
    server.create(f"{KUEUE}/namespaces/team-a/workloads", workload)


def wanted(cards: int = 8, queue: str = "gpu", **fields: Any) -> JobSpec:
    partitions = (queue,) if queue else ()
    return a_spec("train", image="img:1", project="team-a", partitions=partitions, card_milli=1000 * cards, **fields)


def words(outlook: Outlook) -> str:
    return "\n".join(plain(each) for each in outlook_lines(outlook, Context(now=Millis(0), zone=UTC)))


def reason_of(outlook: Outlook) -> QueueWaits:
    assert outlook.explanation is not None
    assert isinstance(outlook.explanation.reason, QueueWaits)
    return outlook.explanation.reason


async def predicted(backend: KubernetesBackend, *specs: JobSpec) -> list[Outlook]:
    return list(await backend.predict(specs))


@pytest.mark.req("KU-04", "SC-12")
async def test_a_job_that_its_quota_and_the_nodes_take_starts_now(backend: KubernetesBackend, server: FakeApi) -> None:
    serve(server, a_queue())
    server.create(NODES, a_node("n1"))
    (outlook,) = await predicted(backend, wanted())
    assert (outlook.forecast.now, outlook.explanation) == (True, None)
    assert "starts now, by cockpit's own plan, not Kubernetes's" in words(outlook)


@pytest.mark.req("KU-04", "SC-12")
async def test_without_nodes_that_the_user_may_see_the_quota_alone_decides(
    backend: KubernetesBackend, server: FakeApi
) -> None:
    serve(server, a_queue(flavors=("h100", "a100")))
    add_job(server, "old", 8, admitted=True)
    (outlook,) = await predicted(backend, wanted())
    assert (outlook.forecast.now, outlook.explanation) == (True, None)
    assert "starts now, by cockpit's own plan, not Kueue's" in words(outlook)
    assert "you may see no nodes, so that only its quota is known" in words(outlook)
    # The flavor that comes first is in use, which does not matter.
    assert (outlook.holders, outlook.holders_in_all) == ((), 0)


@pytest.mark.req("KU-04", "SC-12")
async def test_a_job_waits_for_the_quota_of_those_that_run_and_behind_those_that_came_before(
    backend: KubernetesBackend, server: FakeApi
) -> None:
    serve(server, a_queue())
    server.create(NODES, a_node("n1"))
    add_job(server, "old", 8, admitted=True, limit=3600)
    add_job(server, "first", 8, limit=7200)
    add_job(server, "low", 8, limit=7200, priority=-1)
    numbers = {row.name: row.id for row in await backend.jobs()}
    now = backend._clock.now()
    (outlook,) = await predicted(backend, wanted(4))
    reason = reason_of(outlook)
    assert (reason.code, reason.never, reason.judged) == ("WaitingForQuota", False, False)
    assert [(each.asked, each.free, each.used) for each in reason.quotas if each.resource == GPU] == [("4", "0", "8")]
    assert outlook.holders == (numbers["old"],)
    # The one of lower priority comes later, although it was there before.
    assert (outlook.position, outlook.explanation and outlook.explanation.ahead) == (2, (numbers["first"],))
    forecast = outlook.forecast
    assert forecast.likely_at is not None
    # The one before it runs for two hours after the one that has the quota.
    assert abs(forecast.likely_at - now - 3 * HOUR) < HOUR / 10
    assert [each.job for each in forecast.after] == [numbers["first"]]
    assert forecast.likely_from is not None
    assert forecast.likely_to is not None
    assert forecast.likely_from < forecast.likely_at < forecast.likely_to
    assert forecast.no_bound is NoBound.LATER_SUBMISSIONS
    assert "queued behind 1, starts about" in words(outlook)
    # Several jobs are predicted as if they came in their order.
    both = await predicted(backend, wanted(4), wanted(8))
    assert [each.position for each in both] == [2, 3]
    # A submitted job has the same figures.
    found = await backend.explain(numbers["first"])
    assert found.forecast.likely_to is not None
    assert "likely" in words(found)


@pytest.mark.req("KU-05", "SC-12", "SC-13")
@pytest.mark.parametrize(
    ("queue", "local", "spec", "code", "said"),
    [
        (a_queue(cards=4), {}, {}, "ExceedsMaxQuota", "at most 4"),
        (a_queue(), {}, {"node_selector": {"model": "a100"}}, "NoMatchingFlavor", "other node labels"),
        (a_queue(namespaceSelector={"matchLabels": {"team": "b"}}), {}, {}, "Misconfigured", "namespaceSelector"),
        (a_queue(namespaceSelector=None), {}, {}, "Misconfigured", "takes no jobs of namespace team-a"),
    ],
)
async def test_a_job_that_its_queue_can_never_admit_is_told_why(
    backend: KubernetesBackend,
    server: FakeApi,
    queue: dict[str, Any],
    local: dict[str, Any],
    spec: dict[str, Any],
    code: str,
    said: str,
) -> None:
    serve(server, queue, **local)
    server.create(f"{KUEUE}/resourceflavors", a_flavor("h100", nodeLabels={"model": "h100"}))
    (outlook,) = await predicted(backend, wanted(**spec))
    assert (reason_of(outlook).code, never_starts(reason_of(outlook))) == (code, True)
    assert outlook.forecast.likely_at is None
    assert "never starts as it is" in words(outlook)
    assert said in words(outlook)


@pytest.mark.req("KU-05", "SC-12")
@pytest.mark.parametrize(
    ("queue", "local"),
    [
        (a_queue(stopPolicy="Hold"), {}),
        (a_queue(), {"stopPolicy": "HoldAndDrain"}),
        (merged(a_queue(), {"status": {"conditions": [a_condition("Active", true=False, message="no flavor")]}}), {}),
    ],
)
async def test_a_stopped_queue_predicts_nothing_and_says_so(
    backend: KubernetesBackend, server: FakeApi, queue: dict[str, Any], local: dict[str, Any]
) -> None:
    serve(server, queue, **local)
    (outlook,) = await predicted(backend, wanted())
    assert (reason_of(outlook).code, never_starts(reason_of(outlook))) == ("Suspended", False)
    assert outlook.forecast.likely_at is None
    assert "admits nothing from queue gpu" in words(outlook)


@pytest.mark.req("KU-04", "KU-05", "SC-12")
@pytest.mark.parametrize("has_quota", [True, False])
async def test_once_admitted_the_pods_need_nodes_of_the_flavor(
    backend: KubernetesBackend, server: FakeApi, *, has_quota: bool
) -> None:
    serve(server, a_queue(cards=16))
    if not has_quota:
        add_job(server, "old", 16, admitted=True, limit=3600)
    server.create(f"{KUEUE}/resourceflavors", a_flavor("h100", nodeLabels={"pool": "h"}))
    # The free node belongs to no flavor of the queue.
    server.create(NODES, a_node("n1", metadata={"labels": {"pool": "h"}}))
    server.create(NODES, a_node("n2"))
    server.create(PODS, running("other", "n1", 8, activeDeadlineSeconds=600))
    (outlook,) = await predicted(backend, wanted())
    jobs = {row.name: row.id for row in await backend.jobs()}
    assert outlook.explanation is not None
    if has_quota:
        assert isinstance(outlook.explanation.reason, Unschedulable)
        assert (outlook.scheduler, outlook.holders) == ("Kubernetes", (jobs["other"],))
    else:
        assert reason_of(outlook).code == "WaitingForQuota"
    # The later of both counts.
    assert [each.job for each in outlook.forecast.after] == [jobs["other"]]
    assert outlook.forecast.likely_at == outlook.forecast.after[0].end_at
    assert outlook.forecast.no_bound is NoBound.NOTHING_RESERVED


@pytest.mark.req("KU-05", "SC-12")
async def test_a_preemption_is_told_and_an_admission_check_is_no_start(
    backend: KubernetesBackend, server: FakeApi
) -> None:
    checked = a_queue("checked", admissionChecksStrategy={"admissionChecks": [{"name": "budget"}]})
    serve(server, a_queue(preemption={"withinClusterQueue": "LowerPriority"}), checked)
    server.create(NODES, a_node("n1"))
    add_job(server, "low", 8, admitted=True, priority=-10)
    (outlook,) = await predicted(backend, wanted())
    assert reason_of(outlook).code == "WaitingForPreemptedWorkloads"
    assert (outlook.forecast.now, outlook.forecast.likely_at is not None) == (False, True)
    assert outlook.forecast.no_bound is NoBound.PREEMPTION
    assert "1 job would be preempted for it" in words(outlook)
    (outlook,) = await predicted(backend, wanted(queue="checked"))
    assert (outlook.forecast.now, outlook.forecast.no_bound) == (False, NoBound.ADMISSION_CHECKS)
    assert "admission checks" in words(outlook)


@pytest.mark.req("KU-04", "SC-12")
async def test_a_job_without_a_queue_goes_to_the_default_one(backend: KubernetesBackend, server: FakeApi) -> None:
    serve(server, a_queue("default", cards=4))
    (outlook,) = await predicted(backend, wanted(queue=""))
    assert reason_of(outlook).queue == "default"
    assert [each.obstacle for each in reason_of(outlook).flavors] == [FlavorObstacle.TOO_LARGE]


@pytest.mark.req("SC-12")
@pytest.mark.parametrize("competes", [False, True])
async def test_fair_sharing_predicts_only_a_job_that_competes_with_no_other(
    backend: KubernetesBackend, server: FakeApi, *, competes: bool
) -> None:
    serve(server, merged(a_queue(), {"status": {"fairSharing": {"weightedShare": 3}}}))
    if competes:
        add_job(server, "first", 4)
    (outlook,) = await predicted(backend, wanted())
    assert outlook.forecast.now is not competes
    if competes:
        assert outlook.forecast.likely_at is None
        assert reason_of(outlook).share == 3


@pytest.mark.req("KU-05", "SC-12")
async def test_a_job_of_a_namespace_that_the_queue_does_not_take_holds_up_no_other(
    backend: KubernetesBackend, server: FakeApi
) -> None:
    serve(server, a_queue(queueingStrategy="StrictFIFO"))
    add_job(server, "foreign", 9, priority=10, said="workload namespace doesn't match ClusterQueue selector")
    (outlook,) = await predicted(backend, wanted())
    assert (outlook.forecast.now, outlook.position) == (True, 1)
    (foreign,) = await backend.jobs()
    assert isinstance(foreign.reason, QueueWaits)
    assert never_starts(foreign.reason)


@pytest.mark.req("SC-12")
async def test_an_end_that_is_not_known_predicts_no_start(backend: KubernetesBackend, server: FakeApi) -> None:
    serve(server, a_queue())
    add_job(server, "old", 8, admitted=True)
    (outlook,) = await predicted(backend, replace(wanted(), time_limit_seconds=60))
    assert outlook.forecast.likely_at is None
    assert "no estimate of when it starts" in words(outlook)
