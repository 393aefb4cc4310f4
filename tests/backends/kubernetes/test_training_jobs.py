"""Elastic jobs of Alibaba's training operator: launcher, workers, phases, and the job supervisor's annotations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from cockpit.backends.kubernetes.mapping.planning import shown_job
from cockpit.backends.kubernetes.mapping.rows import row_of
from cockpit.backends.kubernetes.objects.pod import Pod
from cockpit.backends.kubernetes.objects.workload import Workload
from cockpit.model.attempt import EndCause
from cockpit.model.ids import JobId
from cockpit.model.job import JobState
from cockpit.model.jobrow import JobRow
from cockpit.model.pod_reasons import PodsNotCreated
from cockpit.model.resilience import Elastic
from cockpit.model.spec import Access
from cockpit.present.states import end_sentence
from cockpit.present.workers import short_of_workers, workers_now
from tests.backends.kubernetes.conftest import open_fake
from tests.backends.kubernetes.objects import (
    CREATED,
    ENDED,
    a_condition,
    a_job,
    a_pod,
    a_running_pod,
    a_template,
    merged,
)
from tests.doubles.kubernetes_api import FakeApi

S = JobState
SUPERVISOR = "job-supervisor.kube-ai.io"
ENDED_MS = 1_772_359_500_000


def a_training_job(notes: dict[str, str] | None = None, **changes: Any) -> Workload:
    launcher = {"name": "et", "image": "img:1", "command": ["sh", "-c", "horovodrun python t.py"]}
    replicas = {
        "launcher": {"replicas": 1, "template": {"spec": {"containers": [launcher]}}},
        "worker": {"replicas": 8, "minReplicas": 1, "maxReplicas": 128, "template": a_template()},
    }
    base = {
        "metadata": {
            "name": "train",
            "namespace": "team-a",
            "uid": "uid-train",
            "creationTimestamp": CREATED,
            "annotations": notes or {},
        },
        "spec": {"etReplicaSpecs": replicas},
    }
    return msgspec.convert(merged(base, changes), Workload, strict=False)


def a_worker(index: int, *, running: bool = True) -> Pod:
    labels = {"labels": {"training-job-role": "worker", "replica-index": str(index)}}
    make = a_running_pod if running else a_pod
    return make(f"train-worker-{index}", metadata=labels)


def a_launcher() -> Pod:
    return a_running_pod(
        "train-launcher",
        "n9",
        metadata={"labels": {"training-job-role": "launcher"}},
        spec={"containers": [{"name": "et", "image": "img:1"}]},
    )


def row(*pods: Pod, workload: Workload) -> JobRow:
    return row_of(a_job(*pods, workload=workload, kind="TrainingJob"), JobId(7), lambda _: "H100", Access.RW)


@pytest.mark.req("KU-03", "KU-10")
def test_workers_are_counted_beside_what_the_operator_wants() -> None:
    running = a_training_job(status={"phase": "Running", "conditions": [a_condition("Running")]})
    found = row(a_worker(0), a_launcher(), a_worker(1), a_worker(2, running=False), workload=running)
    assert (found.state, found.nodes, found.workers) == (S.RUNNING, 2, (1, 8, 128))
    assert workers_now(found) == "2 (1–128)"
    assert short_of_workers(found) == "runs with 2 of 8 workers"
    # The workers have the cards, and the launcher the command.
    assert (found.card_milli, found.command) == (64_000, "horovodrun python t.py")
    scaled = a_training_job(status={"phase": "Scaling", "targetWorkers": ["train-worker-0", "train-worker-1"]})
    assert row(a_launcher(), a_worker(0), workload=scaled).workers == (1, 2, 128)


@pytest.mark.req("KU-03", "KU-10")
def test_a_job_whose_launcher_is_not_made_yet_is_starting() -> None:
    created = a_training_job(status={"phase": "Created", "conditions": [a_condition("Created")]})
    assert row(a_worker(0), a_worker(1), workload=created).state is S.STARTING
    assert row(a_worker(0), a_worker(1), a_launcher(), workload=created).state is S.RUNNING


@pytest.mark.req("KU-03")
def test_the_launcher_is_rank_0_and_workers_follow_by_their_index() -> None:
    job = a_job(a_worker(10), a_worker(9), a_launcher(), workload=a_training_job(), kind="TrainingJob")
    assert [each.metadata.name for each in job.pods] == ["train-launcher", "train-worker-9", "train-worker-10"]


@pytest.mark.req("KU-10")
def test_bounds_that_are_missing_are_those_of_the_replicas() -> None:
    worker = {"minReplicas": None, "maxReplicas": None}
    assert row(workload=a_training_job(spec={"etReplicaSpecs": {"worker": worker}})).workers is None
    worker = {"minReplicas": None, "maxReplicas": 9}
    assert row(workload=a_training_job(spec={"etReplicaSpecs": {"worker": worker}})).workers == (8, 8, 9)


@pytest.mark.req("KU-10")
def test_a_job_that_lacks_workers_waits_until_its_longest_wait_ends() -> None:
    waits = {"phase": "Suspended", "conditions": [a_condition("Suspended", message="is waiting resource timeout.")]}
    found = row(workload=a_training_job({f"{SUPERVISOR}/max-wait-time": "600"}, status=waits))
    assert (found.state, found.waits_until) == (S.SUSPENDED, ENDED_MS + 600_000)
    without = row(workload=a_training_job(status=waits))
    assert (without.state, without.waits_until) == (S.QUEUED, None)
    assert without.reason == PodsNotCreated("TrainingJob", "is waiting resource timeout")


@pytest.mark.req("KU-10")
@pytest.mark.parametrize("phase", ["Failed", "Suspended"])
def test_a_job_whose_wait_has_ended_waited_too_long(phase: str) -> None:
    ended = {"phase": phase, "conditions": [a_condition(phase)]}
    found = row(workload=a_training_job({f"{SUPERVISOR}/job-status": "timeout"}, status=ended))
    assert (found.state, found.end_cause, found.waits_until) == (S.ERROR, EndCause.BELOW_MIN, None)
    assert end_sentence(found, EndCause.BELOW_MIN) == "had too few workers for longer than it waits"
    running = a_training_job({f"{SUPERVISOR}/job-status": "timeout"}, status={"phase": "Running"})
    assert row(a_launcher(), a_worker(0), workload=running).end_cause is None


@pytest.mark.req("KU-10")
def test_its_page_has_the_bounds_and_that_it_may_use_spot_instances() -> None:
    workload = a_training_job({f"{SUPERVISOR}/spot-instance": "true"})
    job = shown_job(a_job(workload=workload, kind="TrainingJob"), JobId(7))
    assert job.spec.elastic == Elastic(workers=8, min_workers=1, max_workers=128, spot=True)


@pytest.mark.req("KU-03")
def test_an_mpi_job_of_arena_has_workers_and_its_launchers_status() -> None:
    """MPIJobs of kubeflow.org/v1alpha1 have a single template, and no conditions."""
    spec = {"replicas": 4, "template": a_template()}
    base = {"metadata": {"name": "mpi", "namespace": "team-a", "uid": "u", "creationTimestamp": CREATED}, "spec": spec}

    def seen(**status: Any) -> JobRow:
        workload = msgspec.convert({**base, "status": status}, Workload, strict=False)
        return row_of(a_job(workload=workload, kind="MPIJob"), JobId(7), lambda _: "", Access.RW)

    assert (seen().nodes, seen().card_milli, seen().state) == (4, 32_000, S.QUEUED)
    assert seen(launcherStatus="Active").state is S.QUEUED
    assert seen(launcherStatus="Succeeded").state is S.SUCCEEDED
    failed = seen(launcherStatus="Failed", completionTime=ENDED)
    assert (failed.state, failed.ended_at) == (S.ERROR, ENDED_MS)


@pytest.mark.req("KU-03")
@pytest.mark.parametrize(
    ("field", "roles"),
    [
        ("xgbReplicaSpecs", ("Master", "Worker")),
        ("paddleReplicaSpecs", ("Worker",)),
        ("jaxReplicaSpecs", ("Worker",)),
    ],
)
def test_the_other_kinds_of_the_training_operator_have_their_roles(field: str, roles: tuple[str, ...]) -> None:
    spec = {field: {role: {"replicas": 2, "template": a_template()} for role in roles}}
    workload = msgspec.convert(
        {"metadata": {"name": "x", "uid": "u", "creationTimestamp": CREATED}, "spec": spec}, Workload, strict=False
    )
    found = row_of(a_job(workload=workload, kind="X"), JobId(7), lambda _: "", Access.RW)
    assert (found.nodes, found.card_milli) == (2 * len(roles), 16_000 * len(roles))


@pytest.mark.req("KU-10", "KU-01")
@pytest.mark.parametrize(
    ("phases", "words"),
    [
        ((), "elastic-job-supervisor has no pods in arena-system, so that"),
        (("Pending",), "elastic-job-supervisor does not run in arena-system (Pending), so that"),
        (("Pending", "Running"), None),
    ],
)
async def test_a_part_of_the_platform_that_does_not_run_is_named(
    server: FakeApi, tmp_path: Path, phases: tuple[str, ...], words: str | None
) -> None:
    backend = open_fake(server, tmp_path)
    server.kinds["/apis/kai.alibabacloud.com/v1alpha1"] = ("trainingjobs",)
    for number, phase in enumerate(phases):
        metadata = {"name": f"supervisor-{number}", "labels": {"app": "elastic-job-supervisor"}}
        pod = {"kind": "Pod", "metadata": metadata, "spec": {}, "status": {"phase": phase}}
        server.create("/api/v1/namespaces/arena-system/pods", pod)
    trouble = (await backend.overview()).trouble
    assert [each for each in trouble if each.startswith("elastic-job-supervisor")] == [
        each for each in trouble if words and each.startswith(words)
    ]
    assert bool(words) is any("elastic-job-supervisor" in each for each in trouble)
    await backend.close()


@pytest.mark.req("KU-10")
async def test_a_cluster_without_elastic_training_lacks_no_part_of_it(server: FakeApi, tmp_path: Path) -> None:
    backend = open_fake(server, tmp_path)
    assert not any("supervisor" in each for each in (await backend.overview()).trouble)
    await backend.close()
