"""Jobs, pod groups and queues of Volcano, out of objects and over the tests' own API server."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from cockpit.backends.kubernetes.backend import KubernetesBackend
from cockpit.backends.kubernetes.mapping.kube_jobs import KubeJob
from cockpit.backends.kubernetes.mapping.membership import BatchScheduling, Gang
from cockpit.backends.kubernetes.mapping.rows import reason_of, row_of
from cockpit.backends.kubernetes.mapping.volcano import volcano_queue_rows
from cockpit.backends.kubernetes.objects.gang import PodGroup
from cockpit.backends.kubernetes.objects.pod import Pod
from cockpit.backends.kubernetes.objects.volcano import VolcanoQueue
from cockpit.backends.kubernetes.objects.workload import Workload
from cockpit.errors import RequestRefused
from cockpit.model.asking import WantedLimit
from cockpit.model.ids import JobId
from cockpit.model.job import JobState
from cockpit.model.jobrow import JobRow
from cockpit.model.pod_reasons import GangIncomplete, MemberState, PodsNotCreated, QueueWaits
from cockpit.model.reasons import Held, NeverFits, QuotaFull, Reason, Resource
from cockpit.model.refusal import RefusalKind
from cockpit.model.spec import Access, Mode, NodeSpec
from tests.backends.kubernetes.objects import (
    CREATED,
    ENDED,
    GPU,
    a_pod,
    a_running_pod,
    a_template,
    an_ended_pod,
    merged,
)
from tests.builders import a_spec
from tests.doubles.kubernetes_api import FakeApi, Reply

JOBS = "/apis/batch.volcano.sh/v1alpha1/namespaces/team-a/jobs"
GROUPS = "/apis/scheduling.volcano.sh/v1beta1/namespaces/team-a/podgroups"
QUEUES = "/apis/scheduling.volcano.sh/v1beta1/queues"
COMMANDS = "/apis/bus.volcano.sh/v1alpha1/namespaces/team-a/commands"
PODS = "/api/v1/namespaces/team-a/pods"
LONGEST = 20.0
KINDS = {
    "/apis/batch/v1": ("jobs",),
    "/apis/batch.volcano.sh/v1alpha1": ("jobs",),
    "/apis/bus.volcano.sh/v1alpha1": ("commands",),
    "/apis/scheduling.volcano.sh/v1beta1": ("podgroups", "queues"),
}


def a_manifest(phase: str = "Pending", **changes: Any) -> dict[str, Any]:
    tasks = [
        {"name": "master", "replicas": 1, "template": a_template()},
        {"name": "worker", "replicas": 3, "minAvailable": 2, "template": a_template()},
    ]
    # A condition of Volcano has the phase as its status, and no type.
    state = {"phase": phase, "lastTransitionTime": ENDED}
    base = {
        "metadata": {"name": "train", "namespace": "team-a", "creationTimestamp": CREATED},
        "spec": {"minAvailable": 3, "queue": "batch", "priorityClassName": "high", "tasks": tasks},
        "status": {"state": state, "conditions": [{"status": phase, "lastTransitionTime": ENDED}]},
    }
    return merged(base, changes)


def a_volcano_job(*pods: Pod, phase: str = "Pending", **changes: Any) -> KubeJob:
    workload = msgspec.convert(a_manifest(phase, metadata={"uid": "uid-train"}, **changes), Workload, strict=False)
    return KubeJob("Volcano Job", workload.metadata, workload, pods)


def of_task(task: str, index: int) -> dict[str, Any]:
    return {"metadata": {"labels": {"volcano.sh/task-spec": task, "volcano.sh/task-index": str(index)}}}


@pytest.mark.req("KU-03")
@pytest.mark.parametrize(
    ("phase", "pods", "state"),
    [
        ("", (), JobState.QUEUED),
        ("Pending", (), JobState.QUEUED),
        ("Pending", (a_running_pod("a"), a_pod("b")), JobState.STARTING),
        ("Running", (a_running_pod("a"), a_running_pod("b"), a_pod("c")), JobState.RUNNING),
        ("Restarting", (), JobState.QUEUED),
        ("Aborting", (a_running_pod("a"),), JobState.RUNNING),
        ("Aborted", (), JobState.QUEUED),
        ("Completing", (a_running_pod("a"),), JobState.RUNNING),
        ("Completed", (an_ended_pod("a"),), JobState.SUCCEEDED),
        ("Failed", (an_ended_pod("a", code=1),), JobState.ERROR),
        ("Terminated", (), JobState.ERROR),
        ("Failed", (an_ended_pod("a", code=1, status={"reason": "DeadlineExceeded"}),), JobState.EXPIRED),
    ],
)
def test_the_phase_is_the_state(phase: str, pods: tuple[Pod, ...], state: JobState) -> None:
    assert a_volcano_job(*pods, phase=phase).state is state


@pytest.mark.req("KU-03")
def test_tasks_are_the_replicas_and_their_ranks() -> None:
    pods = (
        a_pod("w1", **of_task("worker", 1)),
        a_pod("w0", **of_task("worker", 0)),
        a_pod("m", **of_task("master", 0)),
    )
    job = a_volcano_job(*pods)
    assert [(each.role, each.count, each.least) for each in job.groups] == [("master", 1, 1), ("worker", 3, 2)]
    assert [pod.metadata.name for pod in job.pods] == ["m", "w0", "w1"]
    row = row_of(job, JobId(1), lambda _: "", Access.RW)
    assert (row.nodes, row.card_milli, row.partitions, row.qos) == (4, 32_000, ("batch",), "high")


def a_queue(name: str = "batch", state: str = "Open", **changes: Any) -> VolcanoQueue:
    base = {"metadata": {"name": name}, "spec": {"weight": 1}, "status": {"state": state}}
    return msgspec.convert(merged(base, changes), VolcanoQueue, strict=False)


def in_queue(job: KubeJob, queue: VolcanoQueue | None, phase: str = "Pending", **status: Any) -> KubeJob:
    group = {
        "metadata": {"name": "train", "namespace": "team-a"},
        "spec": {"minMember": 3, "queue": "batch"},
        "status": {"phase": phase, **status},
    }
    job.batch = BatchScheduling(Gang("train", tuple(job.pods), msgspec.convert(group, PodGroup)), queue)
    return job


@pytest.mark.req("KU-04", "KU-05")
def test_a_closed_queue_lets_no_job_start() -> None:
    assert reason_of(in_queue(a_volcano_job(), a_queue(state="Closed"))) == QueueWaits("Volcano", "batch", "Closed")
    assert reason_of(in_queue(a_volcano_job(), a_queue(state="Closing"))) == QueueWaits("Volcano", "batch", "Closed")
    # A group that has left the queue goes on.
    assert reason_of(in_queue(a_volcano_job(), a_queue(state="Closed"), "Inqueue")) != QueueWaits(
        "Volcano", "batch", "Closed"
    )


@pytest.mark.req("KU-05")
def test_a_job_in_the_queue_says_so_in_volcanos_words() -> None:
    said = [{"type": "Unschedulable", "status": "True", "reason": "NotEnoughResources", "message": "queue is full"}]
    job = in_queue(a_volcano_job(), a_queue(), conditions=said)
    assert reason_of(job) == QueueWaits("Volcano", "batch", "InQueue", "queue is full")
    assert reason_of(a_volcano_job()) == PodsNotCreated("Volcano Job")


@pytest.mark.req("KU-03")
def test_an_aborted_job_is_held_whoever_aborted_it() -> None:
    assert reason_of(a_volcano_job(phase="Aborted")) == Held("AbortJob of Volcano", None)


@pytest.mark.req("KU-04")
def test_queues_are_rows_below_their_parents() -> None:
    amounts = {
        "spec": {"parent": "lab", "capability": {GPU: 16}, "deserved": {GPU: 8}, "guarantee": {"resource": {GPU: 4}}},
        "status": {"allocated": {GPU: "12", "cpu": "24"}, "pending": 2, "inqueue": 1, "running": 3},
    }
    queues = [a_queue("nlp", **amounts), a_queue("root"), a_queue("lab"), a_queue("alone", spec={"parent": "gone"})]
    rows = list(volcano_queue_rows(queues, ()))
    assert [(row.path, row.level) for row in rows] == [
        ("alone", 0),
        ("root", 0),
        ("root/lab", 1),
        ("root/lab/nlp", 2),
    ]
    nlp = rows[-1]
    assert (nlp.waiting, nlp.running, nlp.used) == (3, 3, {"gres/gpu": 12_000, "cpu": 24_000})
    assert (nlp.min, nlp.max) == ({"gres/gpu": 8000}, {"gres/gpu": 16_000})


@pytest.fixture
def backend(backend: KubernetesBackend, server: FakeApi) -> KubernetesBackend:
    server.kinds = KINDS
    return backend


def owned_by(owner: dict[str, Any]) -> dict[str, Any]:
    reference = {"uid": owner["metadata"]["uid"], "kind": "Job", "name": owner["metadata"]["name"], "controller": True}
    return {"metadata": {"ownerReferences": [reference]}}


def a_group_of(job: dict[str, Any], phase: str) -> dict[str, Any]:
    base = {"metadata": {"name": "train-1"}, "spec": {"minMember": 3, "queue": "batch"}, "status": {"phase": phase}}
    return merged(base, owned_by(job))


def a_pod_of(job: dict[str, Any], name: str, **changes: Any) -> dict[str, Any]:
    named = {"metadata": {"name": name, "annotations": {"scheduling.k8s.io/group-name": "train-1"}}}
    status = {"status": {"phase": "Pending"}}
    return merged(merged(merged({**a_template(), **status}, named), owned_by(job)), changes)


async def until(backend: KubernetesBackend, reason: Reason) -> JobRow:
    """Wait until the only job waits for this reason, and return its row."""
    async with asyncio.timeout(LONGEST), aclosing(backend.watch_jobs(anything=True)) as watch:
        async for _ in watch:
            rows = await backend.jobs()
            if [row.reason for row in rows] == [reason]:
                return rows[0]
    raise AssertionError("a watch never ends")


@pytest.mark.req("KU-04", "KU-05")
async def test_a_queue_that_closes_is_the_reason_of_the_jobs_in_it(backend: KubernetesBackend, server: FakeApi) -> None:
    server.create(QUEUES, {"metadata": {"name": "batch"}, "status": {"state": "Open"}})
    job = server.create(JOBS, a_manifest())
    server.create(GROUPS, a_group_of(job, "Pending"))
    await until(backend, QueueWaits("Volcano", "batch", "InQueue"))
    server.change(f"{QUEUES}/batch", {"status": {"state": "Closed"}})
    await until(backend, QueueWaits("Volcano", "batch", "Closed"))


@pytest.mark.req("KU-05")
async def test_explain_says_which_capability_is_short_and_who_uses_it(
    backend: KubernetesBackend, server: FakeApi
) -> None:
    queue = {
        "metadata": {"name": "batch"},
        "spec": {"capability": {GPU: "32"}},
        "status": {"state": "Open", "allocated": {GPU: "24"}},
    }
    server.create(QUEUES, queue)
    running = server.create(JOBS, a_manifest("Running", metadata={"name": "before"}))
    server.create(GROUPS, merged(a_group_of(running, "Running"), {"metadata": {"name": "before-1"}}))
    placed = {"spec": {"nodeName": "n1"}, "status": {"phase": "Running"}}
    server.create(PODS, a_pod_of(running, "before-master-0", **placed))
    job = server.create(JOBS, a_manifest())
    server.create(GROUPS, a_group_of(job, "Pending"))
    rows = {row.name: row for row in await backend.jobs()}
    outlook = await backend.explain(rows["train"].id)
    assert outlook.explanation is not None
    # Three pods of 8 cards each start it: the master and two of three workers.
    assert outlook.explanation.reason == QuotaFull("batch", "gres/gpu", 32, 24, 24)
    assert (outlook.holders, outlook.holders_in_all) == ((rows["before"].id,), 1)
    held = outlook.holding(rows["before"].id)
    assert held is not None
    assert (held.name, held.running) == ("before", True)
    (row,) = (await backend.queues()).rows
    assert (row.path, row.used, row.max) == ("batch", {"gres/gpu": 24_000}, {"gres/gpu": 32_000})


@pytest.mark.req("KU-07")
async def test_a_job_is_suspended_and_resumed_by_commands(backend: KubernetesBackend, server: FakeApi) -> None:
    created = server.create(JOBS, a_manifest())
    (row,) = await backend.jobs()
    await backend.hold(row.id)
    command = server.object(f"{COMMANDS}/train-abortjob")
    assert command["action"] == "AbortJob"
    assert (command["target"]["kind"], command["target"]["uid"]) == ("Job", created["metadata"]["uid"])
    assert command["metadata"]["ownerReferences"][0]["controller"]
    server.change(f"{JOBS}/train", {"status": {"state": {"phase": "Aborted"}}})
    await until(backend, Held("AbortJob of Volcano", None))
    await backend.release(row.id)
    assert server.object(f"{COMMANDS}/train-resumejob")["action"] == "ResumeJob"
    # A second resume would be its third retry, at which Volcano lets it fail.
    server.change(f"{JOBS}/train", {"status": {"state": {"phase": "Running"}, "retryCount": 2}})
    await until(backend, PodsNotCreated("Volcano Job"))
    with pytest.raises(RequestRefused, match="its maxRetry is 3, and its retryCount 2"):
        await backend.hold(row.id)
    with pytest.raises(RequestRefused, match="no time limit of its own") as refused:
        await backend.set_time_limit(row.id, WantedLimit(3600))
    assert refused.value.refusal.kind is RefusalKind.INVALID
    await backend.cancel(row.id)
    assert server.find(f"{JOBS}/train") is None


@pytest.mark.req("KU-07")
async def test_a_distributed_job_is_submitted_as_volcanos_where_its_own_kind_is_not_served(
    backend: KubernetesBackend, server: FakeApi
) -> None:
    spec = a_spec("train", image="img:1", mode=Mode.PYTORCH, nodes=2, specs=(NodeSpec(card_milli=8000),))
    (job,) = await backend.submit([spec])
    made = server.object(f"{JOBS}/train")
    assert (made["apiVersion"], made["kind"]) == ("batch.volcano.sh/v1alpha1", "Job")
    assert [(task["name"], task["replicas"]) for task in made["spec"]["tasks"]] == [("master", 1), ("worker", 1)]
    # Else Volcano would let it fail when it is resumed.
    assert made["spec"]["maxRetry"] > 3
    assert made["metadata"]["annotations"]["cockpit/submitted-by"] == "alice"
    row = await until(backend, PodsNotCreated("Volcano Job"))
    assert (row.id, row.name, row.nodes) == (job, "train", 2)
    with pytest.raises(RequestRefused, match="hold: a Job of Volcano starts unheld"):
        await backend.submit([a_spec("held", image="img:1", mode=Mode.PYTORCH, nodes=2, hold=True)])


def a_kube_node(name: str) -> dict[str, Any]:
    status = {
        "allocatable": {"cpu": "96", "memory": "1000Gi", GPU: "8"},
        "conditions": [{"type": "Ready", "status": "True"}],
    }
    return {"kind": "Node", "metadata": {"name": name}, "status": status}


def refused_pod(job: dict[str, Any], name: str, message: str, cards: int) -> dict[str, Any]:
    conditions = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}]
    pod = a_pod_of(job, name, status={"conditions": conditions})
    pod["spec"]["containers"][0]["resources"] = {"limits": {GPU: cards}}
    return pod


@pytest.mark.req("KU-05")
@pytest.mark.parametrize(
    "message",
    [
        "pod group is not ready, 1 Pending, 2 minAvailable; Pending: 1 Unschedulable",
        "0/2 nodes are unavailable: 2 Insufficient nvidia.com/gpu.",
    ],
)
async def test_explain_says_that_a_gang_can_never_start(
    backend: KubernetesBackend, server: FakeApi, message: str
) -> None:
    for name in ("n1", "n2"):
        server.create("/api/v1/nodes", a_kube_node(name))
    tasks = [
        {"name": name, "replicas": 1, "template": refused_pod({"metadata": {"uid": "", "name": ""}}, "", "", cards)}
        for name, cards in (("master", 1), ("worker", 16))
    ]
    job = server.create(JOBS, a_manifest(spec={"minAvailable": 2, "tasks": tasks}))
    server.create(GROUPS, merged(a_group_of(job, "Inqueue"), {"spec": {"minMember": 2}}))
    for name, cards in (("train-master-0", 1), ("train-worker-0", 16)):
        server.create(PODS, refused_pod(job, name, message, cards))
    (row,) = await backend.jobs()
    assert isinstance(row.reason, GangIncomplete)
    assert [(each.count, each.state) for each in row.reason.missing] == [(2, MemberState.NO_NODE)]
    outlook = await backend.explain(row.id)
    assert outlook.explanation is not None
    assert outlook.explanation.reason == NeverFits(Resource.CARDS, 16, 8)


@pytest.mark.req("KU-01", "KU-04")
async def test_a_cluster_without_queues_says_which_it_could_have(backend: KubernetesBackend, server: FakeApi) -> None:
    server.kinds = {"/apis/batch/v1": ("jobs",)}
    with pytest.raises(RequestRefused, match="serves none of Kueue, KubeQueue, Volcano and elastic quotas"):
        await backend.queues()
    assert not backend.capabilities.has("queues")


@pytest.mark.req("KU-01", "KU-04")
async def test_queues_that_may_not_be_listed_are_missing_with_the_servers_words(
    backend: KubernetesBackend, server: FakeApi
) -> None:
    why = 'queues.scheduling.volcano.sh is forbidden: User "alice" cannot list resource "queues"'
    server.answer_next(f"GET {QUEUES}", Reply.failure(403, "Forbidden", why))
    server.create(JOBS, a_manifest())
    (row,) = await backend.jobs()
    assert row.reason == PodsNotCreated("Volcano Job")
    assert backend.capabilities.why_not("queues") == f"Queues cannot be listed: {why}"


@pytest.mark.req("KU-05")
async def test_a_pod_that_its_queue_has_no_room_for_is_explained_by_the_queue(
    backend: KubernetesBackend, server: FakeApi
) -> None:
    # Without requests Volcano lets the job out of the queue, and then says nothing of the capability.
    server.create("/api/v1/nodes", a_kube_node("n1"))
    queue = {"spec": {"capability": {GPU: 10}}, "status": {"state": "Open", "allocated": {GPU: "4"}}}
    server.create(QUEUES, {"metadata": {"name": "batch"}, **queue})
    task = {"name": "worker", "replicas": 1, "template": a_template()}
    job = server.create(JOBS, a_manifest(spec={"minAvailable": 1, "tasks": [task]}))
    server.create(GROUPS, merged(a_group_of(job, "Inqueue"), {"spec": {"minMember": 1}}))
    message = "pod group is not ready, 1 Pending, 1 minAvailable; Pending: 1 Unschedulable"
    server.create(PODS, refused_pod(job, "train-worker-0", message, 8))
    (row,) = await backend.jobs()
    outlook = await backend.explain(row.id)
    assert outlook.explanation is not None
    assert outlook.explanation.reason == QuotaFull("batch", "gres/gpu", 10, 4, 8)


@pytest.mark.req("KU-07", "KU-12")
async def test_an_edit_changes_the_workers_and_the_class_of_a_job(backend: KubernetesBackend, server: FakeApi) -> None:
    server.create("/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": "urgent"}, "value": 1000})
    server.create(JOBS, a_manifest(metadata={"annotations": {"theirs": "stays"}}, spec={"minAvailable": 4}))
    (row,) = await backend.jobs()
    spec = (await backend.job(row.id)).job.spec
    assert spec.nodes == 4
    await backend.edit(row.id, replace(spec, nodes=3, qos="urgent"))
    made = server.object(f"{JOBS}/train")
    # All four pods were the gang, so all three are; of the workers alone two were enough, and still are.
    assert [task["replicas"] for task in made["spec"]["tasks"]] == [1, 2]
    assert (made["spec"]["minAvailable"], made["spec"]["tasks"][1]["minAvailable"]) == (3, 2)
    assert made["spec"]["priorityClassName"] == "urgent"
    assert "priorityClassName" not in made["spec"]["tasks"][0]["template"]["spec"]
    assert made["metadata"]["annotations"] == {"theirs": "stays"}
    with pytest.raises(RequestRefused, match="with the tasks master, worker has no 1 pods"):
        await backend.edit(row.id, replace(spec, nodes=1, qos="urgent"))
