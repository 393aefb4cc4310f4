"""What of the platform for elastic jobs is missing: its version, its job supervisor, its operator."""

from __future__ import annotations

import base64
import gzip
import json
from typing import TYPE_CHECKING, Any

import pytest

from cockpit.backends.kubernetes.mapping.elastic_training import ArenaRelease, release_of
from cockpit.errors import RequestRefused
from cockpit.model.pod_reasons import PodsNotCreated
from cockpit.model.refusal import RefusalKind
from cockpit.model.resilience import Elastic, JobRestart
from cockpit.model.spec import Mode, NodeSpec
from tests.backends.kubernetes.conftest import answers
from tests.builders import a_spec

if TYPE_CHECKING:
    from cockpit.backends.kubernetes.backend import KubernetesBackend
    from tests.doubles.kubernetes_api import FakeApi

pytestmark = pytest.mark.req("KU-10", "KU-01")
SPOT = a_spec(
    name="train",
    image="img:1",
    mode=Mode.HOROVOD,
    nodes=2,
    elastic=Elastic(workers=2, min_workers=1, max_workers=4, spot=True),
)
JOBS = "/apis/kai.alibabacloud.com/v1alpha1/namespaces/team-a/trainingjobs"


def release(version: str, chart: str = "ack-arena", **config: Any) -> dict[str, Any]:
    """Return Helm's Secret of an installation."""
    content = {"chart": {"metadata": {"name": chart, "version": version}}, "config": config}
    packed = base64.b64encode(gzip.compress(json.dumps(content).encode()))
    labels = {"owner": "helm", "status": "deployed", "name": chart}
    metadata = {"name": f"sh.helm.release.v1.{chart}.v1", "labels": labels}
    return {"kind": "Secret", "metadata": metadata, "data": {"release": base64.b64encode(packed).decode()}}


def supervisor(phase: str, app: str = "elastic-job-supervisor") -> dict[str, Any]:
    metadata = {"name": f"{app}-0", "labels": {"app": app}}
    return {"kind": "Pod", "metadata": metadata, "spec": {}, "status": {"phase": phase}}


@pytest.fixture
def backend(backend: KubernetesBackend, server: FakeApi) -> KubernetesBackend:
    server.kinds["/apis/kai.alibabacloud.com/v1alpha1"] = ("trainingjobs", "scaleins", "scaleouts")
    return backend


@pytest.mark.parametrize(
    ("installed", "phase", "words"),
    [
        (release("0.12.9"), "Running", "ack-arena 0.12.9 is too old for elastic-job-supervisor"),
        (release("0.15.5", "arena-artifacts"), None, "elastic-job-supervisor has no pods in arena-system"),
        (
            release("0.13.1", **{"elastic-job-supervisor": {"enabled": False}}),
            None,
            "elastic-job-supervisor is switched off in the values of ack-arena 0.13.1",
        ),
        (release("0.13.1"), "Pending", "elastic-job-supervisor does not run in arena-system (Pending)"),
        (release("0.13.1"), "Running", ""),
        # Helm's Secrets are for administrators: what runs is known from the pods alone.
        (None, "Running", ""),
        (release("1.0.0", "another-chart"), "Running", ""),
    ],
)
async def test_the_missing_part_is_named_and_a_spot_job_needs_it(
    backend: KubernetesBackend, server: FakeApi, installed: dict[str, Any] | None, phase: str | None, words: str
) -> None:
    if installed is not None:
        server.create("/api/v1/namespaces/arena-system/secrets", installed)
    if phase is not None:
        server.create("/api/v1/namespaces/arena-system/pods", supervisor(phase))
    trouble = [each for each in (await backend.overview()).trouble if "elastic jobs are not warned" in each]
    assert len(trouble) == bool(words)
    if not words:
        await backend.submit([SPOT])
        return
    assert trouble[0].startswith(words)
    with pytest.raises(RequestRefused) as refused:
        await backend.submit([SPOT])
    assert refused.value.refusal.kind is RefusalKind.UNAVAILABLE
    assert refused.value.refusal.message.startswith(f"jobs[0].elastic.spot: {words}")
    assert server.find(f"{JOBS}/train") is None


async def test_a_job_that_needs_no_warning_is_taken_without_the_supervisor(
    backend: KubernetesBackend, server: FakeApi
) -> None:
    calm = a_spec(name="calm", image="img:1", mode=Mode.HOROVOD, nodes=1, elastic=Elastic(workers=1, max_workers=2))
    await backend.submit([calm])
    assert server.find(f"{JOBS}/calm") is not None


@pytest.mark.parametrize(
    ("phase", "words"),
    [
        (None, "et-operator has no pods in arena-system or kube-ai"),
        ("Pending", "et-operator does not run (Pending)"),
        ("Running", ""),
    ],
)
async def test_a_job_that_waits_for_its_operator_says_where_that_does_not_run(
    backend: KubernetesBackend, server: FakeApi, phase: str | None, words: str
) -> None:
    calm = a_spec(name="calm", image="img:1", mode=Mode.HOROVOD, nodes=1, elastic=Elastic(workers=1, max_workers=2))
    (job,) = await backend.submit([calm])
    if phase is not None:
        server.create("/api/v1/namespaces/kube-ai/pods", supervisor(phase, "et-operator"))
    detail = await backend.job(job)
    assert detail.explanation is not None
    assert detail.explanation.reason == PodsNotCreated("TrainingJob", words)


async def test_a_job_without_its_least_number_of_workers_says_that_nothing_resumes_it(
    backend: KubernetesBackend, server: FakeApi
) -> None:
    calm = a_spec(name="calm", image="img:1", mode=Mode.HOROVOD, nodes=1, elastic=Elastic(workers=1, max_workers=2))
    (job,) = await backend.submit([calm])
    short = {"type": "Suspended", "status": "True", "message": "TrainingJob calm is waiting resource timeout."}
    server.change(f"{JOBS}/calm", {"status": {"phase": "Suspended", "conditions": [short]}})
    detail = await backend.job(job)
    while detail.explanation is None or detail.explanation.reason == PodsNotCreated(
        "TrainingJob", "et-operator has no pods in arena-system or kube-ai"
    ):
        detail = await backend.job(job)
    assert detail.explanation.reason == PodsNotCreated(
        "TrainingJob",
        "TrainingJob calm is waiting resource timeout; nothing resumes it: elastic-job-supervisor has no pods in "
        "arena-system",
    )


def test_a_release_that_cannot_be_read_is_none() -> None:
    wrong = [{}, {"data": {"release": "?"}}, {"data": {"release": base64.b64encode(b"eA==").decode()}}]
    assert release_of(wrong) is None
    assert release_of([*wrong, release("0.14.0")]) == ArenaRelease("ack-arena", "0.14.0", has_supervisor=True)


@pytest.mark.parametrize(
    ("lacking", "restarts", "words"),
    [
        ((), JobRestart.ON_FAILURE, ""),
        (("slotsPerWorker", "restartPolicy", "backoffLimit"), JobRestart.NEVER, ""),
        (("restartPolicy", "backoffLimit"), JobRestart.ON_FAILURE, "its definition has no field restartPolicy"),
        (("cleanPodPolicy",), JobRestart.NEVER, "cannot keep the pods of failed replicas"),
    ],
)
async def test_an_older_definition_lacks_only_what_its_operator_does_anyway(
    backend: KubernetesBackend, server: FakeApi, lacking: tuple[str, ...], restarts: JobRestart, words: str
) -> None:
    kind = {"group": "kai.alibabacloud.com", "kind": "TrainingJob", "version": "v1alpha1"}
    fields = {"etReplicaSpecs", "slotsPerWorker", "restartPolicy", "backoffLimit", "cleanPodPolicy"} - {*lacking}
    spec = {"type": "object", "properties": {name: {"type": "object"} for name in fields}}
    job = {"type": "object", "properties": {"spec": spec}, "x-kubernetes-group-version-kind": [kind]}
    schemas = {"io.k8s.Status": {"type": "object"}, "com.alibabacloud.kai.v1alpha1.TrainingJob": job}
    answers(server, "GET /openapi/v3/apis/kai.alibabacloud.com/v1alpha1", {"components": {"schemas": schemas}})
    elastic = Elastic(workers=2, max_workers=4, job_restart_policy=restarts)
    calm = a_spec(
        name="calm",
        image="img:1",
        mode=Mode.HOROVOD,
        nodes=2,
        terminal="cleanPodPolicy" in lacking,
        elastic=elastic,
        specs=(NodeSpec(cpus=1, card_milli=2000),),
    )
    if words:
        with pytest.raises(RequestRefused, match=words):
            await backend.submit([calm])
        return
    await backend.submit([calm])
    assert server.object(f"{JOBS}/calm")["spec"].keys() == fields - {"cleanPodPolicy"}
