"""The training operator of the test cluster: a PyTorchJob's replicas run as real processes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.real.kubernetes.cluster import ON_REAL_NODE
from tests.real.kubernetes.daemons import wait_until

if TYPE_CHECKING:
    from tests.real.kubernetes.cluster import RealKubernetes

pytestmark = [pytest.mark.real, pytest.mark.real_kubernetes]

JOBS = "/apis/kubeflow.org/v1/namespaces/{}/pytorchjobs"


def pytorch_job(name: str, *command: str, workers: int) -> dict[str, Any]:
    container = {"name": "pytorch", "image": "none", "command": command}
    template = {"spec": {"containers": [container], **ON_REAL_NODE}}
    replicas = {"Master": 1, "Worker": workers}
    specs = {
        kind: {"replicas": count, "restartPolicy": "Never", "template": template} for kind, count in replicas.items()
    }
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": name},
        "spec": {"pytorchReplicaSpecs": specs},
    }


@pytest.mark.usefixtures("training_operator")
def test_each_replica_knows_its_rank_and_the_job_succeeds(cluster: RealKubernetes, namespace: str):
    jobs = JOBS.format(namespace)
    cluster.admin.create(jobs, pytorch_job("train", "sh", "-c", "echo $RANK of $WORLD_SIZE at $MASTER_ADDR", workers=2))
    wait_until("the job has not succeeded", lambda: condition(cluster, f"{jobs}/train", "Succeeded"))
    pods = f"/api/v1/namespaces/{namespace}/pods"
    printed = {each: cluster.admin.get(f"{pods}/train-{each}/log") for each in ("master-0", "worker-0", "worker-1")}
    assert printed == {
        "master-0": "0 of 3 at train-master-0\n",
        "worker-0": "1 of 3 at train-master-0\n",
        "worker-1": "2 of 3 at train-master-0\n",
    }


@pytest.mark.usefixtures("training_operator")
def test_a_job_fails_with_its_replica(cluster: RealKubernetes, namespace: str):
    jobs = JOBS.format(namespace)
    cluster.admin.create(jobs, pytorch_job("train", "sh", "-c", "test $RANK = 1", workers=1))
    wait_until("the job has not failed", lambda: condition(cluster, f"{jobs}/train", "Failed"))


def condition(cluster: RealKubernetes, path: str, kind: str) -> bool:
    conditions = cluster.admin.get(path).get("status", {}).get("conditions", ())
    return any(each["type"] == kind and each["status"] == "True" for each in conditions)
