"""The cockpit's backend on a real API server, scheduler and kubelet, as users with different rights."""

from __future__ import annotations

import asyncio
import os
import termios
from contextlib import aclosing, asynccontextmanager
from random import Random
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from cockpit.backends.kubernetes.backend import KubernetesBackend
from cockpit.backends.kubernetes.wire import exec as exec_module
from cockpit.backends.kubernetes.wire.api import Api
from cockpit.backends.kubernetes.wire.connection import Connection
from cockpit.errors import RequestRefused
from cockpit.model.asking import LogRequest, LogSearch, ShellRequest
from cockpit.model.job import JobState
from cockpit.model.labels import Toleration
from cockpit.model.pod_reasons import Obstacle, Unschedulable
from cockpit.model.refusal import RefusalKind
from cockpit.model.spec import Access, DebugHold, NodeSpec
from cockpit.runtime.clock import SystemClock
from tests.builders import a_spec
from tests.real.kubernetes.cluster import ADMIN, ALICE, NOBODY, REAL_NODE, VIEWER
from tests.real.kubernetes.conftest import CARDS, NODES
from tests.real.kubernetes.pods import create_pod, fake_pod, real_pod, wait_for_phase

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from cockpit.model.jobrow import JobRow
    from tests.real.kubernetes.cluster import RealKubernetes

pytestmark = [pytest.mark.real, pytest.mark.real_kubernetes]
LONGEST = 60.0
REAL = {"kubernetes.io/hostname": REAL_NODE}


@asynccontextmanager
async def cockpit_of(cluster: RealKubernetes, user: str, namespace: str) -> AsyncIterator[KubernetesBackend]:
    """Open the cluster as one of its users, whose context has this namespace."""
    clock, file = SystemClock(), str(cluster.kubeconfig(user))

    def connect() -> Api:
        return Api(Connection("real", (file,), clock.now))

    backend = KubernetesBackend("real", connect, namespace, clock, Random(1), user)
    try:
        yield backend
    finally:
        await backend.close()


async def until(backend: KubernetesBackend, name: str, holds: Callable[[JobRow], bool]) -> JobRow:
    """Wait until a watcher sees the job so, and return its row."""
    async with asyncio.timeout(LONGEST), aclosing(backend.watch_jobs()) as watch:
        async for delta in watch:
            for row in delta.changed:
                if row.name == name and holds(row):
                    return row
    raise AssertionError("a watch never ends")


async def ended(backend: KubernetesBackend, row: JobRow) -> JobRow:
    async with asyncio.timeout(LONGEST):
        await backend.wait(row.id)
    return next(each for each in await backend.jobs(ended=True) if each.id == row.id)


@pytest.mark.req("KU-03", "KU-06")
async def test_a_pod_with_cards_is_a_job_that_holds_them_on_its_node(cluster: RealKubernetes, namespace: str) -> None:
    async with cockpit_of(cluster, ADMIN, namespace) as backend:
        create_pod(cluster.admin, namespace, fake_pod("train", cards=CARDS))
        row = await until(backend, "train", lambda row: row.state is JobState.RUNNING)
        assert (row.card_milli, row.project, len(row.placed_on)) == (1000 * CARDS, namespace, 1)
        assert row.card_models[0] in {"H100", "A100", "L40S"}


@pytest.mark.req("KU-05")
async def test_a_pod_that_fits_nowhere_is_explained_by_the_scheduler_and_by_the_nodes(
    cluster: RealKubernetes, namespace: str
) -> None:
    async with cockpit_of(cluster, ALICE, namespace) as backend:
        create_pod(cluster.admin, namespace, fake_pod("large", cards=CARDS + 1))
        row = await until(backend, "large", lambda row: isinstance(row.reason, Unschedulable))
        assert isinstance(row.reason, Unschedulable)
        # Alice may not see the nodes; the scheduler's message counts them all the same.
        assert row.reason.nodes == NODES + 1
        found = {(each.nodes, each.obstacle) for each in row.reason.excluded}
        assert found == {(NODES, Obstacle.RESOURCE), (1, Obstacle.TAINT)}
    async with cockpit_of(cluster, ADMIN, namespace) as backend:
        outlook = await backend.explain(row.id)
        assert outlook.explanation is not None
        reason = outlook.explanation.reason
        assert isinstance(reason, Unschedulable)
        assert reason.by_nodes is not None
        assert (reason.by_nodes.nodes, reason.by_nodes.when_empty) == (NODES + 1, 0)
        assert {(each.obstacle, each.free) for each in reason.by_nodes.excluded} >= {(Obstacle.RESOURCE, CARDS)}


@pytest.mark.req("KU-07")
async def test_a_job_is_submitted_suspended_resumed_and_deleted(cluster: RealKubernetes, namespace: str) -> None:
    async with cockpit_of(cluster, ALICE, namespace) as backend:
        spec = a_spec("run", image="example/train:1", specs=(NodeSpec(card_milli=1000),))
        (job,) = await backend.submit([spec])
        row = await until(backend, "run", lambda row: row.state is JobState.RUNNING)
        assert (row.id, row.user, row.project) == (job, ALICE, namespace)
        await backend.suspend(job)
        await until(backend, "run", lambda row: row.state is JobState.QUEUED and not row.placed_on)
        await backend.resume(job)
        await until(backend, "run", lambda row: row.state is JobState.RUNNING)
        await backend.cancel(job)
        async with asyncio.timeout(LONGEST), aclosing(backend.watch_jobs(anything=True)) as watch:
            async for delta in watch:
                if job in delta.removed or not await backend.jobs():
                    break


@pytest.mark.req("KU-03", "KU-07")
async def test_a_refusal_has_the_servers_words_and_leaves_nothing_behind(
    cluster: RealKubernetes, namespace: str
) -> None:
    good = a_spec(name="good", image="example/train:1")
    async with cockpit_of(cluster, ALICE, namespace) as backend:
        with pytest.raises(RequestRefused) as refused:
            await backend.submit([good, a_spec(name="bad", image="example/train:1", env={"1 =": "x"})])
        assert refused.value.refusal.kind is RefusalKind.INVALID
        assert "env" in refused.value.refusal.message
    assert cluster.admin.get(f"/apis/batch/v1/namespaces/{namespace}/jobs")["items"] == []
    async with cockpit_of(cluster, VIEWER, namespace) as backend:
        with pytest.raises(RequestRefused, match="cannot create resource") as refused:
            await backend.submit([good])
        assert refused.value.refusal.kind is RefusalKind.DENIED


@pytest.mark.req("KU-07", "UI-14")
async def test_a_real_pods_log_is_followed_to_its_end(cluster: RealKubernetes, namespace: str) -> None:
    script = "for i in 1 2 3; do echo line $i; sleep 0.2; done; exit 4"
    create_pod(cluster.admin, namespace, real_pod("talks", "sh", "-c", script, cards=1))
    async with cockpit_of(cluster, ALICE, namespace) as backend:
        row = await until(backend, "talks", lambda row: row.started_at is not None)
        data, offset = b"", 0
        async with asyncio.timeout(LONGEST):
            while True:
                chunk = await backend.logs(LogRequest(job=row.id, offset=offset, wait=True))
                data, offset = data + chunk.data, chunk.offset + len(chunk.data)
                if chunk.ended:
                    break
        assert data == b"line 1\nline 2\nline 3\n"
        row = await ended(backend, row)
        assert (row.state, row.exit_code) == (JobState.ERROR, 4)
        again = await backend.logs(LogRequest(job=row.id, offset=-7))
        assert (again.data, again.offset, again.ended) == (b"line 3\n", 14, True)
        matches = await backend.search_log(LogSearch(job=row.id, text="LINE", begin=3, most=5))
        assert (matches.found, matches.size) == (((7, 4), (14, 4)), 21)


@pytest.mark.req("KU-09")
async def test_a_command_runs_in_a_real_pod_between_pipes(cluster: RealKubernetes, namespace: str) -> None:
    create_pod(cluster.admin, namespace, real_pod("open", "sleep", "600", cards=1))
    async with cockpit_of(cluster, ALICE, namespace) as backend:
        row = await until(backend, "open", lambda row: row.state is JobState.RUNNING)
        command = ("sh", "-c", "cat; echo done >&2; exit 7")
        shell = await backend.open_shell(ShellRequest(job=row.id, command=command))
        assert shell.pipe_fds is not None
        stdin, stdout, stderr = shell.pipe_fds
        os.write(stdin, b"typed\n" * 20_000)
        os.close(stdin)
        out, err = await asyncio.gather(asyncio.to_thread(read_all, stdout), asyncio.to_thread(read_all, stderr))
        assert (out, err) == (b"typed\n" * 20_000, b"done\n")
        assert await asyncio.to_thread(shell.exit_code) == 7
        for fd in (stdout, stderr, shell.control_fd):
            os.close(fd)


@pytest.mark.req("KU-09")
async def test_a_command_runs_on_a_server_that_knows_only_the_older_protocol(
    cluster: RealKubernetes, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exec_module, "PROTOCOLS", ("v4.channel.k8s.io",))
    create_pod(cluster.admin, namespace, real_pod("open", "sleep", "600", cards=1))
    async with cockpit_of(cluster, ALICE, namespace) as backend:
        row = await until(backend, "open", lambda row: row.state is JobState.RUNNING)
        command = ("sh", "-c", "head -c 6; echo done >&2; exit 7")
        shell = await backend.open_shell(ShellRequest(job=row.id, command=command))
        assert shell.pipe_fds is not None
        stdin, stdout, stderr = shell.pipe_fds
        os.write(stdin, b"typed\n")
        out, err = await asyncio.gather(asyncio.to_thread(read_all, stdout), asyncio.to_thread(read_all, stderr))
        assert (out, err) == (b"typed\n", b"done\n")
        assert await asyncio.to_thread(shell.exit_code) == 7
        for fd in (stdin, stdout, stderr, shell.control_fd):
            os.close(fd)


@pytest.mark.req("KU-09")
async def test_a_terminal_has_the_users_size_and_ends_with_the_shell(cluster: RealKubernetes, namespace: str) -> None:
    create_pod(cluster.admin, namespace, real_pod("open", "sleep", "600", cards=1))
    async with cockpit_of(cluster, ALICE, namespace) as backend:
        row = await until(backend, "open", lambda row: row.state is JobState.RUNNING)
        request = ShellRequest(job=row.id, terminal=True, rows=33, columns=101)
        shell = await backend.open_shell(request)
        assert shell.terminal_fd is not None
        os.write(shell.terminal_fd, b"stty size; exit 5\n")
        seen = await asyncio.to_thread(read_all, shell.terminal_fd)
        assert b"33 101" in seen
        assert await asyncio.to_thread(shell.exit_code) == 5
        os.close(shell.terminal_fd)
        os.close(shell.control_fd)
        # Changed while the connection is made, of which the other end knows the first size alone.
        shell = await backend.open_shell(request)
        assert shell.terminal_fd is not None
        termios.tcsetwinsize(shell.terminal_fd, (27, 91))
        os.write(shell.terminal_fd, b"until [ \"$(stty size)\" = '27 91' ]; do sleep 0.1; done; exit 6\n")
        await asyncio.to_thread(read_all, shell.terminal_fd)
        assert await asyncio.to_thread(shell.exit_code) == 6
        os.close(shell.terminal_fd)
        os.close(shell.control_fd)


@pytest.mark.req("KU-09")
async def test_a_pod_that_has_ended_has_no_shell(cluster: RealKubernetes, namespace: str) -> None:
    path = create_pod(cluster.admin, namespace, real_pod("over", "true", cards=1))
    async with cockpit_of(cluster, ALICE, namespace) as backend:
        wait_for_phase(cluster.admin, path, "Succeeded")
        (row,) = await backend.jobs(ended=True)
        assert row.state is JobState.SUCCEEDED
        with pytest.raises(RequestRefused, match="only a running pod has a shell"):
            await backend.open_shell(ShellRequest(job=row.id))


@pytest.mark.req("KU-01")
async def test_what_a_user_may_not_see_is_missing_with_the_reason(cluster: RealKubernetes, namespace: str) -> None:
    create_pod(cluster.admin, namespace, fake_pod("train", cards=1))
    async with cockpit_of(cluster, ALICE, namespace) as backend:
        row = await until(backend, "train", lambda row: row.state is JobState.RUNNING)
        assert row.may is Access.RW
        reason = backend.capabilities.why_not("nodes")
        assert reason.startswith("Nodes cannot be listed: nodes is forbidden")
        with pytest.raises(RequestRefused, match="Nodes cannot be listed"):
            await backend.nodes()
    async with cockpit_of(cluster, VIEWER, namespace) as backend:
        row = await until(backend, "train", lambda row: row.state is JobState.RUNNING)
        assert row.may is Access.RO
    async with cockpit_of(cluster, NOBODY, namespace) as backend:
        with pytest.raises(RequestRefused, match=r"Pods cannot be listed: pods is forbidden.*namespaces=A,B"):
            await backend.jobs()
        # An empty table would say that there are no jobs.
        for ask in (backend.events, backend.priorities, backend.accounting, backend.snapshot):
            with pytest.raises(RequestRefused, match="Pods cannot be listed"):
                await ask()
        assert any("pods cannot be read" in each for each in (await backend.overview()).trouble)
        with pytest.raises(RequestRefused, match="Nodes cannot be listed"):
            await backend.nodes()


def read_all(fd: int) -> bytes:
    """Read until the other end is closed; a terminal ends with an error then."""
    data = b""
    try:
        while piece := os.read(fd, 1 << 16):
            data += piece
    except OSError:
        pass
    return data


@pytest.mark.req("KU-08")
async def test_a_failed_container_is_held_entered_extended_and_let_end(cluster: RealKubernetes, namespace: str) -> None:
    async with cockpit_of(cluster, ALICE, namespace) as backend:
        hold = DebugHold(window_seconds=600)
        spec = a_spec(
            "fails", image="none", terminal=True, debug_hold=hold, node_selector=REAL, tolerations=(Toleration(),)
        )
        (job,) = await backend.submit([replace(spec, command="sh -c 'echo work; exit 3'")])
        row = await until(backend, "fails", lambda row: row.held_until is not None)
        assert (row.state, row.exit_code, row.reason) == (JobState.ERROR, 3, None)
        assert row.held_until is not None
        assert row.ended_at is not None
        assert row.held_until - row.ended_at == 600_000
        (held,) = await backend.holds()
        assert (held.job, held.exit_code, held.held_until) == (job, 3, row.held_until)
        shell = await backend.open_shell(ShellRequest(job=job, command=("sh", "-c", "echo inside; exit 4")))
        assert shell.pipe_fds is not None
        assert await asyncio.to_thread(read_all, shell.pipe_fds[1]) == b"inside\n"
        assert await asyncio.to_thread(shell.exit_code) == 4
        for fd in (*shell.pipe_fds, shell.control_fd):
            os.close(fd)
        assert await backend.extend_hold(job, seconds=60) == row.held_until + 60_000
        await until(backend, "fails", lambda row: row.held_until == held.held_until + 60_000)
        log = await backend.logs(LogRequest(job=job))
        assert log.data.startswith(b"work\ncockpit:held rc=3 ")
        await backend.end_hold(job)
        over = await until(backend, "fails", lambda row: row.held_until is None and row.state is JobState.ERROR)
        assert over.exit_code == 3
        assert await backend.holds() == []


@pytest.mark.req("KU-09")
async def test_a_shell_opens_in_a_container_of_another_image_beside_a_pods_own(
    cluster: RealKubernetes, namespace: str
) -> None:
    # An image of which no shell is known: its only process is `sleep`.
    path = create_pod(cluster.admin, namespace, real_pod("open", "sleep", "600", cards=1))
    async with cockpit_of(cluster, ADMIN, namespace) as backend:
        row = await until(backend, "open", lambda row: row.state is JobState.RUNNING)

        async def run(*command: str) -> tuple[bytes, int]:
            shell = await backend.open_shell(ShellRequest(job=row.id, command=command, image="debug:1"))
            assert "its files are below /proc/1/root" in shell.notice
            assert shell.pipe_fds is not None
            os.close(shell.pipe_fds[0])
            printed = await asyncio.to_thread(read_all, shell.pipe_fds[1])
            code = await asyncio.to_thread(shell.exit_code)
            for fd in (*shell.pipe_fds[1:], shell.control_fd):
                os.close(fd)
            return printed, code

        # Its processes are those of the pod's container.
        assert await run("cat", "/proc/1/cmdline") == (b"sleep\x00600\x00", 0)
        assert await run("sh", "-c", "exit 5") == (b"", 5)
        (container,) = cluster.admin.get(path)["spec"]["ephemeralContainers"]
        assert (container["image"], container["targetContainerName"]) == ("debug:1", "main")
    async with cockpit_of(cluster, ALICE, namespace) as backend:
        # The usual roles of namespaces lack this right.
        await backend.jobs()
        with pytest.raises(RequestRefused, match=r"refuses a debug container: .*cannot patch resource") as refused:
            await backend.open_shell(ShellRequest(job=row.id, image="debug:2"))
        assert refused.value.refusal.kind is RefusalKind.DENIED
