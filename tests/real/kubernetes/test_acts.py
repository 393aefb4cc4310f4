"""Changes of jobs on a real API server: what its validation accepts, and what its controllers make of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from msgspec.structs import replace

from cockpit.backends.kubernetes.backend import KubernetesBackend
from cockpit.errors import RequestRefused
from cockpit.model.asking import WantedLimit
from cockpit.model.events import ClusterReported
from cockpit.model.ids import JobId, Millis
from cockpit.model.job import JobState
from cockpit.model.spec import Array, JobSpec, Mode, NodeSpec, PriorityWord
from tests.backends.contract import BackendContract
from tests.builders import a_spec
from tests.real.kubernetes.cluster import ADMIN, RealKubernetes
from tests.real.kubernetes.test_backend import LONGEST, cockpit_of, until

pytestmark = [pytest.mark.real, pytest.mark.real_kubernetes]
TASKS = Array((0, 1, 2, 3), at_once=1)
SMALL = (NodeSpec(cpus=1, memory_mib=64),)


@pytest.fixture
async def backend(cluster: RealKubernetes, namespace: str, training_operator: None) -> AsyncIterator[KubernetesBackend]:
    del training_operator
    urgent = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "urgent"},
        "value": 1000,
    }
    cluster.admin.apply(urgent)
    async with cockpit_of(cluster, ADMIN, namespace) as made:
        yield made


@pytest.mark.req("UI-10", "KU-07")
class TestContract(BackendContract):
    """An administrator of the cluster, whose jobs are PyTorchJobs."""

    counts_jobs = counts_factors = False

    def prepared(self, spec: JobSpec) -> JobSpec:
        return replace(spec, name=spec.name.replace(" ", "-"), image="img:1", mode=Mode.PYTORCH)

    def waiting(self, name: str) -> JobSpec:
        # Kubernetes starts no job later; this one asks for more than any node has.
        return replace(self.held(name), specs=(NodeSpec(cpus=9000, memory_mib=64),))


async def reported(backend: KubernetesBackend, job: JobId) -> set[str]:
    """The reasons of what the cluster has reported about the job."""
    return {each.body.reason for each in await backend.events(job=job) if isinstance(each.body, ClusterReported)}


@pytest.mark.req("KU-07", "KU-12")
async def test_a_running_job_gets_more_pods_and_another_limit_and_is_requeued(
    backend: KubernetesBackend, namespace: str
) -> None:
    (job,) = await backend.submit([a_spec("grows", image="img:1", specs=SMALL, time_limit_seconds=600, array=TASKS)])
    await until(backend, "grows", lambda row: row.state is JobState.RUNNING)
    spec = (await backend.job(job)).job.spec
    await backend.edit(job, replace(spec, nodes=3, time_limit_seconds=900))
    grown = await until(backend, "grows", lambda row: row.cpus == 3)
    assert grown.time_limit_seconds == 900
    with pytest.raises(RequestRefused, match="has pods: hold it"):
        await backend.set_priority(job, PriorityWord.NORMAL)
    await backend.requeue(job)
    again = await until(backend, "grows", lambda row: row.state is JobState.RUNNING)
    assert (again.id, again.project) == (job, namespace)
    # The controller writes them behind its changes.
    async with asyncio.timeout(LONGEST):
        while not await reported(backend, job) >= {"SuccessfulCreate", "Suspended", "Resumed"}:  # noqa: ASYNC110 - nothing tells of events
            await asyncio.sleep(0.2)
    spent = await backend.spending([Millis(0), Millis(10**14)])
    assert any(each.project == namespace and each.cpu_ms for each in spent.stretches[0])
    await backend.cancel(job)


@pytest.mark.req("KU-07", "KU-12")
async def test_an_ended_job_is_created_once_more_under_its_number(backend: KubernetesBackend) -> None:
    (job,) = await backend.submit([a_spec("again", image="img:1", specs=SMALL, time_limit_seconds=1)])
    ended = await backend.wait(job, timeout_seconds=60)
    assert ended is not None
    assert ended.state is JobState.EXPIRED
    assert job in {each.row.id for each in await backend.accounting()}
    await backend.requeue(job)
    rows = {row.id: row for row in await backend.jobs(ended=True) if row.name == "again"}
    assert rows.keys() == {job}


@pytest.mark.req("KU-07")
async def test_a_job_keeps_its_pod_template_and_so_its_class(backend: KubernetesBackend) -> None:
    (job,) = await backend.submit([a_spec("fixed", image="img:1", specs=SMALL, hold=True)])
    with pytest.raises(RequestRefused, match="keeps its pod template, and so its PriorityClass: cancel it"):
        await backend.set_priority(job, PriorityWord.URGENT)
    await backend.set_time_limit(job, WantedLimit(300))
    assert (await backend.job(job)).row.time_limit_seconds == 300
    await backend.cancel(job)
