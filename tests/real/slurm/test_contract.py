"""The contract of all backends over a real Slurm: by its commands, and through slurmrestd."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
from msgspec.structs import replace

from cockpit.backends.slurm.backend import SlurmBackend
from cockpit.model.spec import JobSpec
from tests.backends.contract import BackendContract
from tests.real.slurm.conftest import backend_for
from tests.real.slurm.real_cluster import RealCluster
from tests.real.slurm.rest_daemon import RestDaemon

pytestmark = [pytest.mark.real, pytest.mark.real_slurm]

COMMANDS, SOCKET, HTTP = "commands", "slurmrestd socket", "slurmrestd http"


@pytest.fixture(scope="module")
def with_urgent(cluster: RealCluster) -> RealCluster:
    """A cluster whose QOS has the names of the words for a priority."""
    cluster.keep_accounts("add qos urgent\nmodify user where name=root set qos+=urgent\n")
    return cluster


@pytest.fixture(scope="module")
def own_rest(cluster: RealCluster) -> Iterator[RestDaemon]:
    daemon = RestDaemon(cluster, "root")
    yield daemon
    daemon.stop()


@pytest.fixture(scope="module")
def http_rest(cluster: RealCluster) -> Iterator[RestDaemon]:
    daemon = RestDaemon(cluster)
    yield daemon
    daemon.stop()


@pytest.fixture(params=[COMMANDS, SOCKET, HTTP])
async def backend(with_urgent: RealCluster, request: pytest.FixtureRequest) -> AsyncIterator[SlurmBackend]:
    if request.param == COMMANDS:
        made = backend_for(with_urgent, "root")
    elif request.param == SOCKET:
        made = request.getfixturevalue("own_rest").over_socket("root")
    else:
        made = request.getfixturevalue("http_rest").over_http("root")
    await made.status()  # what slurmrestd lacks depends on its version, which the first answer has
    yield made
    await made.close()
    with_urgent.ask("scancel", "--user=root")


class TestContract(BackendContract):
    """An administrator of the cluster uses each way into it."""

    def prepared(self, spec: JobSpec) -> JobSpec:
        return replace(spec, output="/var/tmp")
