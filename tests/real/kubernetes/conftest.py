"""One real cluster for all tests of this folder, a namespace of its own for each of them, and clients of its users."""

from __future__ import annotations

import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.real.kubernetes.clients import client_of
from tests.real.kubernetes.cluster import ALICE, RealKubernetes
from tests.real.kubernetes.training_operator import start_training_operator
from tools.kubernetes_programs import NODELET, SERVER, TRAINING_OPERATOR

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from kubernetes.aio.client import ApiClient

NODES, CARDS = 20, 8


@pytest.fixture(scope="package")
def cluster() -> Iterator[RealKubernetes]:
    if not (SERVER.is_built() and NODELET.is_built()):
        pytest.skip("Kubernetes is not built: `make setup-tests` says why (it needs Go)")
    with running_cluster(nodes=NODES) as made:
        yield made


@contextmanager
def running_cluster(*, nodes: int, backoff_seconds: int | None = None) -> Iterator[RealKubernetes]:
    """A cluster of a test's own, until the block ends."""
    with tempfile.TemporaryDirectory(prefix="cockpit-kubernetes-", ignore_cleanup_errors=True) as folder:
        made = RealKubernetes(Path(folder), nodes=nodes, cards=CARDS)
        made.backoff_seconds = backoff_seconds
        try:
            made.begin()
            yield made
        finally:
            made.end()


@pytest.fixture(scope="package")
def training_operator(cluster: RealKubernetes) -> None:
    """The training operator in the shared cluster, for the tests that ask for it and those after them."""
    if not TRAINING_OPERATOR.is_built():
        pytest.skip("the training operator is not built: `make setup-tests` says why (it needs Go)")
    if shutil.which("bwrap") is None:
        pytest.skip("bubblewrap is not installed")
    start_training_operator(cluster)


@pytest.fixture
def namespace(cluster: RealKubernetes) -> Iterator[str]:
    with cluster.namespace() as name:
        yield name


@pytest.fixture
async def alice(cluster: RealKubernetes) -> AsyncIterator[ApiClient]:
    async with client_of(cluster, ALICE) as client:
        yield client
