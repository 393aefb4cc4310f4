"""The Kubernetes client of each user of a test cluster."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from kubernetes.aio.client import ApiClient, Configuration
from kubernetes.aio.config import load_kube_config
from kubernetes.aio.stream import WsApiClient

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from tests.real.kubernetes.cluster import RealKubernetes


@asynccontextmanager
async def open_client(kubeconfig: Path) -> AsyncIterator[ApiClient]:
    async with ApiClient(await _configuration(kubeconfig)) as client:
        yield client


def client_of(cluster: RealKubernetes, user: str) -> AbstractAsyncContextManager[ApiClient]:
    """The client as one of the users."""
    return open_client(cluster.kubeconfig(user))


@asynccontextmanager
async def exec_client_of(cluster: RealKubernetes, user: str) -> AsyncIterator[WsApiClient]:
    """The one for `exec`, by WebSocket."""
    async with WsApiClient(await _configuration(cluster.kubeconfig(user))) as client:
        yield client


async def _configuration(kubeconfig: Path) -> Configuration:
    configuration = Configuration()
    await load_kube_config(str(kubeconfig), client_configuration=configuration)
    return configuration
