"""Kinds of jobs by definitions that differ from those of the training operator, on a server with these definitions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from cockpit.errors import RequestRefused
from cockpit.model.asking import WantedLimit
from cockpit.model.job import JobState
from cockpit.model.resilience import Elastic
from cockpit.model.spec import Mode, NodeSpec
from tests.builders import a_spec
from tests.real.kubernetes.cluster import ALICE
from tests.real.kubernetes.conftest import running_cluster
from tests.real.kubernetes.daemons import wait_until
from tests.real.kubernetes.test_backend import cockpit_of, until
from tools.kubernetes_programs import NODELET, SERVER

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.real.kubernetes.cluster import RealKubernetes

pytestmark = [pytest.mark.real, pytest.mark.real_kubernetes]
WHOLE = {"type": "integer"}
TEMPLATE = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def definition(group: str, version: str, kind: str, spec: dict[str, Any]) -> dict[str, Any]:
    """Return a definition with these fields in its spec; the server drops all others."""
    status = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": spec}, "status": status}}
    plural = f"{kind.lower()}s"
    served = {"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": f"{kind}List"},
            "versions": [{**served, "subresources": {"status": {}}}],
        },
    }


def replica(**more: Any) -> dict[str, Any]:
    fields = {"replicas": WHOLE, "restartPolicy": {"type": "string"}, "template": TEMPLATE, **more}
    return {"type": "object", "properties": fields}


ARENA = definition(
    "kubeflow.org",
    "v1",
    "PyTorchJob",
    {
        "activeDeadlineSeconds": WHOLE,
        "backoffLimit": WHOLE,
        "cleanPodPolicy": {"type": "string"},
        "ttlSecondsAfterFinished": WHOLE,
        "pytorchReplicaSpecs": {"type": "object", "additionalProperties": replica()},
    },
)
"""The definition that arena's installation brings."""


ELASTIC_TRAINING = definition(
    "kai.alibabacloud.com",
    "v1alpha1",
    "TrainingJob",
    {
        "backoffLimit": WHOLE,
        "cleanPodPolicy": {"type": "string"},
        "restartPolicy": {"type": "string"},
        "slotsPerWorker": WHOLE,
        "launcherAttachMode": {"type": "string"},
        "etReplicaSpecs": {
            "type": "object",
            "properties": {"launcher": replica(), "worker": replica(minReplicas=WHOLE, maxReplicas=WHOLE)},
        },
    },
)


@pytest.fixture(scope="module")
def arena_cluster() -> Iterator[RealKubernetes]:
    if not (SERVER.is_built() and NODELET.is_built()):
        pytest.skip("Kubernetes is not built: `make setup-tests` says why (it needs Go)")
    with running_cluster(nodes=2) as made:
        made.admin.apply(ARENA, ELASTIC_TRAINING)
        grant_custom_kinds(made)
        wait_until("the schema is not published", lambda: made.admin.exists("/openapi/v3/apis/kubeflow.org/v1"))
        yield made


def grant_custom_kinds(cluster: RealKubernetes) -> None:
    """Let administrators of namespaces change jobs of these kinds, as the operators' own roles do."""
    rule = {"apiGroups": ["kubeflow.org", "kai.alibabacloud.com"], "resources": ["*"], "verbs": ["*"]}
    cluster.admin.create(
        "/apis/rbac.authorization.k8s.io/v1/clusterroles",
        {
            "metadata": {"name": "jobs-admin", "labels": {"rbac.authorization.k8s.io/aggregate-to-admin": "true"}},
            "rules": [rule],
        },
    )


@pytest.mark.req("KU-03", "KU-07")
async def test_a_pytorch_job_is_made_as_the_clusters_own_definition_has_it(arena_cluster: RealKubernetes) -> None:
    jobs = "/apis/kubeflow.org/v1/namespaces/{}/pytorchjobs/train"
    spec = a_spec(name="train", image="example/train:1", mode=Mode.PYTORCH, nodes=2, time_limit_seconds=600)
    with arena_cluster.namespace() as namespace:
        async with cockpit_of(arena_cluster, ALICE, namespace) as backend:
            (job,) = await backend.submit([spec])
            row = await until(backend, "train", lambda row: row.state is JobState.QUEUED)
            assert (row.id, row.time_limit_seconds, row.nodes) == (job, 600, 2)
            made = arena_cluster.admin.get(jobs.format(namespace))["spec"]
            assert made["activeDeadlineSeconds"] == 600
            assert "runPolicy" not in made
            await backend.set_time_limit(job, WantedLimit(900))
            await until(backend, "train", lambda row: row.time_limit_seconds == 900)
            with pytest.raises(RequestRefused, match=r"cannot be suspended or held: .* no field suspend"):
                await backend.hold(job)
            held = a_spec(name="held", image="example/train:1", mode=Mode.PYTORCH, nodes=2, hold=True)
            with pytest.raises(RequestRefused, match="its definition has no field suspend"):
                await backend.submit([held])


@pytest.mark.req("KU-10", "KU-07", "EL-01")
async def test_an_elastic_spot_job_is_made_with_its_secret_and_shown(arena_cluster: RealKubernetes) -> None:
    elastic = Elastic(workers=2, min_workers=1, max_workers=9, spot=True)
    spec = a_spec(
        name="train",
        image="horovod:1",
        mode=Mode.HOROVOD,
        nodes=2,
        elastic=elastic,
        time_limit_seconds=600,
        terminal=True,
        specs=(NodeSpec(cpus=1, card_milli=1000),),
    )
    with arena_cluster.namespace() as namespace:
        jobs = f"/apis/kai.alibabacloud.com/v1alpha1/namespaces/{namespace}/trainingjobs"
        secret = f"/api/v1/namespaces/{namespace}/secrets/train"
        async with cockpit_of(arena_cluster, ALICE, namespace) as backend:
            (job,) = await backend.submit([spec])
            row = await until(backend, "train", lambda row: row.state is JobState.QUEUED)
            assert (row.id, row.workers, row.card_milli, row.time_limit_seconds) == (job, (1, 2, 9), 2000, 600)
            made = arena_cluster.admin.get(f"{jobs}/train")
            assert made["metadata"]["annotations"]["job-supervisor.kube-ai.io/spot-instance"] == "true"
            assert made["spec"]["cleanPodPolicy"] == "None"
            kept = arena_cluster.admin.get(secret)
            assert {*kept["data"]} == {"config", "id_rsa", "id_rsa.pub"}
            # The operator's status, which none writes here.
            status = {"phase": "Suspended", "conditions": [suspended_now()]}
            arena_cluster.admin.merge(f"{jobs}/train/status", {"status": status})
            row = await until(backend, "train", lambda row: row.state is JobState.SUSPENDED)
            assert row.waits_until == 1_900_000_000_000 + 600_000
            await backend.cancel(job)
        wait_until("the secret is left", lambda: not arena_cluster.admin.exists(secret))


def suspended_now() -> dict[str, str]:
    return {"type": "Suspended", "status": "True", "lastTransitionTime": "2030-03-17T17:46:40Z"}
