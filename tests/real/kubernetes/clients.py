"""The Kubernetes client of each user of a test cluster."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from kubernetes.aio.client import ApiClient, Configuration
from kubernetes.aio.config import load_kube_config
from kubernetes.aio.stream import WsApiClient

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.real.kubernetes.cluster import RealKubernetes


@asynccontextmanager
async def client_of(cluster: RealKubernetes, user: str) -> AsyncIterator[ApiClient]:
    """The client as one of the users."""
    async with ApiClient(await _configuration(cluster, user)) as client:
        yield client


@asynccontextmanager
async def exec_client_of(cluster: RealKubernetes, user: str) -> AsyncIterator[WsApiClient]:
    """The one for `exec`, by WebSocket."""
    async with WsApiClient(await _configuration(cluster, user)) as client:
        yield client


async def _configuration(cluster: RealKubernetes, user: str) -> Configuration:
    configuration = Configuration()
    await load_kube_config(str(cluster.kubeconfig(user)), client_configuration=configuration)
    return configuration
