"""Definitions of kinds that are installed and removed while cockpit is connected to a real API server."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING

import pytest

from cockpit.model.job import JobState
from tests.real.kubernetes.cluster import ADMIN
from tests.real.kubernetes.conftest import running_cluster
from tests.real.kubernetes.kube_queue import DEFINITIONS, TREES, a_tree
from tests.real.kubernetes.test_backend import cockpit_of, until
from tools.kubernetes_programs import NODELET, SERVER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cockpit.backends.kubernetes.backend import KubernetesBackend
    from tests.real.kubernetes.cluster import RealKubernetes

pytestmark = [pytest.mark.real, pytest.mark.real_kubernetes, pytest.mark.req("KU-01", "KU-03")]

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
XGBOOST_JOBS = "/apis/kubeflow.org/v1/namespaces/{}/xgboostjobs"
LONGEST = 90.0
ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
XGBOOST_JOB = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "xgboostjobs.kubeflow.org"},
    "spec": {
        "group": "kubeflow.org",
        "scope": "Namespaced",
        "names": {
            "plural": "xgboostjobs",
            "singular": "xgboostjob",
            "kind": "XGBoostJob",
            "listKind": "XGBoostJobList",
        },
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": ANYTHING}}],
    },
}


@pytest.fixture
def bare_cluster() -> Iterator[RealKubernetes]:
    """A cluster without any operator, of the test's own."""
    if not (SERVER.is_built() and NODELET.is_built()):
        pytest.skip("Kubernetes is not built: `make setup-tests` says why (it needs Go)")
    with running_cluster(nodes=1) as made:
        yield made


async def until_so(backend: KubernetesBackend, holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(LONGEST), aclosing(backend.watch_jobs(anything=True)) as watch:
        async for _ in watch:
            if holds():
                return


async def test_kinds_come_and_go_with_their_jobs_and_with_what_can_be_done(bare_cluster: RealKubernetes) -> None:
    admin = bare_cluster.admin
    with bare_cluster.namespace() as namespace:
        async with cockpit_of(bare_cluster, ADMIN, namespace) as backend:
            assert await backend.jobs() == []
            admin.apply(XGBOOST_JOB, *DEFINITIONS)
            job = {"apiVersion": "kubeflow.org/v1", "kind": "XGBoostJob", "metadata": {"name": "boost"}, "spec": {}}
            admin.create(XGBOOST_JOBS.format(namespace), job)
            admin.create(TREES, a_tree(namespace, most=12))
            assert (await until(backend, "boost", lambda row: True)).state is JobState.QUEUED
            await until_so(backend, lambda: backend.capabilities.has("apply_quota"))
            await until_so(backend, lambda: backend._inventory.kube_queue.tree is not None)
            assert "root/team" in {row.path for row in (await backend.queues()).rows}
            for each in ("xgboostjobs.kubeflow.org", "elasticquotatrees.scheduling.sigs.k8s.io"):
                admin.delete(f"{CRDS}/{each}")
            await until(backend, "boost", lambda row: row.state is JobState.STOPPED)
            removed = "does not serve elasticquotatrees"
            await until_so(backend, lambda: removed in backend.capabilities.why_not("apply_quota"))
            assert (await backend.status()).trouble == ()
