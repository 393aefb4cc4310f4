"""Pods that are processes: logs, exit codes, restarts, deadlines, signals, and commands inside them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from kubernetes.aio.client import CoreV1Api

from tests.real.kubernetes.cluster import ALICE, REAL_NODE
from tests.real.kubernetes.daemons import wait_until
from tests.real.kubernetes.exec_session import STDERR, STDOUT, V4, V5, exec_in
from tests.real.kubernetes.pods import ENDED, create_pod, real_pod, wait_for_phase

if TYPE_CHECKING:
    from kubernetes.aio.client import ApiClient

    from tests.real.kubernetes.cluster import RealKubernetes

pytestmark = [pytest.mark.real, pytest.mark.real_kubernetes]


@pytest.fixture
def sleeping_pod(cluster: RealKubernetes, namespace: str) -> tuple[str, str]:
    """A pod that runs, as namespace and name."""
    pod = real_pod("job", "sh", "-c", "echo inside >file; exec sleep infinity")
    wait_for_phase(cluster.admin, create_pod(cluster.admin, namespace, pod), "Running")
    return namespace, "job"


async def test_a_pod_prints_and_ends_with_its_exit_code(cluster: RealKubernetes, namespace: str, alice: ApiClient):
    api = CoreV1Api(alice)
    await api.create_namespaced_pod(namespace, real_pod("job", "sh", "-c", "echo out; echo err >&2; exit 7"))
    ended = wait_for_phase(cluster.admin, f"/api/v1/namespaces/{namespace}/pods/job", *ENDED)
    assert (ended["spec"]["nodeName"], ended["status"]["phase"]) == (REAL_NODE, "Failed")
    assert ended["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 7
    assert sorted((await api.read_namespaced_pod_log("job", namespace)).split()) == ["err", "out"]


async def test_a_log_is_followed_until_the_container_ends(
    cluster: RealKubernetes, namespace: str, tmp_path, alice: ApiClient
):
    goes_on = tmp_path / "goes-on"
    pod = real_pod("job", "sh", "-c", f"echo first; until [ -e {goes_on} ]; do sleep 0.05; done; echo last")
    wait_for_phase(cluster.admin, create_pod(cluster.admin, namespace, pod), "Running")
    answer = await CoreV1Api(alice).read_namespaced_pod_log_without_preload_content("job", namespace, follow=True)
    assert await answer.content.readline() == b"first\n"
    goes_on.touch()
    assert await answer.content.read() == b"last\n"
    answer.close()


def test_a_failing_container_is_restarted_and_its_former_log_kept(cluster: RealKubernetes, namespace: str):
    pod = real_pod("job", "sh", "-c", "echo round; exit 4", restartPolicy="OnFailure")
    path = create_pod(cluster.admin, namespace, pod)

    def waits_to_restart() -> bool:
        (container,) = cluster.admin.get(path)["status"].get("containerStatuses", [{"state": {}}])
        return container["state"].get("waiting", {}).get("reason") == "CrashLoopBackOff"

    wait_until("the container does not wait for its restart", waits_to_restart)
    (container,) = cluster.admin.get(path)["status"]["containerStatuses"]
    assert container["restartCount"] >= 1
    assert container["lastState"]["terminated"]["exitCode"] == 4
    assert cluster.admin.get(f"{path}/log?previous=true") == "round\n"


def test_a_pod_ends_at_its_deadline(cluster: RealKubernetes, namespace: str):
    path = create_pod(cluster.admin, namespace, real_pod("job", "sleep", "infinity", activeDeadlineSeconds=1))
    ended = wait_for_phase(cluster.admin, path, *ENDED)
    assert (ended["status"]["phase"], ended["status"]["reason"]) == ("Failed", "DeadlineExceeded")
    assert ended["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 137


def test_a_deleted_pod_is_asked_to_end_first(cluster: RealKubernetes, namespace: str, tmp_path):
    ready, asked = tmp_path / "ready", tmp_path / "asked"
    script = f"trap 'touch {asked}; exit 0' TERM; touch {ready}; while :; do sleep 0.05; done"
    path = create_pod(cluster.admin, namespace, real_pod("job", "sh", "-c", script))
    wait_until("the pod does not run", ready.exists)
    cluster.admin.delete(path)
    wait_until("the pod is still there", lambda: not cluster.admin.exists(path))
    assert asked.exists()


@pytest.mark.parametrize("protocol", [V4, V5])
async def test_a_command_runs_beside_the_containers_process(
    cluster: RealKubernetes, sleeping_pod: tuple[str, str], protocol: str
):
    command = ("sh", "-c", "cat file; echo odd >&2; exit 5")
    async with exec_in(cluster, ALICE, sleeping_pod, *command, protocol=protocol) as session:
        assert await session.exit_code() == 5
    assert (session.printed[STDOUT], session.printed[STDERR]) == (b"inside\n", b"odd\n")


async def test_input_can_be_closed_in_version_5(cluster: RealKubernetes, sleeping_pod: tuple[str, str]):
    async with exec_in(cluster, ALICE, sleeping_pod, "wc", "-c", protocol=V5, stdin=True) as session:
        await session.send(b"12345")
        await session.close_input()
        assert await session.exit_code() == 0
    assert session.printed[STDOUT].strip() == b"5"


async def test_a_terminal_is_typed_into_and_resized(cluster: RealKubernetes, sleeping_pod: tuple[str, str]):
    async with exec_in(cluster, ALICE, sleeping_pod, "sh", stdin=True, tty=True) as session:
        await session.resize(columns=91, rows=27)
        await session.send(b"until [ \"$(stty size)\" = '27 91' ]; do :; done; echo resi''zed\n")
        await session.read_until(b"resized")
        await session.send(b"exit 3\n")
        assert await session.exit_code() == 3


async def test_a_debug_container_sees_the_processes_of_the_container(
    cluster: RealKubernetes, sleeping_pod: tuple[str, str]
):
    namespace, name = sleeping_pod
    debugger = {"name": "debugger", "image": "none", "targetContainerName": "main", "command": ["sleep", "infinity"]}
    path = f"/api/v1/namespaces/{namespace}/pods/{name}"
    cluster.admin.merge(f"{path}/ephemeralcontainers", {"spec": {"ephemeralContainers": [debugger]}})

    def runs() -> bool:
        (status,) = cluster.admin.get(path)["status"].get("ephemeralContainerStatuses", [{"state": {}}])
        return "running" in status["state"]

    wait_until("the debug container does not run", runs)
    async with exec_in(cluster, ALICE, sleeping_pod, "cat", "/proc/1/cmdline", container="debugger") as session:
        assert await session.exit_code() == 0
    assert session.printed[STDOUT] == b"sleep\0infinity\0"
