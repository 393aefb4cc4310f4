"""Rights that RBAC gives and takes away while cockpit is connected to a real API server."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING

import pytest

from cockpit.backends.kubernetes import access_reviews, rights
from cockpit.errors import RequestRefused
from cockpit.model.job import JobState
from cockpit.model.refusal import RefusalKind
from cockpit.model.spec import Access
from tests.real.kubernetes.cluster import ALICE, RBAC
from tests.real.kubernetes.daemons import wait_until
from tests.real.kubernetes.pods import create_pod, fake_pod
from tests.real.kubernetes.test_backend import cockpit_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cockpit.backends.kubernetes.backend import KubernetesBackend
    from cockpit.model.jobrow import JobRow
    from tests.real.kubernetes.cluster import RealKubernetes

pytestmark = [pytest.mark.real, pytest.mark.real_kubernetes, pytest.mark.req("KU-01")]

LONGEST = 90.0
READS_ALL = f"{RBAC}/clusterrolebindings/alice-reads-all"


@pytest.fixture
def readers(cluster: RealKubernetes) -> Iterator[None]:
    """What lets alice read the whole cluster is gone afterwards."""
    yield
    cluster.admin.delete(READS_ALL)


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask about rights every second."""
    monkeypatch.setattr(rights, "REVIEW_SECONDS", 0.2)
    monkeypatch.setattr(rights, "OLD_SECONDS", 1.0)
    monkeypatch.setattr(access_reviews, "OLD_SECONDS", 1.0)


async def until(backend: KubernetesBackend, holds: Callable[[dict[str, JobRow]], bool]) -> None:
    """Wait until the rows of the jobs, by name, are so."""
    rows: dict[str, JobRow] = {}
    async with asyncio.timeout(LONGEST), aclosing(backend.watch_jobs(anything=True)) as watch:
        async for delta in watch:
            rows = {name: row for name, row in rows.items() if row.id not in delta.removed}
            rows |= {row.name: row for row in delta.changed}
            if holds(rows):
                return


def may_delete(cluster: RealKubernetes, namespace: str) -> bool:
    asked = {"verb": "delete", "resource": "pods", "namespace": namespace}
    review = {"kind": "SelfSubjectAccessReview", "spec": {"resourceAttributes": asked}}
    answer = cluster.api(ALICE).create("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review)
    return bool(answer["status"]["allowed"])


@pytest.mark.usefixtures("often")
async def test_the_right_to_change_jobs_is_followed(cluster: RealKubernetes, namespace: str) -> None:
    create_pod(cluster.admin, namespace, fake_pod("train", cards=1))
    cluster.grant(ALICE, namespace, "view")
    async with cockpit_of(cluster, ALICE, namespace) as backend:
        await until(backend, lambda rows: rows["train"].may is Access.RW)
        cluster.revoke(ALICE, namespace)
        await until(backend, lambda rows: rows["train"].may is Access.RO)
        cluster.grant(ALICE, namespace)
        await until(backend, lambda rows: rows["train"].may is Access.RW)


async def test_a_refused_change_shows_that_the_right_is_gone(cluster: RealKubernetes, namespace: str) -> None:
    """Without waiting for the next question about rights, which would come after a minute."""
    create_pod(cluster.admin, namespace, fake_pod("train", cards=1))
    cluster.grant(ALICE, namespace, "view")
    async with cockpit_of(cluster, ALICE, namespace) as backend:
        (row,) = await backend.jobs()
        assert row.may is Access.RW
        cluster.revoke(ALICE, namespace)
        wait_until("alice may still delete", lambda: not may_delete(cluster, namespace))
        with pytest.raises(RequestRefused) as refused:
            await backend.cancel(row.id)
        assert refused.value.refusal.kind is RefusalKind.DENIED
        async with asyncio.timeout(rights.OLD_SECONDS / 2):
            await until(backend, lambda rows: rows["train"].may is Access.RO)


@pytest.mark.usefixtures("often", "readers")
async def test_namespaces_and_kinds_become_visible_and_leave(cluster: RealKubernetes, namespace: str) -> None:
    with cluster.namespace() as other:
        cluster.revoke(ALICE, other)
        for each in (namespace, other):
            create_pod(cluster.admin, each, fake_pod(f"in-{each}", cards=1))
        ours, theirs = f"in-{namespace}", f"in-{other}"
        async with cockpit_of(cluster, ALICE, namespace) as backend:
            await until(backend, lambda rows: ours in rows and theirs not in rows)
            cluster.admin.create(
                f"{RBAC}/clusterrolebindings",
                {
                    "metadata": {"name": "alice-reads-all"},
                    "roleRef": {
                        "apiGroup": "rbac.authorization.k8s.io",
                        "kind": "ClusterRole",
                        "name": "cluster-admin",
                    },
                    "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": ALICE}],
                },
            )
            await until(backend, lambda rows: theirs in rows and backend.capabilities.has("nodes"))
            cluster.admin.delete(READS_ALL)
            await until(backend, lambda rows: theirs not in rows and not backend.capabilities.has("nodes"))
            assert "nodes is forbidden" in backend.capabilities.why_not("nodes")
            assert {row.state for row in await backend.jobs(ended=True)} == {JobState.RUNNING}
