"""Jobs that are put into queues of KubeQueue, held there, suspended and resumed, over the tests' own API server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cockpit.errors import RequestRefused
from cockpit.model.job import JobState
from cockpit.model.pod_reasons import PodsNotCreated, QueueWaits
from cockpit.model.reasons import Held
from cockpit.model.spec import Mode, Suspension
from tests.backends.kubernetes.conftest import open_fake
from tests.backends.kubernetes.kube_queue_objects import (
    ENQUEUED,
    TREES,
    UNITS,
    a_tree,
    a_unit,
    jobs_of,
    queue_job,
    run_job,
    serve_kube_queue,
)
from tests.backends.kubernetes.test_backend import a_job
from tests.backends.kubernetes.test_kube_queue import rows, seen
from tests.builders import a_spec
from tests.doubles.kubernetes_api import Reply

if TYPE_CHECKING:
    from pathlib import Path

    from cockpit.backends.kubernetes.backend import KubernetesBackend
    from tests.doubles.kubernetes_api import FakeApi

JOBS = jobs_of("team-a")
SUSPEND = "scheduling.x-k8s.io/suspend"
UNKNOWN = 'strict decoding error: unknown field "spec.{}"'
UNIT = f"{UNITS.format('team-a')}/train-py-qu"


@pytest.fixture
def backend(backend: KubernetesBackend, server: FakeApi) -> KubernetesBackend:
    serve_kube_queue(server)
    return backend


@pytest.mark.req("KU-04", "KU-07", "FL-07")
async def test_a_job_of_a_namespace_with_a_queue_is_submitted_into_it(
    backend: KubernetesBackend, server: FakeApi
) -> None:
    server.create(TREES, a_tree())
    await backend.submit([a_spec("train", image="img:1", mode=Mode.PYTORCH, nodes=2), a_spec("one", image="img:1")])
    made = server.object(f"{JOBS}/train")
    assert made["metadata"]["annotations"] == {"cockpit/submitted-by": "alice", SUSPEND: "true"}
    assert made["spec"]["runPolicy"]["suspend"] is True
    assert server.object("/apis/batch/v1/namespaces/team-a/jobs/one")["spec"]["suspend"] is True
    await seen(backend, "train", QueueWaits("KubeQueue", "root/a"))


@pytest.mark.req("KU-04", "KU-07")
async def test_a_job_of_another_namespace_is_queued_only_if_its_file_says_so(
    backend: KubernetesBackend, server: FakeApi
) -> None:
    plain = a_spec("plain", image="img:1", mode=Mode.PYTORCH, nodes=2)
    queued = a_spec("queued", image="img:1", mode=Mode.PYTORCH, nodes=2, suspension=Suspension(scheduling=True))
    await backend.submit([plain, queued])
    assert SUSPEND not in server.object(f"{JOBS}/plain")["metadata"]["annotations"]
    assert server.object(f"{JOBS}/queued")["metadata"]["annotations"][SUSPEND] == "true"


@pytest.mark.req("FL-07")
async def test_a_job_that_only_a_queue_may_start_is_refused_without_kube_queue(server: FakeApi, tmp_path: Path) -> None:
    backend = open_fake(server, tmp_path)
    spec = a_spec("queued", image="img:1", mode=Mode.PYTORCH, nodes=2, suspension=Suspension(scheduling=True))
    with pytest.raises(RequestRefused, match=r"this cluster does not serve queueunits\.scheduling\.x-k8s\.io"):
        await backend.submit([spec])
    await backend.close()


@pytest.mark.req("KU-04", "KU-07")
async def test_a_kind_without_a_suspend_field_is_queued_by_the_annotation_alone(
    backend: KubernetesBackend, server: FakeApi
) -> None:
    server.create(TREES, a_tree())
    server.answer_next(f"POST {JOBS}", Reply.failure(400, "BadRequest", UNKNOWN.format("runPolicy.suspend")))
    await backend.submit([a_spec("train", image="img:1", mode=Mode.PYTORCH, nodes=2)])
    made = server.object(f"{JOBS}/train")
    assert "suspend" not in made["spec"]["runPolicy"]
    assert made["metadata"]["annotations"][SUSPEND] == "true"
    # Any other refusal stays one.
    server.answer_next(f"POST {JOBS}", Reply.failure(400, "BadRequest", UNKNOWN.format("runPolicy.other")))
    with pytest.raises(RequestRefused, match=r"runPolicy\.other"):
        await backend.submit([a_spec("more", image="img:1", mode=Mode.PYTORCH, nodes=2)])


@pytest.mark.req("KU-04", "KU-07", "KU-12")
async def test_a_running_job_is_suspended_and_resumed_by_the_annotation(
    backend: KubernetesBackend, server: FakeApi
) -> None:
    run_job(server, "train", "team-a")
    server.change(f"{JOBS}/train", {"metadata": {"annotations": {"theirs": "stays"}}})
    job = (await rows(backend))["train"].id
    await backend.suspend(job)
    suspended = server.object(f"{JOBS}/train")
    assert suspended["metadata"]["annotations"] == {"theirs": "stays", SUSPEND: "true"}
    assert suspended["spec"]["runPolicy"] == {"suspend": True}
    # Its operator deletes the pods; its turn in the queue is over, so a user resumes it.
    server.remove("/api/v1/namespaces/team-a/pods/train-master-0")
    await seen(backend, "train", Held("its suspend annotation", None))
    await backend.resume(job)
    await seen(backend, "train", PodsNotCreated("PyTorchJob"))
    assert server.object(f"{JOBS}/train")["metadata"]["annotations"] == {"theirs": "stays", SUSPEND: "false"}
    assert server.object(f"{JOBS}/train")["spec"]["runPolicy"] == {"suspend": False}


@pytest.mark.req("KU-04", "KU-07")
async def test_a_job_without_a_run_policy_is_suspended_by_the_annotation_alone(
    backend: KubernetesBackend, server: FakeApi
) -> None:
    for name in ("train", "older"):
        run_job(server, name, "team-a")
    server.change(f"{JOBS}/train", {"spec": {"runPolicy": None}})
    # An API server's answer to a patch with an unknown field repeats the whole object first.
    words = f'"" is invalid: patch: Invalid value: "{"x" * 2000}": {UNKNOWN.format("runPolicy.suspend")}'
    server.answer_next(f"PATCH {JOBS}/older", Reply.failure(422, "Invalid", words))
    job = {name: row.id for name, row in (await rows(backend)).items()}
    for name in ("train", "older"):
        await backend.suspend(job[name])
        suspended = server.object(f"{JOBS}/{name}")
        assert suspended["metadata"]["annotations"] == {SUSPEND: "true"}
        assert not suspended["spec"].get("runPolicy")


@pytest.mark.req("KU-04", "KU-07")
async def test_a_waiting_job_is_held_and_released_in_its_queue(backend: KubernetesBackend, server: FakeApi) -> None:
    queue_job(server, "train", spec={"queue": "research"})
    queue_job(server, "next", spec={"queue": "research", "priority": -1})
    job = {name: row.id for name, row in (await rows(backend)).items()}
    with pytest.raises(RequestRefused, match="waits in queue research; KubeQueue starts it when its turn has come"):
        await backend.release(job["train"])
    with pytest.raises(RequestRefused, match="suspend changes nothing"):
        await backend.suspend(job["train"])
    await backend.hold(job["train"])
    row = await seen(backend, "train", Held("its queue unit", None))
    assert row.state is JobState.QUEUED
    assert server.object(UNIT)["spec"]["active"] is False
    # The annotation stays: without it the job would start.
    assert server.object(f"{JOBS}/train")["metadata"]["annotations"] == {SUSPEND: "true"}
    outlook = await backend.explain(job["next"])
    assert outlook.explanation is not None
    assert outlook.explanation.position == 1
    await backend.release(job["train"])
    await seen(backend, "train", QueueWaits("KubeQueue", "research", "Enqueued", ENQUEUED))
    assert server.object(UNIT)["spec"]["active"] is True


@pytest.mark.req("KU-04", "KU-07")
async def test_a_kube_queue_that_cannot_hold_says_what_to_do(backend: KubernetesBackend, server: FakeApi) -> None:
    queue_job(server, "train")
    job = (await rows(backend))["train"].id
    server.answer_next(f"PATCH {UNIT}", Reply.failure(400, "BadRequest", UNKNOWN.format("active")))
    with pytest.raises(RequestRefused, match=r"cannot hold job .* in its queue.*Cancel the job, or lower"):
        await backend.hold(job)
    server.create(JOBS, a_job("new", metadata={"annotations": {SUSPEND: "true"}}))
    await seen(backend, "new", QueueWaits("KubeQueue", "team-a"))
    with pytest.raises(RequestRefused, match=r"has not made the queue unit of job .* yet"):
        await backend.hold((await rows(backend))["new"].id)
    server.create(UNITS.format("team-a"), a_unit("new"))
    await seen(backend, "new", QueueWaits("KubeQueue", "team-a", "Enqueued", ENQUEUED))
    await backend.hold((await rows(backend))["new"].id)
