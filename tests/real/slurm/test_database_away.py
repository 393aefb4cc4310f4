"""A real cluster whose slurmdbd does not answer."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.real.slurm.real_cluster import ADA
from tests.real.slurm.rest_daemon import RestDaemon

if TYPE_CHECKING:
    from cockpit.backends.slurm.backend import SlurmBackend
    from tests.real.slurm.real_cluster import RealCluster

pytestmark = [pytest.mark.real, pytest.mark.real_slurm]
LONGEST_SECONDS = 12
"""For three pages; each of the four lists behind them had a time limit of ten seconds."""


@pytest.fixture
def rest(cluster: RealCluster) -> Iterator[RestDaemon]:
    daemon = RestDaemon(cluster, ADA)
    yield daemon
    daemon.stop()


@pytest.fixture
def silent(emptied: RealCluster) -> Iterator[RealCluster]:
    (number,) = (each.pid for each in emptied._processes if "slurmdbd" in str(each.args))
    os.kill(number, signal.SIGSTOP)
    yield emptied
    os.kill(number, signal.SIGCONT)


@pytest.mark.req("SL-04", "SL-15")
async def test_pages_come_without_accounting_in_a_few_seconds(silent: RealCluster, ada: SlurmBackend) -> None:
    silent.submit(ADA, "-pbatch", "--mem=100", "-t5", run="sleep 300")
    await _shows_pages_in_time(ada)


@pytest.mark.req("SL-01", "SL-04", "SL-15")
async def test_pages_come_without_accounting_through_slurmrestd_too(silent: RealCluster, rest: RestDaemon) -> None:
    silent.submit(ADA, "-pbatch", "--mem=100", "-t5", run="sleep 300")
    await _shows_pages_in_time(rest.over_socket(ADA))


async def _shows_pages_in_time(backend: SlurmBackend) -> None:
    began = time.monotonic()
    assert len(await backend.jobs()) == 1
    assert "the accounting database (slurmdbd) has not answered" in (await backend.accounts()).missing
    assert (await backend.overview()).trouble
    assert time.monotonic() - began < LONGEST_SECONDS
