"""A real Kubernetes that ends, forgets, and takes rights and credentials away while the cockpit is open."""

from __future__ import annotations

import asyncio
from contextlib import aclosing, asynccontextmanager
from random import Random
from typing import TYPE_CHECKING

import pytest

from cockpit.backends.base import Phase
from cockpit.backends.kubernetes import session
from cockpit.backends.kubernetes.backend import KubernetesBackend
from cockpit.backends.kubernetes.resources import PODS
from cockpit.backends.kubernetes.wire import api as wire
from cockpit.backends.kubernetes.wire import reflector
from cockpit.backends.kubernetes.wire.api import Api
from cockpit.backends.kubernetes.wire.connection import Connection
from cockpit.errors import RequestRefused
from cockpit.runtime.clock import SystemClock
from cockpit.runtime.tasks import Tasks
from tests.real.kubernetes.cluster import ADMIN, ALICE, RBAC, VIEWER
from tests.real.kubernetes.conftest import running_cluster
from tests.real.kubernetes.credential_plugin import CredentialPlugin
from tests.real.kubernetes.pods import create_pod, fake_pod
from tools.kubernetes_programs import NODELET, SERVER

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from pathlib import Path

    from cockpit.backends.base import Connection as ConnectionState
    from cockpit.model.jobrow import JobRow
    from tests.real.kubernetes.cluster import RealKubernetes

pytestmark = [pytest.mark.real, pytest.mark.real_kubernetes]
LONGEST = 60.0
API_SERVER = "kube-apiserver"


@pytest.fixture(scope="module")
def fragile() -> Iterator[RealKubernetes]:
    """A cluster of this module's own, whose API server ends now and then."""
    if not (SERVER.is_built() and NODELET.is_built()):
        pytest.skip("Kubernetes is not built: `make setup-tests` says why (it needs Go)")
    with running_cluster(nodes=1) as cluster:
        yield cluster


@pytest.fixture
def here(fragile: RealKubernetes) -> Iterator[str]:
    with fragile.namespace() as name:
        yield name


@pytest.fixture(autouse=True)
def short_watches(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server asks for rights when a watch begins: let watches end soon, and let lost kinds be asked for soon."""
    monkeypatch.setattr(reflector, "WATCH_SECONDS", 2)
    monkeypatch.setattr(reflector, "ABSENT_PAUSE_SECONDS", 0.5)
    monkeypatch.setattr(reflector, "LONGEST_PAUSE_SECONDS", 1.0)
    monkeypatch.setattr(session, "RECHECK_SECONDS", 0.2)
    monkeypatch.setattr(session, "CHECK_SECONDS", 1.0)


class Lists:
    """How many lists are under way at once, at most."""

    def __init__(self) -> None:
        self.now = self.most = self.count = 0

    def of(self, api: Api) -> Api:
        """Count the lists of this connection."""
        get = api.get

        async def counted(path: str, query: tuple[tuple[str, str], ...] = (), **options: str) -> bytes:
            is_list = any(name == "limit" for name, _ in query)
            self.now, self.count = self.now + is_list, self.count + is_list
            self.most = max(self.most, self.now)
            try:
                return await get(path, query, **options)
            finally:
                self.now -= is_list

        api.get = counted  # type: ignore[method-assign, assignment] # a method of this one object
        return api


class Seen:
    """A watcher of the job list: the present rows, and the names of jobs that were ever removed."""

    def __init__(self, backend: KubernetesBackend) -> None:
        self._backend, self._changed = backend, asyncio.Event()
        self.rows: dict[str, JobRow] = {}
        self.removed: list[str] = []

    async def follow(self) -> None:
        names = {}
        async for delta in self._backend.watch_jobs():
            for row in delta.changed:
                names[row.id] = row.name
                self.rows[row.name] = row
            self.removed += [names[job] for job in delta.removed]
            self._changed.set()

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(LONGEST):
            while not holds():
                self._changed.clear()
                if not holds():
                    await self._changed.wait()


@asynccontextmanager
async def cockpit_with(file: Path, namespace: str, lists: Lists | None = None) -> AsyncIterator[KubernetesBackend]:
    """Open the context of a kubeconfig."""
    clock = SystemClock()

    def connect() -> Api:
        api = Api(Connection("real", (str(file),), clock.now))
        return lists.of(api) if lists is not None else api

    backend = KubernetesBackend("real", connect, namespace, clock, Random(1), "robot")
    try:
        yield backend
    finally:
        await backend.close()


@asynccontextmanager
async def watching(backend: KubernetesBackend) -> AsyncIterator[Seen]:
    seen, tasks = Seen(backend), Tasks()
    tasks.start(seen.follow(), "the watcher")
    try:
        yield seen
    finally:
        await tasks.cancel_all()


async def until_state(backend: KubernetesBackend, phase: Phase, reason: str = "") -> ConnectionState:
    """Wait for a state of the connection, and return it."""
    async with aclosing(backend.connections()) as states, asyncio.timeout(LONGEST):
        async for state in states:
            if state.phase is phase and reason in state.reason:
                return state
    raise AssertionError("states never end")


async def until_shown(backend: KubernetesBackend, holds: Callable[[], bool]) -> None:
    """Wait until the cockpit shows it, after any change of anything."""
    async with aclosing(backend.watch_jobs(anything=True)) as watch, asyncio.timeout(LONGEST):
        async for _ in watch:
            if holds():
                return


@pytest.mark.req("TR-04", "KU-02")
async def test_a_server_that_restarts_takes_nothing_from_the_screen(fragile: RealKubernetes, here: str) -> None:
    create_pod(fragile.admin, here, fake_pod("before", cards=1))
    lists = Lists()
    async with cockpit_with(fragile.kubeconfig(ADMIN), here, lists) as backend, watching(backend) as seen:
        await seen.until(lambda: "before" in seen.rows)
        fragile.daemons.kill(API_SERVER)
        stale = await until_state(backend, Phase.STALE, "does not answer")
        assert stale.good_at is not None
        assert [row.name for row in await backend.jobs()] == ["before"]
        assert backend.silence == backend.connection.reason
        await asyncio.to_thread(fragile.start_api_server)
        await until_state(backend, Phase.CONNECTED)
        create_pod(fragile.admin, here, fake_pod("after", cards=1))
        await seen.until(lambda: "after" in seen.rows)
        assert seen.removed == []
        assert backend.capabilities.why_not("nodes") == ""
        assert lists.most == 1


@pytest.mark.req("TR-04", "KU-02")
async def test_a_server_that_hangs_is_noticed_although_no_watch_ends(
    fragile: RealKubernetes, here: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_pod(fragile.admin, here, fake_pod("before", cards=1))
    async with cockpit_with(fragile.kubeconfig(ADMIN), here) as backend, watching(backend) as seen:
        await seen.until(lambda: "before" in seen.rows)
        monkeypatch.setattr(wire, "REQUEST_SECONDS", 2.0)
        fragile.daemons.pause(API_SERVER)
        try:
            stale = await until_state(backend, Phase.STALE, "no answer in time")
            assert stale.good_at is not None
            assert [row.name for row in await backend.jobs()] == ["before"]
        finally:
            fragile.daemons.go_on(API_SERVER)
        monkeypatch.setattr(wire, "REQUEST_SECONDS", 30.0)
        await until_state(backend, Phase.CONNECTED)
        create_pod(fragile.admin, here, fake_pod("after", cards=1))
        await seen.until(lambda: "after" in seen.rows)
        assert seen.removed == []


@pytest.mark.req("TR-04", "KU-02")
async def test_after_a_compaction_what_is_gone_is_missing_and_the_rest_stays(
    fragile: RealKubernetes, here: str
) -> None:
    for name in ("stays", "goes"):
        create_pod(fragile.admin, here, fake_pod(name, cards=1))
    async with cockpit_with(fragile.kubeconfig(ADMIN), here) as backend, watching(backend) as seen:
        await seen.until(lambda: {"stays", "goes"} <= seen.rows.keys())
        # While the cockpit is cut off, a pod is deleted and the past forgotten: no watch can tell of it.
        copies = backend._inventory._copies
        await copies.stop()
        pod = f"/api/v1/namespaces/{here}/pods/goes"
        fragile.admin.call("DELETE", f"{pod}?gracePeriodSeconds=0")
        await asyncio.to_thread(fragile.forget_past)
        for each in copies._reflectors():
            copies._tasks.start(each.run(), "a watch")
        # What is deleted before its end counts as stopped.
        await seen.until(lambda: seen.rows["goes"].ended_at is not None)
        assert (seen.removed, seen.rows["stays"].ended_at) == ([], None)
        await until_state(backend, Phase.CONNECTED)


@pytest.mark.req("KU-01", "TR-04")
async def test_a_right_that_is_taken_away_takes_its_kind_and_nothing_else(fragile: RealKubernetes, here: str) -> None:
    create_pod(fragile.admin, here, fake_pod("train", cards=1))
    fragile.admin.create(f"{RBAC}/clusterroles", role("see-nodes", "nodes"))
    fragile.admin.create(f"{RBAC}/clusterrolebindings", bound("see-nodes", VIEWER))
    async with cockpit_with(fragile.kubeconfig(VIEWER), here) as backend, watching(backend) as seen:
        await seen.until(lambda: "train" in seen.rows)
        await until_shown(backend, lambda: not backend.capabilities.why_not("nodes"))
        assert [row.node.name for row in await backend.nodes()][:1] == ["gpu-0000"]
        fragile.admin.delete(f"{RBAC}/clusterrolebindings/see-nodes")
        await until_shown(backend, lambda: bool(backend.capabilities.why_not("nodes")))
        assert 'User "viewer" cannot' in backend.capabilities.why_not("nodes")
        with pytest.raises(RequestRefused, match="Nodes cannot be listed"):
            await backend.nodes()
        create_pod(fragile.admin, here, fake_pod("later", cards=1))
        await seen.until(lambda: "later" in seen.rows)
        fragile.admin.create(f"{RBAC}/clusterrolebindings", bound("see-nodes", VIEWER))
        await until_shown(backend, lambda: not backend.capabilities.why_not("nodes"))
        assert [row.node.name for row in await backend.nodes()][:1] == ["gpu-0000"]
        assert (seen.removed, backend._inventory.absent.get(PODS)) == ([], None)


@pytest.mark.req("KU-01", "TR-04")
async def test_whoever_may_see_no_pods_any_more_is_told_and_gets_them_back(fragile: RealKubernetes, here: str) -> None:
    create_pod(fragile.admin, here, fake_pod("train", cards=1))
    async with cockpit_with(fragile.kubeconfig(ALICE), here) as backend, watching(backend) as seen:
        await seen.until(lambda: "train" in seen.rows)
        fragile.revoke(ALICE, here)
        await seen.until(lambda: seen.removed == ["train"])
        with pytest.raises(RequestRefused, match=r'Pods cannot be listed: .*User "alice" cannot list'):
            await backend.jobs()
        del seen.rows["train"]
        fragile.grant(ALICE, here)
        await seen.until(lambda: "train" in seen.rows)


@pytest.mark.req("KU-01", "TR-04")
async def test_a_token_that_ends_is_renewed_and_one_that_is_not_is_named(
    fragile: RealKubernetes, here: str, tmp_path: Path
) -> None:
    plugin, file = CredentialPlugin(tmp_path), tmp_path / "robot.kubeconfig"
    fragile.write_kubeconfig(file, "robot", plugin.entry)
    good, ended = (fragile.service_token(here, "robot", seconds) for seconds in (600, -1))
    fragile.admin.create(f"{RBAC}/namespaces/{here}/rolebindings", service_account(here))
    create_pod(fragile.admin, here, fake_pod("train", cards=1))
    # The plugin says of each token that it is accepted for an hour: only the server knows better.
    plugin.answer(ended, 3600)
    async with cockpit_with(file, here) as backend:
        api = backend._session._api
        credentials = await api._connection.get()
        plugin.answer(good, 3600)
        await backend.jobs()
        assert (await api._connection.get()).credentials.authorization != credentials.credentials.authorization
        assert backend.user == f"system:serviceaccount:{here}:robot"
        async with watching(backend) as seen:
            await seen.until(lambda: "train" in seen.rows)
            # As when it has ended: the connection has a token that the server refuses, and the plugin no better one.
            plugin.answer(ended, 3600)
            await api._connection.renew((await api._connection.get()).credentials)
            stale = await until_state(backend, Phase.STALE, "does not accept the credentials")
            assert "Log in again" in stale.reason
            assert "train" in seen.rows
            assert seen.removed == []
            plugin.answer(good, 3600)
            await until_state(backend, Phase.CONNECTED)


@pytest.mark.req("KU-01", "TR-04")
async def test_a_context_that_leaves_the_kubeconfig_is_named_while_it_is_open(
    fragile: RealKubernetes, here: str, tmp_path: Path
) -> None:
    plugin, file = CredentialPlugin(tmp_path), tmp_path / "robot.kubeconfig"
    fragile.write_kubeconfig(file, "robot", plugin.entry)
    plugin.answer(fragile.service_token(here, "robot", 600), 3600)
    fragile.admin.create(f"{RBAC}/namespaces/{here}/rolebindings", service_account(here))
    create_pod(fragile.admin, here, fake_pod("train", cards=1))
    async with cockpit_with(file, here) as backend, watching(backend) as seen:
        await seen.until(lambda: "train" in seen.rows)
        before = file.read_text()
        plugin.answer(fragile.service_token(here, "robot", -1), 3600)
        connection = backend._session._api._connection
        await connection.renew((await connection.get()).credentials)
        file.write_text(before.replace('"name": "real"', '"name": "other"'))
        stale = await until_state(backend, Phase.STALE, "has no context 'real'; it has other")
        assert stale.good_at is not None
        assert list(seen.rows) == ["train"]
        plugin.answer(fragile.service_token(here, "robot", 600), 3600)
        file.write_text(before)
        await until_state(backend, Phase.CONNECTED)


def role(name: str, *kinds: str) -> dict[str, object]:
    return {"metadata": {"name": name}, "rules": [{"apiGroups": [""], "resources": list(kinds), "verbs": READ}]}


READ = ["get", "list", "watch"]
GROUP = "rbac.authorization.k8s.io"


def bound(name: str, user: str) -> dict[str, object]:
    return {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": name},
        "subjects": [{"apiGroup": GROUP, "kind": "User", "name": user}],
    }


def service_account(namespace: str) -> dict[str, object]:
    """Give the robot of a namespace all rights there."""
    return {
        "metadata": {"name": "robot"},
        "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": "admin"},
        "subjects": [{"kind": "ServiceAccount", "name": "robot", "namespace": namespace}],
    }
