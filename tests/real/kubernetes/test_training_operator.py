"""The training operator of the test cluster: a PyTorchJob's replicas run as real processes."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.ports import free_ports
from tests.real.kubernetes.cluster import ON_REAL_NODE
from tests.real.kubernetes.daemons import wait_until
from tests.real.kubernetes.pods import wait_for_phase

if TYPE_CHECKING:
    from tests.real.kubernetes.cluster import RealKubernetes

pytestmark = [pytest.mark.real, pytest.mark.real_kubernetes]

JOBS = "/apis/kubeflow.org/v1/namespaces/{}/pytorchjobs"


MEETING = """
import os, socket, time
address, rank = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])), os.environ["RANK"]
if rank == "0":
    with socket.create_server(("", address[1])) as server:
        met = [server.accept()[0].recv(9).decode() for _ in range(int(os.environ["WORLD_SIZE"]) - 1)]
    print("met", *sorted(met))
else:
    for _ in range(600):
        try:
            connection = socket.create_connection(address)
        except ConnectionRefusedError:
            time.sleep(0.1)
        else:
            break
    connection.send(rank.encode())
    print(rank, "at", address[0])
"""


def pytorch_job(name: str, *command: str, workers: int) -> dict[str, Any]:
    ports = [{"name": "pytorchjob-port", "containerPort": free_ports(1)[0]}]
    container = {"name": "pytorch", "image": "none", "command": command, "ports": ports}
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
def test_the_replicas_of_a_job_find_each_other_and_it_succeeds(cluster: RealKubernetes, namespace: str):
    jobs = JOBS.format(namespace)
    cluster.admin.create(jobs, pytorch_job("train", sys.executable, "-c", MEETING, workers=2))
    wait_until("the job has not succeeded", lambda: condition(cluster, f"{jobs}/train", "Succeeded"))
    expected = {"master-0": "met 1 2\n", "worker-0": "1 at train-master-0\n", "worker-1": "2 at train-master-0\n"}
    for replica, printed in expected.items():
        path = f"/api/v1/namespaces/{namespace}/pods/train-{replica}"
        wait_for_phase(cluster.admin, path, "Succeeded")
        assert cluster.admin.get(f"{path}/log") == printed


@pytest.mark.usefixtures("training_operator")
def test_a_job_fails_with_its_replica(cluster: RealKubernetes, namespace: str):
    jobs = JOBS.format(namespace)
    cluster.admin.create(jobs, pytorch_job("train", "sh", "-c", "test $RANK = 1", workers=1))
    wait_until("the job has not failed", lambda: condition(cluster, f"{jobs}/train", "Failed"))


def condition(cluster: RealKubernetes, path: str, kind: str) -> bool:
    conditions = cluster.admin.get(path).get("status", {}).get("conditions", ())
    return any(each["type"] == kind and each["status"] == "True" for each in conditions)
