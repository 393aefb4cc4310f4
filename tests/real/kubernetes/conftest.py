"""One real cluster for all tests of this folder, a namespace of its own for each of them, and clients of its users."""

from __future__ import annotations

import tempfile
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from kubernetes.aio.client import ApiClient, Configuration
from kubernetes.aio.config import load_kube_config
from kubernetes.aio.stream import WsApiClient

from tests.real.kubernetes.cluster import ALICE, RealKubernetes
from tools.kubernetes_programs import NODELET, SERVER

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

NODES, CARDS = 20, 8


@pytest.fixture(scope="package")
def cluster() -> Iterator[RealKubernetes]:
    if not (SERVER.is_built() and NODELET.is_built()):
        pytest.skip("Kubernetes is not built: `make setup-tests` says why (it needs Go)")
    with tempfile.TemporaryDirectory(prefix="cockpit-kubernetes-", ignore_cleanup_errors=True) as folder:
        made = RealKubernetes(Path(folder), nodes=NODES, cards=CARDS)
        try:
            made.begin()
            yield made
        finally:
            made.end()


@pytest.fixture
def namespace(cluster: RealKubernetes) -> Iterator[str]:
    with cluster.namespace() as name:
        yield name


@asynccontextmanager
async def client_of(cluster: RealKubernetes, user: str) -> AsyncIterator[ApiClient]:
    """The Kubernetes client as one of the users."""
    async with ApiClient(await _configuration(cluster, user)) as client:
        yield client


@asynccontextmanager
async def exec_client_of(cluster: RealKubernetes, user: str) -> AsyncIterator[WsApiClient]:
    """The same for `exec`, by WebSocket."""
    async with WsApiClient(await _configuration(cluster, user)) as client:
        yield client


async def _configuration(cluster: RealKubernetes, user: str) -> Configuration:
    configuration = Configuration()
    await load_kube_config(str(cluster.kubeconfig(user)), client_configuration=configuration)
    return configuration


@pytest.fixture
async def alice(cluster: RealKubernetes) -> AsyncIterator[ApiClient]:
    async with client_of(cluster, ALICE) as client:
        yield client
