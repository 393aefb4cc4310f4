"""Kueue's cohorts, cluster queues and queues of namespaces as rows, and the core's copy of them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from cockpit.backends.kubernetes.mapping.kueue_admission import KueueObjects, admission_state
from cockpit.backends.kubernetes.mapping.kueue_queues import queue_rows
from cockpit.backends.kubernetes.mapping.kueue_shortage import holders, predicted_reason, quotas_in_use
from cockpit.backends.kubernetes.objects.kueue import (
    ClusterQueue,
    KueueCohort,
    KueueWorkload,
    LocalQueue,
    ResourceFlavor,
    ResourceGroup,
)
from cockpit.model.ids import Millis
from cockpit.model.pod_reasons import FlavorObstacle, FlavorTried, QuotaBorrower, QuotaInUse
from cockpit.sched.admission.quotas import FlavorResource
from cockpit.sched.admission.workloads import Mode
from tests.backends.kubernetes.objects import CREATED, GPU, a_condition

H100 = FlavorResource("h100", GPU)
ONLY_H100 = msgspec.convert(
    [{"flavors": [{"name": "h100", "resources": [{"name": GPU, "nominalQuota": 8}]}]}], tuple[ResourceGroup, ...]
)


def a_queue(name: str, *, cohort: str = "", borrowing: str | None = None, **spec: Any) -> ClusterQueue:
    limit = {} if borrowing is None else {"borrowingLimit": borrowing}
    resources = [
        {"name": "cpu", "nominalQuota": "40"},
        {"name": "memory", "nominalQuota": "100Gi"},
        {"name": GPU, "nominalQuota": 8, **limit},
        {"name": "rdma/hca", "nominalQuota": 1},
    ]
    flavors = [{"name": "h100", "resources": resources}, {"name": "a100", "resources": resources[2:3]}]
    usage = [{"name": "h100", "resources": [{"name": GPU, "total": "6", "borrowed": "0"}]}]
    return msgspec.convert(
        {
            "metadata": {"name": name},
            "spec": {"cohort": cohort, "resourceGroups": [{"flavors": flavors}], **spec},
            "status": {
                "flavorsUsage": usage,
                "flavorsReservation": usage,
                "pendingWorkloads": 3,
                "admittedWorkloads": 2,
            },
        },
        ClusterQueue,
    )


def a_local_queue(queue: str, name: str = "q", namespace: str = "team-a", **spec: Any) -> LocalQueue:
    status = {"pendingWorkloads": 1, "admittedWorkloads": 1}
    return msgspec.convert(
        {
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"clusterQueue": queue, **spec},
            "status": status,
        },
        LocalQueue,
    )


@pytest.mark.req("KU-04")
def test_a_cluster_queue_is_a_row_with_what_it_may_borrow() -> None:
    queues = (a_queue("two", cohort="all", borrowing="4"), a_queue("one"), a_queue("six", cohort="all"))
    rows = list(queue_rows(KueueObjects((), queues, (a_local_queue("one"),))))
    assert [(row.path, row.level, row.waiting, row.running, row.projects) for row in rows] == [
        ("all", 0, 6, 4, ()),
        ("all/six", 1, 3, 2, ()),
        ("all/two", 1, 3, 2, ()),
        ("one", 0, 3, 2, ("team-a",)),
        ("one/q (team-a)", 1, 1, 1, ("team-a",)),
    ]
    cohort, six, two, one, _ = rows
    assert one.min == {"cpu": 40_000, "mem": 102_400_000, "gres/gpu": 16_000}
    assert one.used == {"gres/gpu": 6000}
    assert one.max == one.min
    # In a cohort a resource without a limit has no most.
    assert six.max == {}
    assert two.max == {"gres/gpu": 24_000}
    assert cohort.min == cohort.max == {name: 2 * amount for name, amount in one.min.items()}
    assert cohort.used == {"gres/gpu": 12_000}


@pytest.mark.req("KU-04")
def test_cohorts_are_a_tree_also_where_they_are_only_named() -> None:
    """v1beta2 calls the parent parentName, v1alpha1 parent."""
    left = msgspec.convert({"metadata": {"name": "left"}, "spec": {"parentName": "top"}}, KueueCohort)
    right = msgspec.convert({"metadata": {"name": "right"}, "spec": {"parent": "top"}}, KueueCohort)
    queues = (a_queue("a", cohortName="left"), a_queue("b", cohort="right"))
    rows = list(queue_rows(KueueObjects((), queues, (), (left, right))))
    assert [row.path for row in rows] == ["top", "top/left", "top/left/a", "top/right", "top/right/b"]


@pytest.mark.req("KU-04", "KU-05")
def test_a_queue_that_admits_nothing_says_why() -> None:
    inactive = msgspec.json.decode(msgspec.json.encode(a_queue("bad")), type=dict)
    inactive["status"]["conditions"] = [a_condition("Active", true=False, reason="FlavorNotFound", message="no h100")]
    queues = (a_queue("held", stopPolicy="Hold"), msgspec.convert(inactive, ClusterQueue))
    local = a_local_queue("held", stopPolicy="HoldAndDrain")
    found = {row.name: row.stopped for row in queue_rows(KueueObjects((), queues, (local,)))}
    assert found == {"held": "stopPolicy Hold", "bad": "no h100", "q": "stopPolicy HoldAndDrain"}
    state = admission_state(KueueObjects((a_waiting("w", 1),), queues, (local,)))
    assert not state.waiting


def a_waiting(name: str, cards: int, *, pods: int = 1, queue: str = "q", **pod: Any) -> KueueWorkload:
    container = {"name": "main", "resources": {"requests": {GPU: cards}}}
    pod_set = {"name": "main", "count": pods, "template": {"spec": {"containers": [container], **pod}}}
    meta = {"name": name, "uid": name, "namespace": "team-a", "creationTimestamp": CREATED}
    return msgspec.convert(
        {"metadata": meta, "spec": {"queueName": queue, "podSets": [pod_set]}}, KueueWorkload, strict=False
    )


def an_admitted(name: str, cards: int, *, queue: str, priority: int = 0, flavor: str = "h100") -> KueueWorkload:
    assignment = {"name": "main", "flavors": {GPU: flavor}, "resourceUsage": {GPU: str(cards)}}
    status = {
        "admission": {"clusterQueue": queue, "podSetAssignments": [assignment]},
        "conditions": [a_condition("QuotaReserved"), a_condition("Admitted")],
    }
    meta = {"name": name, "uid": name, "namespace": "team-b", "creationTimestamp": CREATED}
    given = {"metadata": meta, "spec": {"queueName": "other", "priority": priority}, "status": status}
    return msgspec.convert(given, KueueWorkload, strict=False)


@pytest.mark.req("KU-05")
def test_the_quota_that_is_short_is_told_with_who_uses_and_borrows_it() -> None:
    queues = (
        a_queue("mine", cohort="all", preemption={"reclaimWithinCohort": "LowerPriority"}),
        a_queue("theirs", cohort="all"),
        a_queue("apart"),
    )
    waiting = a_waiting("new", 4, nodeSelector={"model": "h100"})
    others = (
        an_admitted("own", 4, queue="mine", priority=5),
        an_admitted("large", 12, queue="theirs", priority=5),
        an_admitted("elsewhere", 8, queue="apart"),
    )
    flavor = {"metadata": {"name": "a100"}, "spec": {"nodeLabels": {"model": "a100"}}}
    objects = KueueObjects(
        (waiting, *others), queues, (a_local_queue("mine"),), (), (msgspec.convert(flavor, ResourceFlavor),)
    )
    state = admission_state(objects)
    ((workload,),) = state.waiting.values()
    verdict = state.judge(workload)
    assert verdict.mode is Mode.NO_CANDIDATES
    reason = predicted_reason("Kueue", "q", verdict)
    assert reason is not None
    assert (reason.code, reason.never) == ("WaitingForQuota", False)
    assert reason.flavors == (
        FlavorTried("h100", FlavorObstacle.SHORT, GPU, missing="4"),
        FlavorTried("a100", FlavorObstacle.EXCLUDED, about="other node labels"),
    )
    assert quotas_in_use(state, workload, verdict) == (
        QuotaInUse("mine", "h100", GPU, "4", "0", "4", "8", (QuotaBorrower("theirs", "4", "LowerPriority"),)),
    )
    # The ones that borrow come first; a queue outside the cohort uses none of this quota.
    assert holders(state, workload, verdict) == ["large", "own"]


@pytest.mark.req("KU-05")
def test_use_that_the_user_may_not_see_is_taken_from_the_queues_status() -> None:
    queues, local = (a_queue("mine"),), (a_local_queue("mine"),)
    for sees_all, used in ((True, 0), (False, 6000)):
        state = admission_state(KueueObjects((a_waiting("new", 4),), queues, local, sees_all=sees_all))
        assert state.quotas.used("mine", H100) == used
    ((workload,),) = state.waiting.values()
    assert workload.requests[0].amounts == {GPU: 4000}
    assert workload.requests[0].excluded == {}


@pytest.mark.req("KU-05", "SC-12")
def test_a_workload_that_is_being_evicted_waits_already() -> None:
    given = msgspec.json.decode(msgspec.json.encode(an_admitted("old", 8, queue="mine")), type=dict)
    given["spec"]["queueName"] = "q"
    given["status"]["conditions"].append(a_condition("Evicted", reason="Preempted"))
    evicted = msgspec.convert(given, KueueWorkload, strict=False)
    state = admission_state(KueueObjects((evicted,), (a_queue("mine"),), (a_local_queue("mine", namespace="team-b"),)))
    assert (state.admitted, state.quotas.used("mine", H100)) == ({}, 0)
    assert [each.key for each in state.waiting["mine"]] == ["old"]


@pytest.mark.req("KU-05")
def test_a_taint_that_is_not_tolerated_excludes_a_flavor() -> None:
    taint = {"key": "spot", "value": "true", "effect": "NoSchedule"}
    flavors = tuple(
        msgspec.convert({"metadata": {"name": name}, "spec": {"nodeTaints": [taint]}}, ResourceFlavor)
        for name in ("h100", "a100")
    )
    tolerates = {"tolerations": [{"key": "spot", "operator": "Exists"}]}
    for pod, code in (({}, "NoMatchingFlavor"), (tolerates, None)):
        objects = KueueObjects((a_waiting("new", 4, **pod),), (a_queue("mine"),), (a_local_queue("mine"),), (), flavors)
        state = admission_state(objects)
        ((workload,),) = state.waiting.values()
        reason = predicted_reason("Kueue", "q", state.judge(workload))
        assert (reason.code if reason is not None else None) == code


@pytest.mark.req("KU-04", "SC-12")
def test_a_preempted_job_asks_for_what_it_had() -> None:
    low, new = an_admitted("low", 6, queue="mine", priority=-10), a_waiting("new", 8)
    spec = msgspec.structs.replace(low.spec, pod_sets=a_waiting("low", 6).spec.pod_sets)
    low = msgspec.structs.replace(low, spec=spec)
    queue = a_queue("mine", preemption={"withinClusterQueue": "LowerPriority"})
    single = msgspec.structs.replace(queue, spec=msgspec.structs.replace(queue.spec, resource_groups=ONLY_H100))
    state = admission_state(KueueObjects((low, new), (single,), (a_local_queue("mine"),)))
    assert state.settle(Millis(0)) == ["new"]
    # It waits, and has not come back with nothing.
    assert (list(state.admitted), [each.key for each in state.waiting["mine"]]) == (["new"], ["low"])
