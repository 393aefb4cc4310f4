"""The contract of all backends over a real Slurm, by its commands."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from msgspec.structs import replace

from cockpit.backends.slurm.backend import SlurmBackend
from cockpit.model.spec import JobSpec
from tests.backends.contract import BackendContract
from tests.real.slurm.conftest import backend_for
from tests.real.slurm.real_cluster import RealCluster

pytestmark = [pytest.mark.real, pytest.mark.real_slurm]


@pytest.fixture(scope="module")
def with_urgent(cluster: RealCluster) -> RealCluster:
    """A cluster whose QOS has the names of the words for a priority."""
    cluster.keep_accounts("add qos urgent\nmodify user where name=root set qos+=urgent\n")
    return cluster


@pytest.fixture
async def backend(with_urgent: RealCluster) -> AsyncIterator[SlurmBackend]:
    made = backend_for(with_urgent, "root")
    yield made
    await made.close()
    with_urgent.ask("scancel", "--user=root")


class TestContract(BackendContract):
    """An administrator of the cluster uses its commands."""

    def prepared(self, spec: JobSpec) -> JobSpec:
        return replace(spec, output="/var/tmp")
