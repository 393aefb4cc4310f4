"""What tests can do with the test cluster: lose its API server, give users tokens, define kinds, make many pods."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml
from kubernetes.aio.client import ApiException, ApisApi

from tests.real.kubernetes.api import Api, ApiError
from tests.real.kubernetes.clients import open_client
from tests.real.kubernetes.conftest import running_cluster
from tests.real.kubernetes.credential_plugin import CredentialPlugin
from tests.real.kubernetes.daemons import wait_until
from tests.real.kubernetes.pods import create_pod, fake_pod, wait_for_phase

if TYPE_CHECKING:
    from tests.real.kubernetes.cluster import RealKubernetes

pytestmark = [pytest.mark.real, pytest.mark.real_kubernetes]

CHECKOUT = Path(__file__).parents[3]
DEFINITION = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: queueunits.test.cockpit}
spec:
  group: test.cockpit
  names: {kind: QueueUnit, plural: queueunits, singular: queueunit}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {phase: {type: string}}}
---
apiVersion: test.cockpit/v1
kind: QueueUnit
metadata: {name: unit}
spec: {phase: Enqueued}
"""


def test_the_api_server_comes_back_with_everything_after_it_was_killed():
    with running_cluster(nodes=1) as cluster:
        path = create_pod(cluster.admin, "default", fake_pod("kept", cards=1))
        before = wait_for_phase(cluster.admin, path, "Running")
        cluster.daemons.kill("kube-apiserver")
        with pytest.raises(OSError, match="refused"):
            cluster.admin.get(path)
        cluster.start_api_server()
        assert cluster.admin.get(path)["metadata"]["uid"] == before["metadata"]["uid"]
        create_pod(cluster.admin, "default", fake_pod("new", cards=1))
        wait_for_phase(cluster.admin, f"{path.rpartition('/')[0]}/new", "Running")


def test_a_token_ends_with_its_time(cluster: RealKubernetes, namespace: str):
    def status(seconds: float) -> int:
        token = cluster.service_token(namespace, "robot", seconds)
        try:
            Api(cluster.address, cluster.authority, token=token).get("/apis")
        except ApiError as error:
            return error.status
        return 200

    assert status(600) == 200
    assert status(-1) == 401


async def test_a_program_gives_a_token_that_can_be_replaced(cluster: RealKubernetes, namespace: str, tmp_path: Path):
    plugin = CredentialPlugin(tmp_path)
    file = tmp_path / "robot.kubeconfig"
    cluster.write_kubeconfig(file, "robot", plugin.entry)
    plugin.answer(cluster.service_token(namespace, "robot", -1), 600)
    assert await status_through(file) == 401
    plugin.answer(cluster.service_token(namespace, "robot", 600), 600)
    assert await status_through(file) == 200
    assert plugin.calls() == 2


async def status_through(kubeconfig: Path) -> int:
    async with open_client(kubeconfig) as client:
        try:
            await ApisApi(client).get_api_versions()
        except ApiException as error:
            return error.status
        return 200


def test_kinds_can_be_defined_by_files_and_used_at_once(cluster: RealKubernetes, namespace: str, tmp_path: Path):
    file = tmp_path / "queue.yaml"
    file.write_text(DEFINITION)
    cluster.admin.apply_files([file], namespace=namespace)
    unit = f"/apis/test.cockpit/v1/namespaces/{namespace}/queueunits/unit"
    assert cluster.admin.get(unit)["spec"] == {"phase": "Enqueued"}
    *_, changed = yaml.safe_load_all(DEFINITION.replace("Enqueued", "Running"))
    cluster.admin.apply(changed, namespace=namespace)
    assert cluster.admin.get(unit)["spec"] == {"phase": "Running"}


def test_many_pods_are_created_at_once(cluster: RealKubernetes, namespace: str):
    pods = f"/api/v1/namespaces/{namespace}/pods"
    cluster.admin.create_many(pods, (fake_pod(f"pod-{number}", cards=1) for number in range(200)))
    wait_until("not all pods have a place", lambda: running_count(cluster, pods) == 160)
    assert len(cluster.admin.get(pods)["items"]) == 200


def running_count(cluster: RealKubernetes, pods: str) -> int:
    return len(cluster.admin.get(f"{pods}?fieldSelector=status.phase%3DRunning")["items"])


STARTING = """
from tests.real.kubernetes.conftest import running_cluster
with running_cluster(nodes=0) as cluster:
    print(cluster.folder, *(each.pid for each in cluster.daemons._running.values()), flush=True)
    input()
"""


def test_nothing_is_left_of_a_cluster_whose_tests_were_killed():
    dying = subprocess.Popen(
        [sys.executable, "-c", STARTING], cwd=CHECKOUT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert dying.stdout is not None
    folder, *pids = dying.stdout.readline().split()
    assert len(pids) == 6
    dying.send_signal(signal.SIGKILL)
    dying.wait()
    wait_until(f"{folder} is left", lambda: not Path(folder).exists())
    assert [pid for pid in pids if is_alive(pid)] == []


def is_alive(pid: str) -> bool:
    """Tell whether a process runs; one that has ended may wait for somebody to read its exit code."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
