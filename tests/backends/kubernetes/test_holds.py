"""Which replica of a job failed first, which is held, and what that costs."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any

import pytest

from cockpit.backends.kubernetes.backend import KubernetesBackend
from cockpit.backends.kubernetes.failures import Failure, first_failure
from cockpit.backends.kubernetes.hold_wrapper import Hold, without_announcement, wrap
from cockpit.errors import RequestRefused
from cockpit.formats.foreign.pytorchjob import write_pytorch_job
from cockpit.model.ids import Millis
from cockpit.model.job import JobState
from cockpit.model.spec import DebugHold, HoldReplicas, Mode
from cockpit.present.job.hold_words import cost_words, uncovered_words
from cockpit.present.states import end_sentence
from tests.backends.kubernetes.objects import a_job, a_pytorch_job, a_running_pod, a_template, an_ended_pod
from tests.builders import a_spec
from tests.doubles.kubernetes_api import FakeApi, Reply

JOBS = "/apis/kubeflow.org/v1/namespaces/team-a/pytorchjobs"
PODS = "/api/v1/namespaces/team-a/pods"
AT = 1_772_359_500
"""The moment at which ended pods end, in seconds."""


def announced(code: int, at: int) -> bytes:
    return f"loss nan\ncockpit:held rc={code} at={at} until={at + 600} folder=/tmp/x\n".encode()


def replica(server: FakeApi, job: dict[str, Any], index: int, **status: Any) -> None:
    labels = {"training.kubeflow.org/replica-type": "worker", "training.kubeflow.org/replica-index": str(index)}
    owner = {"uid": job["metadata"]["uid"], "kind": job["kind"], "name": "train", "controller": True}
    template = a_template()
    template["spec"]["nodeName"] = f"n{index}"
    metadata = {"name": f"train-worker-{index}", "labels": labels, "ownerReferences": [owner]}
    server.create(PODS, {"kind": "Pod", "metadata": metadata, **template, "status": {"phase": "Running", **status}})


def a_job_of(server: FakeApi, replicas: int, **notes: str) -> dict[str, Any]:
    spec = {"pytorchReplicaSpecs": {"Worker": {"replicas": replicas, "template": a_template()}}}
    annotations = {"cockpit/hold-seconds": "600", "cockpit/submitted-by": "alice", **notes}
    metadata = {"name": "train", "annotations": annotations}
    return server.create(JOBS, {"kind": "PyTorchJob", "metadata": metadata, "spec": spec})


def a_log(server: FakeApi, index: int, text: bytes) -> None:
    """Answer the next look at a replica's log, and the next reader of its last lines."""
    path = f"GET {PODS}/train-worker-{index}/log?container=main&tailLines="
    server.answer_next(f"{path}1&", Reply(body=text.splitlines(keepends=True)[-1] if text else b""))
    server.answer_next(f"{path}13", Reply(body=text))


def holds_of(**by_pod: int) -> Any:
    return lambda pod: (
        Hold(3, Millis(1000 * by_pod[name]), Millis(0), "") if (name := pod.metadata.name[-1:]) in by_pod else None
    )


@pytest.mark.req("KU-08")
def test_the_first_failure_counts_whether_its_replica_is_held_or_has_ended() -> None:
    pods = [a_running_pod("p-a"), an_ended_pod("p-b", code=137), a_running_pod("p-c")]
    job = a_job(*pods, workload=a_pytorch_job(2))
    assert first_failure(job, holds_of(a=AT + 5, c=AT + 1)) == Failure(Millis(1000 * AT), 1, 137)
    assert first_failure(job, holds_of(a=AT - 5)) == Failure(Millis(1000 * (AT - 5)), 0, 3)
    # The container of one that was held ends when its hold does.
    assert first_failure(job, holds_of(b=AT - 9, a=AT - 5)) == Failure(Millis(1000 * (AT - 9)), 1, 3)
    # Of equal moments the lowest rank.
    assert first_failure(job, holds_of(c=AT, a=AT)) == Failure(Millis(1000 * AT), 0, 3)
    assert first_failure(a_job(a_running_pod(), workload=a_pytorch_job()), holds_of()) is None


@pytest.mark.req("KU-08")
async def test_the_replica_that_failed_first_is_named_with_its_last_line(
    backend: KubernetesBackend, server: FakeApi
) -> None:
    job = a_job_of(server, 3)
    for index, text in enumerate((announced(1, AT + 9), b"epoch 3\n", announced(7, AT))):
        replica(server, job, index)
        a_log(server, index, text)
    (row,) = await backend.jobs(ended=True)
    assert (row.state, row.exit_code, row.failed, row.held_until) == (JobState.ERROR, 7, (2, 7), 1000 * (AT + 600))
    assert row.end_cause is not None
    assert end_sentence(row, row.end_cause) == "exit 7; replica 2 failed"
    detail = await backend.job(row.id)
    # The wrapper's own line is no output of the command.
    assert detail.log_tail == "loss nan\n"
    with pytest.raises(RequestRefused, match="Replica 2 failed first, with exit code 7; its last line is: loss nan"):
        await backend.explain(row.id)
    words = cost_words(detail.job, Millis(1000 * AT))
    assert words == "24 cards and 24 CPUs stay its own and are billed: 4.0 card-hours until then"


@pytest.mark.req("KU-08")
async def test_a_replica_that_ran_out_of_memory_is_not_held(backend: KubernetesBackend, server: FakeApi) -> None:
    job = a_job_of(server, 2)
    end = {
        "exitCode": 137,
        "reason": "OOMKilled",
        "startedAt": "2026-03-01T09:05:00Z",
        "finishedAt": "2026-03-01T10:05:00Z",
    }
    replica(server, job, 0)
    replica(server, job, 1, phase="Failed", containerStatuses=[{"name": "main", "state": {"terminated": end}}])
    a_log(server, 0, announced(1, AT + 30))
    (row,) = await backend.jobs(ended=True)
    assert (row.failed, row.exit_code, row.oom) == ((1, 137), 137, True)
    detail = await backend.job(row.id)
    assert uncovered_words(detail.job) == "The replica that failed first is not held: it ran out of memory."
    server.change(f"{PODS}/train-worker-0", {"status": {"phase": "Failed"}})
    server.change(f"{JOBS}/train", {"status": {"conditions": [{"type": "Failed", "status": "True"}]}})
    async with asyncio.timeout(20), aclosing(backend.watch_jobs(anything=True)) as watch:
        async for _ in watch:
            if (await backend.jobs(ended=True))[0].held_until is None:
                break
    said = "No container is held: running out of memory ended the script that would have held it."
    assert uncovered_words((await backend.job(row.id)).job) == said


@pytest.mark.req("KU-08")
@pytest.mark.parametrize(
    ("notes", "ends"),
    [({}, True), ({"cockpit/hold-replicas": "all"}, False), ({"cockpit/submitted-by": "bob"}, False)],
)
async def test_the_owners_cockpit_ends_the_holds_of_those_that_failed_later(
    backend: KubernetesBackend, server: FakeApi, notes: dict[str, str], *, ends: bool
) -> None:
    job = a_job_of(server, 2, **notes)
    for index, at in enumerate((AT + 9, AT)):
        replica(server, job, index)
        a_log(server, index, announced(1, at))
    await backend.jobs(ended=True)
    ended = [each.split("?")[0] for each in server.requests if "/exec?" in each]
    assert set(ended) == ({f"GET {PODS}/train-worker-0/exec"} if ends else set())


@pytest.mark.req("KU-08")
@pytest.mark.parametrize("which", HoldReplicas)
def test_a_job_file_says_whether_every_replica_is_held(which: HoldReplicas) -> None:
    hold = DebugHold(replicas=which)
    spec = a_spec("a", image="i", mode=Mode.PYTORCH, nodes=2, terminal=True, debug_hold=hold)
    manifest = write_pytorch_job(spec)
    wrap(manifest, spec)
    notes = manifest["metadata"]["annotations"]
    assert notes.get("cockpit/hold-replicas") == ("all" if which is HoldReplicas.ALL else None)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (announced(3, AT), b"loss nan\n"),
        (b"cockpit:held rc=3 at=1 until=2 folder=\n", b""),
        (b"one\ntwo", b"one\ntwo"),
        (b"", b""),
    ],
)
def test_the_announcement_of_a_hold_is_no_output(text: bytes, left: bytes) -> None:
    assert without_announcement(text) == left
