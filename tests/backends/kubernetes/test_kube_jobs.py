"""States, times and ends of jobs out of their workload and pods."""

from __future__ import annotations

import pytest

from cockpit.backends.kubernetes.mapping.rows import row_of
from cockpit.model.attempt import EndCause
from cockpit.model.ids import JobId
from cockpit.model.job import JobState
from cockpit.model.jobrow import JobRow
from cockpit.model.pod_reasons import PodsNotCreated
from cockpit.model.reasons import Held
from cockpit.model.spec import Access
from tests.backends.kubernetes.objects import (
    CREATED,
    ENDED,
    STARTED,
    a_condition,
    a_job,
    a_pod,
    a_pytorch_job,
    a_running_pod,
    an_ended_pod,
)

S = JobState


def row(*args, **more) -> JobRow:  # type: ignore[no-untyped-def] - as `a_job` has them
    return row_of(a_job(*args, **more), JobId(7), lambda node: "H100" if node else "", Access.RW)


def role(name: str, index: int) -> dict[str, object]:
    labels = {"training.kubeflow.org/replica-type": name, "training.kubeflow.org/replica-index": str(index)}
    return {"metadata": {"labels": labels}}


@pytest.mark.req("KU-03")
def test_a_job_without_pods_is_queued_and_says_who_creates_them() -> None:
    found = row(workload=a_pytorch_job(workers=3))
    assert (found.state, found.reason) == (S.QUEUED, PodsNotCreated("PyTorchJob"))
    # One master and three workers.
    assert (found.nodes, found.cpus, found.memory_mib, found.card_milli) == (4, 32, 4 * 65536, 32_000)
    assert (found.name, found.project, found.account) == ("train", "team-a", "team-a")


@pytest.mark.req("KU-03")
def test_a_gang_is_starting_until_none_of_its_pods_waits_for_a_node() -> None:
    master = a_running_pod("train-master-0", **role("master", 0))
    assert row(master, a_pod("train-worker-0"), workload=a_pytorch_job()).state is S.STARTING
    whole = row(master, a_running_pod("train-worker-0", "n2", **role("worker", 0)), workload=a_pytorch_job())
    assert (whole.state, whole.placed_on, whole.nodes, whole.card_models) == (S.RUNNING, ("n1", "n2"), 2, ("H100",))
    # Its controller's word is enough: a worker that is replaced does not put the job back.
    says = a_pytorch_job(status={"conditions": [a_condition("Running")]})
    assert row(master, a_pod("train-worker-0"), workload=says).state is S.RUNNING


@pytest.mark.req("KU-03")
def test_pods_of_a_batch_job_work_independently_of_each_other() -> None:
    assert row(a_running_pod("a"), a_pod("b"), workload=a_pytorch_job(), kind="Job").state is S.RUNNING


@pytest.mark.req("KU-07")
def test_a_suspended_job_is_held() -> None:
    found = row(workload=a_pytorch_job(spec={"runPolicy": {"suspend": True}}))
    assert (found.state, found.reason) == (S.QUEUED, Held("its suspend field", None))
    annotated = a_pytorch_job(
        spec={"runPolicy": {"suspend": True}}, metadata={"annotations": {"cockpit/submitted-by": "alice"}}
    )
    assert (row(workload=annotated).reason, row(workload=annotated).user) == (Held("alice", None), "alice")


@pytest.mark.req("KU-03")
@pytest.mark.parametrize(
    ("kind", "more", "state", "cause"),
    [
        ("Succeeded", {}, S.SUCCEEDED, EndCause.EXIT),
        ("Complete", {}, S.SUCCEEDED, EndCause.EXIT),
        ("Failed", {"reason": "BackoffLimitExceeded"}, S.ERROR, EndCause.EXIT),
        ("Failed", {"reason": "DeadlineExceeded"}, S.EXPIRED, EndCause.TIME_LIMIT),
        ("Failed", {"message": "it was active longer than specified deadline"}, S.EXPIRED, EndCause.TIME_LIMIT),
    ],
)
def test_a_workloads_condition_says_how_it_ended(
    kind: str, more: dict[str, str], state: JobState, cause: EndCause
) -> None:
    workload = a_pytorch_job(status={"conditions": [a_condition("Running", true=False), a_condition(kind, **more)]})
    found = row(an_ended_pod("a", code=0 if state is S.SUCCEEDED else 3), workload=workload)
    assert (found.state, found.end_cause, found.reason) == (state, cause, None)
    assert found.exit_code == (0 if state is S.SUCCEEDED else 3)


@pytest.mark.req("KU-03")
def test_the_replica_that_failed_first_gives_the_exit_code() -> None:
    later = {"terminated": {"exitCode": 9, "finishedAt": "2026-03-01T11:00:00Z"}}
    workload = a_pytorch_job(status={"conditions": [a_condition("Failed")]})
    killed = an_ended_pod("b", code=9, status={"containerStatuses": [{"name": "main", "state": later}]})
    found = row(killed, an_ended_pod("c", code=3), an_ended_pod("d"), workload=workload)
    assert (found.exit_code, found.failed) == (3, (1, 3))


@pytest.mark.req("KU-08")
def test_a_kill_for_lack_of_memory_is_shown() -> None:
    end = {"terminated": {"exitCode": 137, "reason": "OOMKilled", "finishedAt": ENDED}}
    pod = an_ended_pod(code=137, status={"containerStatuses": [{"name": "main", "state": end}]})
    assert (row(pod).oom, row(pod).exit_code, row(pod).state) == (True, 137, S.ERROR)


@pytest.mark.req("KU-03")
def test_a_bare_pod_ends_with_its_phase() -> None:
    assert row(an_ended_pod()).state is S.SUCCEEDED
    late = a_pod(status={"phase": "Failed", "reason": "DeadlineExceeded"})
    assert (row(late).state, row(late).ended_at) == (S.EXPIRED, row(late).submitted_at)
    evicted = a_pod(status={"phase": "Failed", "reason": "Evicted"})
    assert (row(evicted).state, row(evicted).end_cause) == (S.ERROR, EndCause.LOST)


@pytest.mark.req("KU-03")
def test_times_are_those_of_the_containers() -> None:
    found = row(an_ended_pod(code=1))
    assert [_clock(at) for at in (found.submitted_at, found.started_at, found.ended_at)] == [CREATED, STARTED, ENDED]


@pytest.mark.req("KU-03")
def test_ranks_follow_roles_and_indices() -> None:
    pods = [
        a_running_pod("w10", "n3", **role("worker", 10)),
        a_running_pod("w2", "n2", **role("worker", 2)),
        a_running_pod("m", "n1", **role("master", 0)),
    ]
    assert [pod.metadata.name for pod in a_job(*pods, workload=a_pytorch_job()).pods] == ["m", "w2", "w10"]


@pytest.mark.req("KU-04")
def test_the_queue_is_named_by_a_label_of_the_job_or_of_its_pods() -> None:
    labelled = a_pytorch_job(metadata={"labels": {"kueue.x-k8s.io/queue-name": "team-a-queue"}})
    assert row(workload=labelled).partitions == ("team-a-queue",)
    assert row(workload=a_pytorch_job()).partitions == ()


@pytest.mark.req("KU-08")
def test_the_time_limit_of_a_job_that_may_be_held_is_that_of_its_command() -> None:
    policy = {"runPolicy": {"activeDeadlineSeconds": 1000}}
    assert row(workload=a_pytorch_job(spec=policy)).time_limit_seconds == 1000
    for hold, limit in (("300", 580), ("no number", 1000), ("9" * 20, 1000)):
        annotations = {"metadata": {"annotations": {"cockpit/hold-seconds": hold}}}
        assert row(workload=a_pytorch_job(spec=policy, **annotations)).time_limit_seconds == limit


@pytest.mark.req("KU-10")
def test_an_elastic_job_has_bounds() -> None:
    elastic = a_pytorch_job(workers=3, spec={"elasticPolicy": {"minReplicas": 1, "maxReplicas": 4}})
    assert row(workload=elastic).workers == (1, 3, 4)


def _clock(at: int | None) -> str:
    from datetime import UTC, datetime

    assert at is not None
    return datetime.fromtimestamp(at / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
