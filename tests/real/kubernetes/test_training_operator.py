"""The training operator of the test cluster: a PyTorchJob's replicas run as real processes."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from cockpit.errors import RequestRefused
from cockpit.model.asking import ShellRequest
from cockpit.model.job import JobState
from cockpit.model.labels import Toleration
from cockpit.model.spec import DebugHold, Mode
from tests.builders import a_spec
from tests.ports import free_ports
from tests.real.kubernetes.cluster import ADMIN, ON_REAL_NODE, REAL_NODE
from tests.real.kubernetes.daemons import wait_until
from tests.real.kubernetes.pods import wait_for_phase
from tests.real.kubernetes.test_backend import cockpit_of, until

if TYPE_CHECKING:
    from pathlib import Path

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


@pytest.mark.req("KU-08")
@pytest.mark.usefixtures("training_operator")
async def test_the_first_replica_that_fails_is_held_and_the_others_end(
    cluster: RealKubernetes, namespace: str, tmp_path: Path
) -> None:
    # Rank 1 fails first, and rank 0 two seconds after it: moments are whole seconds.
    script = "test $RANK = 0 && until [ -e {0} ]; do sleep 0.1; done && sleep 2; touch {0}; echo rank $RANK; exit 3"
    spec = a_spec(
        "train",
        image="none",
        mode=Mode.PYTORCH,
        nodes=2,
        terminal=True,
        debug_hold=DebugHold(window_seconds=600),
        node_selector={"kubernetes.io/hostname": REAL_NODE},
        tolerations=(Toleration(),),
    )
    async with cockpit_of(cluster, ADMIN, namespace) as backend:
        command = f"sh -c '{script.format(tmp_path / 'failed')}'"
        (job,) = await backend.submit([replace(spec, command=command)])
        row = await until(backend, "train", lambda row: row.failed is not None)
        assert (row.failed, row.exit_code) == ((1, 3), 3)
        wait_for_phase(cluster.admin, f"/api/v1/namespaces/{namespace}/pods/train-master-0", "Failed")
        row = await until(backend, "train", lambda row: row.held_until is not None)
        assert (row.state, row.failed) == (JobState.ERROR, (1, 3))
        assert (await backend.job(job)).log_tail == "rank 1\n"
        shell = await backend.open_shell(ShellRequest(job=job, rank=1, command=("true",)))
        assert await asyncio.to_thread(shell.exit_code) == 0
        with pytest.raises(RequestRefused, match="Replica 1 is held"):
            await backend.open_shell(ShellRequest(job=job, rank=0, command=("true",)))
        await backend.end_hold(job)
        row = await until(backend, "train", lambda row: row.held_until is None)
        assert (row.state, row.failed) == (JobState.ERROR, (1, 3))
