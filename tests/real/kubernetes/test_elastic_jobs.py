"""Elastic TrainingJobs with an operator: submitted, scaled, suspended and resumed as their users."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from cockpit.errors import RequestRefused
from cockpit.model.asking import WantedWorkers
from cockpit.model.job import JobState
from cockpit.model.reasons import Held
from cockpit.model.resilience import Elastic, ScalePhase
from cockpit.model.spec import Mode, NodeSpec
from tests.builders import a_spec
from tests.real.kubernetes.cluster import ALICE
from tests.real.kubernetes.conftest import running_cluster
from tests.real.kubernetes.daemons import wait_until
from tests.real.kubernetes.elastic_operator import DEFINITIONS, GROUP, ElasticOperator
from tests.real.kubernetes.test_backend import cockpit_of, until
from tests.real.kubernetes.test_dialects import grant_custom_kinds
from tools.kubernetes_programs import NODELET, SERVER

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cockpit.backends.kubernetes.backend import KubernetesBackend
    from cockpit.model.ids import JobId
    from cockpit.model.resilience import Scaling
    from tests.real.kubernetes.cluster import RealKubernetes

pytestmark = [pytest.mark.real, pytest.mark.real_kubernetes, pytest.mark.req("KU-10", "KU-07")]
LONGEST = 60.0
TRAIN = a_spec(
    name="train",
    image="horovod:1",
    mode=Mode.HOROVOD,
    nodes=2,
    elastic=Elastic(workers=2, min_workers=1, max_workers=40, spot=True, max_wait_seconds=600),
    specs=(NodeSpec(cpus=1, card_milli=1000),),
)


@pytest.fixture(scope="module")
def elastic_cluster() -> Iterator[RealKubernetes]:
    if not (SERVER.is_built() and NODELET.is_built()):
        pytest.skip("Kubernetes is not built: `make setup-tests` says why (it needs Go)")
    with running_cluster(nodes=2) as made:
        made.admin.apply(*DEFINITIONS)
        grant_custom_kinds(made)
        wait_until("the schema is not published", lambda: made.admin.exists(f"/openapi/v3{GROUP}"))
        yield made


@pytest.fixture
def namespace(elastic_cluster: RealKubernetes) -> Iterator[str]:
    with elastic_cluster.namespace() as name:
        yield name


@pytest.fixture
def operator(elastic_cluster: RealKubernetes, namespace: str) -> Iterator[ElasticOperator]:
    made = ElasticOperator(elastic_cluster, namespace)
    with made.run():
        yield made


async def until_scaling(backend: KubernetesBackend, job: JobId, phase: ScalePhase | None) -> Scaling | None:
    """Wait until the job is shown with a change of its workers in this phase, or with none."""
    async with asyncio.timeout(LONGEST), aclosing(backend.watch_jobs(anything=True)) as watch:
        async for _ in watch:
            scaling = (await backend.job(job)).scaling
            if (scaling.phase if scaling is not None else None) is phase:
                return scaling
    raise AssertionError("a watch never ends")


async def scale(backend: KubernetesBackend, job: JobId, workers: int) -> None:
    await backend.edit(job, WantedWorkers(workers).of((await backend.job(job)).job.spec))


def running(workers: int) -> Any:
    return lambda row: row.state is JobState.RUNNING and row.nodes == workers and row.workers[1] == workers


@pytest.mark.usefixtures("operator")
async def test_a_job_is_scaled_between_its_bounds(elastic_cluster: RealKubernetes, namespace: str) -> None:
    async with cockpit_of(elastic_cluster, ALICE, namespace) as backend:
        (job,) = await backend.submit([TRAIN])
        await until(backend, "train", running(2))
        await scale(backend, job, 4)
        row = await until(backend, "train", running(4))
        assert row.workers == (1, 4, 40)
        await until_scaling(backend, job, None)
        await scale(backend, job, 1)
        await until(backend, "train", running(1))
        await until_scaling(backend, job, None)
        for wrong in (0, 41):
            with pytest.raises(RequestRefused, match=f"{wrong} workers are not between 1 and 40"):
                await scale(backend, job, wrong)
        with pytest.raises(RequestRefused, match="changes nothing"):
            await scale(backend, job, 1)
        # The bounds themselves are fields of the job.
        spec = (await backend.job(job)).job.spec
        assert spec.elastic is not None
        await backend.edit(job, replace(spec, elastic=replace(spec.elastic, max_workers=3)))
        await until(backend, "train", lambda row: row.workers == (1, 1, 3))


@pytest.mark.usefixtures("operator")
async def test_workers_that_find_no_node_are_given_up_and_the_job_says_so(
    elastic_cluster: RealKubernetes, namespace: str
) -> None:
    spec = replace(TRAIN, elastic=replace(TRAIN.elastic, max_wait_seconds=1))
    scalers = f"{GROUP}/namespaces/{namespace}/scaleouts"
    async with cockpit_of(elastic_cluster, ALICE, namespace) as backend:
        (job,) = await backend.submit([spec])
        await until(backend, "train", running(2))
        await scale(backend, job, 30)
        scaling = await until_scaling(backend, job, ScalePhase.RUNNING)
        assert scaling is not None
        assert (scaling.change, scaling.name.split("-")[0]) == (28, "ScaleOut train")
        with pytest.raises(RequestRefused, match="is being changed to 30 workers by ScaleOut train-"):
            await scale(backend, job, 3)
        (made,) = elastic_cluster.admin.get(scalers)["items"]
        assert made["spec"] == {"selector": {"name": "train"}, "timeout": 60, "toAdd": {"count": 28}}
        # A minute would be long for a test.
        elastic_cluster.admin.merge(f"{scalers}/{made['metadata']['name']}", {"spec": {"timeout": 0}})
        failed = await until_scaling(backend, job, ScalePhase.FAILED)
        assert failed is not None
        assert failed.message.endswith("execution timeout")
        await until(backend, "train", running(2))


@pytest.mark.usefixtures("operator")
async def test_a_job_that_is_cancelled_while_it_is_scaled_leaves_nothing(
    elastic_cluster: RealKubernetes, namespace: str
) -> None:
    async with cockpit_of(elastic_cluster, ALICE, namespace) as backend:
        (job,) = await backend.submit([TRAIN])
        await until(backend, "train", running(2))
        await scale(backend, job, 30)
        await until_scaling(backend, job, ScalePhase.RUNNING)
        await backend.cancel(job)
        admin = elastic_cluster.admin
        kinds = (f"{GROUP}/namespaces/{namespace}/scaleouts", f"/api/v1/namespaces/{namespace}/pods")
        wait_until("something is left", lambda: not any(admin.get(each)["items"] for each in kinds))


@pytest.mark.usefixtures("operator")
async def test_a_job_is_suspended_and_resumed_with_the_size_that_it_is_to_have(
    elastic_cluster: RealKubernetes, namespace: str
) -> None:
    pods = f"/api/v1/namespaces/{namespace}/pods"
    async with cockpit_of(elastic_cluster, ALICE, namespace) as backend:
        (job,) = await backend.submit([TRAIN])
        await until(backend, "train", running(2))
        await backend.suspend(job)
        row = await until(backend, "train", lambda row: row.state is JobState.QUEUED)
        # No lack of workers, of which a suspended TrainingJob usually speaks.
        assert (row.reason, row.waits_until) == (Held(ALICE, None), None)
        wait_until("pods are left", lambda: not elastic_cluster.admin.get(pods)["items"])
        await scale(backend, job, 3)
        await backend.resume(job)
        await until(backend, "train", running(3))
        await backend.requeue(job)
        await until(backend, "train", running(3))


@pytest.mark.usefixtures("operator")
async def test_a_job_that_is_submitted_held_starts_when_it_is_released(
    elastic_cluster: RealKubernetes, namespace: str
) -> None:
    async with cockpit_of(elastic_cluster, ALICE, namespace) as backend:
        (job,) = await backend.submit([replace(TRAIN, hold=True)])
        row = await until(backend, "train", lambda row: row.state is JobState.QUEUED)
        assert row.reason == Held(ALICE, None)
        await backend.release(job)
        await until(backend, "train", running(2))


async def test_without_an_operator_a_wish_to_suspend_is_taken_back(
    elastic_cluster: RealKubernetes, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cockpit.backends.kubernetes.training_acts.REACTION_SECONDS", 0.5)
    job = f"{GROUP}/namespaces/{namespace}/trainingjobs/train"
    async with cockpit_of(elastic_cluster, ALICE, namespace) as backend:
        with ElasticOperator(elastic_cluster, namespace).run():
            (number,) = await backend.submit([TRAIN])
            await until(backend, "train", running(2))
        with pytest.raises(RequestRefused, match="operator has not suspended job"):
            await backend.suspend(number)
        notes = elastic_cluster.admin.get(job)["metadata"]["annotations"]
        assert not [each for each in notes if "suspended" in each]


@pytest.mark.usefixtures("operator")
async def test_a_job_that_waits_for_all_its_workers_starts_with_fewer(
    elastic_cluster: RealKubernetes, namespace: str
) -> None:
    many = replace(TRAIN, nodes=30, elastic=replace(TRAIN.elastic, workers=30))
    async with cockpit_of(elastic_cluster, ALICE, namespace) as backend:
        (job,) = await backend.submit([many])
        # Two nodes with eight cards each.
        await until(backend, "train", lambda row: row.nodes == 16)
        with pytest.raises(RequestRefused, match="waits for its 30 workers to run, and gets more only then"):
            await scale(backend, job, 31)
        await scale(backend, job, 10)
        await until(backend, "train", lambda row: row.state is JobState.RUNNING and row.nodes == 16)


async def test_the_secret_that_the_operator_made_first_is_the_jobs(
    elastic_cluster: RealKubernetes, namespace: str, operator: ElasticOperator
) -> None:
    secret = f"/api/v1/namespaces/{namespace}/secrets/train"
    assert operator.makes_secrets
    async with cockpit_of(elastic_cluster, ALICE, namespace) as backend:
        # Whether cockpit or the operator comes first, the job is made, and one of the two Secrets is there.
        (job,) = await backend.submit([TRAIN])
        await until(backend, "train", running(2))
        assert elastic_cluster.admin.get(secret)["metadata"]["ownerReferences"][0]["name"] == "train"
        # Of the next job of this name the Secret is made when the old one is gone.
        await backend.cancel(job)
        await backend.submit([TRAIN])
        await until(backend, "train", running(2))
        wait_until("the secret is gone", lambda: elastic_cluster.admin.exists(secret))


async def test_a_secret_of_somebody_elses_is_neither_used_nor_replaced(
    elastic_cluster: RealKubernetes, namespace: str
) -> None:
    secrets, jobs = f"/api/v1/namespaces/{namespace}/secrets", f"{GROUP}/namespaces/{namespace}/trainingjobs"
    elastic_cluster.admin.create(secrets, {"metadata": {"name": "train"}, "data": {"password": "eA=="}})
    async with cockpit_of(elastic_cluster, ALICE, namespace) as backend:
        with pytest.raises(RequestRefused, match=f"Namespace {namespace} has a Secret train already"):
            await backend.submit([TRAIN])
    assert elastic_cluster.admin.get(f"{secrets}/train")["data"] == {"password": "eA=="}
    assert not elastic_cluster.admin.get(jobs)["items"]
