"""Changes of TrainingJobs by users who lack a right, and on clusters that lack a kind."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from cockpit.errors import RequestRefused
from cockpit.model.asking import WantedWorkers
from cockpit.model.job import JobState
from cockpit.model.refusal import RefusalKind
from cockpit.model.resilience import Elastic, JobRestart, WorkerRestart
from cockpit.model.spec import Mode, NodeSpec
from tests.builders import a_spec
from tests.doubles.kubernetes_api import Reply

if TYPE_CHECKING:
    from cockpit.backends.kubernetes.backend import KubernetesBackend
    from cockpit.model.ids import JobId
    from tests.doubles.kubernetes_api import FakeApi

pytestmark = pytest.mark.req("KU-10", "KU-07")
JOBS = "/apis/kai.alibabacloud.com/v1alpha1/namespaces/team-a/trainingjobs"
LONGEST = 20.0
SECRETS = "/api/v1/namespaces/team-a/secrets"
TRAIN = a_spec(
    name="train", image="img:1", mode=Mode.HOROVOD, nodes=2, elastic=Elastic(workers=2, min_workers=1, max_workers=4)
)


@pytest.fixture
def backend(backend: KubernetesBackend, server: FakeApi) -> KubernetesBackend:
    server.kinds["/apis/kai.alibabacloud.com/v1alpha1"] = ("trainingjobs", "scaleins", "scaleouts")
    return backend


def refuses(server: FakeApi, request: str, code: int, message: str) -> None:
    body = {"kind": "Status", "status": "Failure", "message": message, "code": code}
    server.answer_next(request, Reply(status=code, body=json.dumps(body).encode()))


async def running(backend: KubernetesBackend, server: FakeApi) -> JobId:
    """Submit a job, and have it run as its operator says."""
    (job,) = await backend.submit([TRAIN])
    workers = ["train-worker-0", "train-worker-1"]
    runs = {"phase": "Running", "targetWorkers": workers, "conditions": [{"type": "Running", "status": "True"}]}
    made = server.change(f"{JOBS}/train", {"status": runs})
    owner = {"apiVersion": "kai.alibabacloud.com/v1alpha1", "kind": "TrainingJob", "controller": True}
    owners = [{**owner, "name": "train", "uid": made["metadata"]["uid"]}]
    for name in workers:
        metadata = {"name": name, "labels": {"training-job-role": "worker"}, "ownerReferences": owners}
        pod = {"kind": "Pod", "metadata": metadata, "spec": {"nodeName": "n1"}, "status": {"phase": "Running"}}
        server.create("/api/v1/namespaces/team-a/pods", pod)
    async with asyncio.timeout(LONGEST), aclosing(backend.watch_jobs(anything=True)) as watch:
        async for _ in watch:
            if [row.state for row in await backend.jobs()] == [JobState.RUNNING]:
                return job
    raise AssertionError("a watch never ends")


async def test_without_the_right_to_make_secrets_no_job_is_made(backend: KubernetesBackend, server: FakeApi) -> None:
    refuses(server, f"POST {SECRETS}", 403, 'secrets is forbidden: User "alice" cannot create resource "secrets"')
    with pytest.raises(RequestRefused, match='cannot create resource "secrets"') as refused:
        await backend.submit([TRAIN])
    assert refused.value.refusal.kind is RefusalKind.DENIED
    assert server.find(f"{JOBS}/train") is None


async def test_a_secret_that_the_user_may_not_read_is_not_taken_for_the_jobs(
    backend: KubernetesBackend, server: FakeApi
) -> None:
    server.create(SECRETS, {"kind": "Secret", "metadata": {"name": "train"}})
    refuses(server, f"POST {SECRETS}", 409, 'secrets "train" already exists')
    refuses(server, f"GET {SECRETS}/train", 403, "secrets is forbidden")
    with pytest.raises(RequestRefused, match="Namespace team-a has a Secret train already"):
        await backend.submit([TRAIN])
    assert server.find(f"{JOBS}/train") is None


async def test_a_job_that_could_not_be_resumed_is_not_suspended(backend: KubernetesBackend, server: FakeApi) -> None:
    job = await running(backend, server)
    refuses(server, f"PATCH {JOBS}/train/status", 403, "trainingjobs/status is forbidden")
    with pytest.raises(RequestRefused, match=r"could not be resumed: .*trainingjobs/status is forbidden") as refused:
        await backend.suspend(job)
    assert refused.value.refusal.kind is RefusalKind.DENIED
    notes = server.object(f"{JOBS}/train")["metadata"]["annotations"]
    assert not [each for each in notes if "suspended" in each]


async def test_a_cluster_without_scale_outs_says_so(backend: KubernetesBackend, server: FakeApi) -> None:
    job = await running(backend, server)
    refuses(
        server,
        "POST /apis/kai.alibabacloud.com/v1alpha1/namespaces/team-a/scaleouts",
        404,
        "the server could not find the requested resource",
    )
    spec = (await backend.job(job)).job.spec
    with pytest.raises(RequestRefused, match=r"does not serve scaleouts\.kai\.alibabacloud\.com, by which the workers"):
        await backend.edit(job, WantedWorkers(1, beside=True).of(spec))


@pytest.mark.req("UI-41")
@pytest.mark.parametrize(
    "command",
    ["horovodrun -np $((${workers}*${gpus})) python t.py", "bash -c 'horovodrun python $(hostname).py \"$x\"'"],
)
async def test_a_copy_of_a_job_asks_for_the_same(backend: KubernetesBackend, server: FakeApi, command: str) -> None:
    elastic = Elastic(
        workers=2,
        min_workers=1,
        max_workers=4,
        spot=True,
        max_wait_seconds=300,
        job_restart_policy=JobRestart.ON_FAILURE,
        worker_restart_policy=WorkerRestart.ALWAYS,
        backoff_limit=5,
        launcher_selector={"role": "head"},
    )
    server.create(
        "/api/v1/namespaces/arena-system/pods",
        {
            "kind": "Pod",
            "metadata": {"name": "supervisor-0", "labels": {"app": "elastic-job-supervisor"}},
            "spec": {},
            "status": {"phase": "Running"},
        },
    )
    specs = (NodeSpec(cpus=4, memory_mib=16384, card_milli=1000),)
    (job,) = await backend.submit([replace(TRAIN, elastic=elastic, command=command, specs=specs)])
    await backend.submit([replace((await backend.job(job)).job.spec, name="copy")])
    first, second = server.object(f"{JOBS}/train"), server.object(f"{JOBS}/copy")
    shell = first["spec"]["etReplicaSpecs"]["launcher"]["template"]["spec"]["containers"][0].pop("command")
    again = second["spec"]["etReplicaSpecs"]["launcher"]["template"]["spec"]["containers"][0].pop("command")
    assert first["spec"] == second["spec"]
    assert first["metadata"]["annotations"] == second["metadata"]["annotations"]
    assert again == shell
