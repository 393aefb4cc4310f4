"""What the host of a fleet tells of its jobs: policy, binding, state on the members, and why not elsewhere."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from msgspec.structs import replace

from cockpit.backends.kubernetes.fleet_host import FleetHost
from cockpit.backends.kubernetes.objects.fleet import ACK_POLICIES, PropagationPolicy
from cockpit.backends.kubernetes.objects.fleet import BINDINGS as BINDING_KIND
from cockpit.backends.kubernetes.objects.fleet import CLUSTERS as CLUSTER_KIND
from cockpit.backends.kubernetes.objects.meta import ObjectMeta
from cockpit.backends.kubernetes.resources import PYTORCH_JOBS
from cockpit.model.events import ClusterReported
from cockpit.model.fleet import BindingMode
from cockpit.model.fleet_placement import (
    AmountThere,
    BoundCluster,
    Eviction,
    FleetPolicy,
    FleetStep,
    FleetWaits,
    MemberObstacle,
)
from cockpit.model.job import JobState
from cockpit.model.node import NodeState
from tests.backends.kubernetes.fleet_objects import (
    ACK,
    BINDINGS,
    CLUSTERS,
    JOBS,
    POLICIES,
    RESULT,
    a_binding,
    a_member,
    a_policy,
    reported,
    serve_fleet,
    unscheduled,
)
from tests.backends.kubernetes.objects import GPU, merged
from tests.backends.kubernetes.test_backend import a_job
from tests.doubles.kubernetes_api import Reply

if TYPE_CHECKING:
    from cockpit.backends.kubernetes.backend import KubernetesBackend
    from cockpit.model.jobdetail import JobDetail
    from cockpit.model.jobrow import JobRow
    from tests.doubles.kubernetes_api import FakeApi

LONGEST = 20.0
pytestmark = pytest.mark.req("KU-11")


@pytest.fixture
def backend(backend: KubernetesBackend, server: FakeApi) -> KubernetesBackend:
    serve_fleet(server)
    server.create(CLUSTERS, a_member("cn-1"))
    server.create(CLUSTERS, a_member("cn-2", used=12))
    return backend


async def row_of(backend: KubernetesBackend) -> JobRow:
    (row,) = await backend.jobs()
    return row


async def seen(backend: KubernetesBackend, state: JobState) -> JobRow:
    async with asyncio.timeout(LONGEST), aclosing(backend.watch_jobs()) as watch:
        async for delta in watch:
            for row in delta.changed:
                if row.state is state:
                    return row
    raise AssertionError("a watch never ends")


def _policy_name(detail: JobDetail) -> str:
    assert detail.fleet is not None
    return detail.fleet.policy.name if detail.fleet.policy is not None else ""


async def test_a_job_without_a_policy_goes_nowhere_and_says_so(backend: KubernetesBackend, server: FakeApi) -> None:
    server.create(JOBS, a_job())
    row = await row_of(backend)
    assert (row.state, row.reason, row.clusters) == (JobState.QUEUED, FleetWaits(FleetStep.NO_POLICY), ())
    server.create(POLICIES.format(ACK), a_policy(resourceSelectors=[{"apiVersion": "batch/v1", "kind": "Job"}]))
    assert _policy_name(await backend.job(row.id)) == ""


@pytest.mark.req("KU-01")
@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/apis/work.karmada.io/v1alpha2/resourcebindings", "resourcebindings.work.karmada.io"),
        (f"/apis/{ACK}/propagationpolicies", "propagationpolicies.policy.one.alibabacloud.com"),
    ],
)
async def test_who_may_not_read_bindings_or_policies_is_not_told_that_there_are_none(
    backend: KubernetesBackend, server: FakeApi, path: str, kind: str
) -> None:
    server.create(JOBS, a_job())
    if "binding" in kind:
        server.create(POLICIES.format(ACK), a_policy())
    server.answer_next(f"GET {path}?limit", Reply.failure(403, "Forbidden", "alice may not"))
    reason = (await row_of(backend)).reason
    assert isinstance(reason, FleetWaits)
    assert (reason.step, reason.message) == (FleetStep.UNSEEN, f"{kind} cannot be read: alice may not")


async def test_the_state_follows_the_members_reports(backend: KubernetesBackend, server: FakeApi) -> None:
    job = a_job(status={"conditions": [{"type": "Created", "status": "True"}]})
    server.create(JOBS, job)
    server.create(POLICIES.format(ACK), a_policy())
    assert (await row_of(backend)).reason == FleetWaits(FleetStep.UNSEEN, "example-policy")
    server.create(BINDINGS, a_binding("cn-1"))
    starting = await seen(backend, JobState.STARTING)
    assert (starting.clusters, starting.reason) == (("cn-1",), FleetWaits(FleetStep.SENT, "example-policy", ("cn-1",)))
    item = reported("cn-1", "Created", "Running", startTime="2026-03-01T09:00:00Z")
    binding = f"{BINDINGS}/train-pytorchjob"
    server.change(binding, {"status": {"aggregatedStatus": [item]}})
    running = await seen(backend, JobState.RUNNING)
    assert (running.reason, running.started_at) == (None, 1772355600000)
    # The fleet's own object still says less than the member.
    placement = (await backend.job(running.id)).fleet
    assert placement is not None
    assert placement.state == "Created"
    assert placement.bound == (
        BoundCluster(cluster="cn-1", replicas=0, state="Running", applied=True, health="Healthy"),
    )
    end = reported("cn-1", "Running", "Succeeded", completionTime="2026-03-01T10:00:00Z")
    server.change(binding, {"status": {"aggregatedStatus": [end]}})
    ended = await seen(backend, JobState.SUCCEEDED)
    assert ended.ended_at == 1772359200000


async def test_a_job_that_the_scheduler_binds_nowhere_names_each_member_with_free_and_asked(
    backend: KubernetesBackend, server: FakeApi
) -> None:
    server.create(CLUSTERS, a_member("cn-3", ready=False))
    taint = {"key": "maintenance", "value": "yes", "effect": "NoSchedule"}
    server.create(CLUSTERS, a_member("cn-4", spec={"taints": [taint]}))
    server.create(CLUSTERS, a_member("cn-5"))
    kinds = [{"groupVersion": "batch/v1", "resources": [{"kind": "Job", "name": "jobs"}]}]
    server.create(CLUSTERS, a_member("cn-6", status={"apiEnablements": kinds}))
    server.create(JOBS, a_job())
    affinity = {"clusterNames": ["cn-1", "cn-2", "cn-3", "cn-4", "cn-6"]}
    server.create(POLICIES.format(ACK), a_policy(placement={"clusterAffinity": affinity}))
    server.create(BINDINGS, a_binding(status=unscheduled("no cluster fits")))
    reason = (await row_of(backend)).reason
    assert isinstance(reason, FleetWaits)
    assert (reason.step, reason.message, reason.policy) == (FleetStep.UNSCHEDULED, "no cluster fits", "example-policy")
    found = {each.cluster: (each.obstacle, each.about) for each in reason.members}
    assert found == {
        "cn-1": (MemberObstacle.UNKNOWN, ""),
        "cn-2": (MemberObstacle.SHORT, ""),
        "cn-3": (MemberObstacle.NOT_READY, "cluster is not reachable"),
        "cn-4": (MemberObstacle.TAINT, "maintenance=yes"),
        "cn-5": (MemberObstacle.EXCLUDED, ""),
        "cn-6": (MemberObstacle.KIND, "PyTorchJob"),
    }
    short = next(each for each in reason.members if each.cluster == "cn-2")
    assert AmountThere(GPU, 8, 4) in short.amounts
    outlook = await backend.explain((await row_of(backend)).id)
    assert outlook.explanation is not None
    assert (outlook.explanation.reason, outlook.scheduler, outlook.forecast.likely_at) == (reason, "the fleet", None)


async def test_the_page_has_policy_event_and_the_members_without_the_job(
    backend: KubernetesBackend, server: FakeApi
) -> None:
    job = server.create(JOBS, a_job())
    server.create(POLICIES.format(ACK), a_policy())
    parts = [{"name": "master", "replicas": 1}, {"name": "worker", "replicas": 2}]
    task = {"fromCluster": "cn-2", "reason": "ApplicationFailure", "message": "failed", "producer": "x"}
    binding = a_binding("cn-1", spec={"gracefulEvictionTasks": [task]})
    binding["spec"]["clusters"][0]["components"] = parts
    server.create(BINDINGS, binding)
    event = {
        "metadata": {"name": "train.1"},
        "involvedObject": {"kind": "PyTorchJob", "name": "train", "uid": job["metadata"]["uid"]},
        "reason": "ScheduleBindingSucceed",
        "message": RESULT,
        "reportingComponent": "default-scheduler",
    }
    server.create("/api/v1/namespaces/team-a/events", event)
    detail = await backend.job((await row_of(backend)).id)
    placement = detail.fleet
    assert placement is not None
    assert placement.policy == FleetPolicy(
        name="example-policy",
        namespace="team-a",
        api_version=ACK,
        division="Divided",
        gang=True,
        propagates_dependencies=True,
        toleration_seconds=30,
        purge_mode="Immediately",
    )
    assert placement.bound[0].roles == (("master", 1), ("worker", 2))
    assert placement.event == RESULT
    assert placement.evictions == (Eviction(cluster="cn-2", reason="ApplicationFailure", message="failed"),)
    assert placement.elsewhere[0].obstacle is MemberObstacle.EVICTED
    assert any(isinstance(each.body, ClusterReported) and each.body.message == RESULT for each in detail.events)


@pytest.mark.req("KU-11", "FL-07")
async def test_suspended_scheduling_and_suspended_dispatching_are_told_apart(
    backend: KubernetesBackend, server: FakeApi
) -> None:
    server.create(JOBS, a_job())
    server.create(POLICIES.format(ACK), a_policy(suspension={"scheduling": True}))
    assert (await row_of(backend)).reason == FleetWaits(FleetStep.SUSPENDED, "example-policy")
    binding = a_binding(spec={"suspension": {"scheduling": True}})
    server.create(BINDINGS, binding)
    assert (await row_of(backend)).reason == FleetWaits(FleetStep.SUSPENDED, "example-policy")
    server.change(
        f"{BINDINGS}/train-pytorchjob",
        {"spec": {"suspension": {"scheduling": False, "dispatching": True}, "clusters": [{"name": "cn-2"}]}},
    )
    row = await seen(backend, JobState.STARTING)
    assert row.reason == FleetWaits(FleetStep.NOT_SENT, "example-policy", ("cn-2",))


@pytest.mark.req("FL-08", "KU-11")
async def test_a_failed_placement_is_given_up_by_the_policys_time_and_ends_the_job_without_one(
    backend: KubernetesBackend, server: FakeApi
) -> None:
    server.create(JOBS, a_job())
    server.create(POLICIES.format(ACK), a_policy())
    status = {"aggregatedStatus": [reported("cn-1", "Running", "Failed")]}
    server.create(BINDINGS, a_binding("cn-1", status=status))
    row = await row_of(backend)
    reason = FleetWaits(FleetStep.FAILED_THERE, "example-policy", ("cn-1",), seconds=30)
    assert (row.state, row.reason) == (JobState.STARTING, reason)
    server.change(f"{POLICIES.format(ACK)}/example-policy", {"spec": {"failover": None}})
    assert (await seen(backend, JobState.ERROR)).reason is None


async def test_a_member_that_does_not_take_the_job_says_why(backend: KubernetesBackend, server: FakeApi) -> None:
    server.create(JOBS, a_job())
    server.create(POLICIES.format(ACK), a_policy())
    item = {"clusterName": "cn-1", "applied": False, "appliedMessage": "namespace not found"}
    server.create(BINDINGS, a_binding("cn-1", status={"aggregatedStatus": [item]}))
    expected = FleetWaits(FleetStep.NOT_APPLIED, "example-policy", ("cn-1",), "namespace not found")
    assert (await row_of(backend)).reason == expected


def test_the_policy_of_a_job_is_the_noted_one_or_else_the_most_precise() -> None:
    host = FleetHost(lambda _: None, lambda: None)
    host.kinds = frozenset({ACK_POLICIES, BINDING_KIND, CLUSTER_KIND})
    kind = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob"}
    meta = ObjectMeta(name="train", namespace="team-a", labels={"team": "nlp"})

    def policy_after(name: str, noted: str = "", **spec: Any) -> str:
        content = merged(a_policy(name, **spec), {"metadata": {"uid": name, "namespace": "team-a"}})
        host.policy_changed(ACK_POLICIES, None, msgspec.convert(content, PropagationPolicy))
        notes = {"propagationpolicy.karmada.io/name": noted} if noted else None
        found = host.of(PYTORCH_JOBS, replace(meta, annotations=notes))
        assert found is not None
        return found.held.policy.metadata.name if found.held is not None else ""

    assert policy_after("other", resourceSelectors=[{**kind, "name": "other"}]) == ""
    assert policy_after("every") == "every"
    assert policy_after("any") == "any", "of equal ones the first by name"
    labelled = {**kind, "labelSelector": {"matchLabels": {"team": "nlp"}}}
    assert policy_after("labelled", resourceSelectors=[labelled]) == "labelled"
    assert policy_after("named", resourceSelectors=[{**kind, "name": "train"}]) == "named"
    assert policy_after("urgent", priority=5) == "urgent"
    # What the fleet has applied counts, whatever it would apply to a new job.
    assert policy_after("last", noted="every") == "every"


@pytest.mark.req("KU-01")
async def test_a_members_report_of_another_form_counts_as_none(backend: KubernetesBackend, server: FakeApi) -> None:
    server.create(JOBS, a_job())
    odd = {"clusterName": "cn-1", "applied": True, "status": {"conditions": "none", "active": "many"}}
    server.create(BINDINGS, a_binding("cn-1", status={"aggregatedStatus": [odd]}))
    row = await row_of(backend)
    assert (row.state, row.clusters) == (JobState.STARTING, ("cn-1",))


@pytest.mark.req("FL-06", "KU-11")
async def test_members_are_nodes_with_their_totals_and_the_mode_that_is_known(
    backend: KubernetesBackend, server: FakeApi
) -> None:
    server.create(CLUSTERS, a_member("cn-3", ready=False))
    server.create(JOBS, a_job())
    server.create(BINDINGS, a_binding("cn-2", status={"aggregatedStatus": [reported("cn-2", "Running")]}))
    first, second, third = await backend.nodes()
    assert (first.node.name, first.node.cpus, len(first.node.cards), first.used_cards) == ("cn-1", 64, 16, 0)
    # What other jobs hold there counts as well.
    assert (second.node.name, second.used_cards, second.used_card_milli) == ("cn-2", 12, 12_000)
    assert second.jobs == ((await row_of(backend)).id,)
    assert (third.node.state, third.node.state_reason) == (NodeState.DOWN, "cluster is not reachable")
    assert {row.binding for row in (first, second, third)} == {BindingMode.TOTALS}
    shown = await backend.overview()
    assert (shown.nodes, shown.card_milli) == (3, 48_000)
    assert "The fleet does not reach cn-3: cluster is not reachable" in shown.trouble
