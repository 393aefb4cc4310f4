"""A real Slurm cluster as a member of a fleet: orders in the jobs' names, over a link that is cut."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cockpit.model.fleetorder import order_of
from cockpit.model.job import JobState
from cockpit.model.spec import JobSpec, NodeSpec
from tests.real.fleet_member import fleet_of
from tests.real.slurm.real_cluster import ADA
from tests.runtime.remote_world import ANSWER, LATE, REQUEST

if TYPE_CHECKING:
    from pathlib import Path

    from cockpit.backends.slurm.backend import SlurmBackend
    from tests.real.slurm.real_cluster import RealCluster

pytestmark = [pytest.mark.real, pytest.mark.real_slurm, pytest.mark.req("FL-04", "FL-08")]


def a_job(name: str, home: Path) -> JobSpec:
    """Leaves a line with its Slurm number in a file when it begins."""
    command = f"bash -c 'echo $SLURM_JOB_ID >> {home}/{name}.begun'"
    return JobSpec(name=name, command=command, output=str(home), specs=(NodeSpec(cpus=1, memory_mib=16),))


@pytest.mark.parametrize("loss", [REQUEST, ANSWER, LATE])
async def test_no_job_begins_twice_whatever_call_is_lost(emptied: RealCluster, ada: SlurmBackend, loss: str) -> None:
    home = emptied.home(ADA)
    async with fleet_of("west", ada) as fleet:
        for operation in ("parts", "nodes", "submit", "release"):
            name = f"{operation}-{loss}"
            fleet.cut_first(operation, loss)
            job = await fleet.submit(a_job(name, home))
            await fleet.until(lambda job=job: fleet.job(job).ended)
            assert fleet.job(job).state is JobState.SUCCEEDED, name
            begun = (home / f"{name}.begun").read_text().split()
            assert len(begun) == 1, name
            (part,) = fleet.job(job).attempt.remote
            assert part.own == begun[0]
        held = emptied.ask("squeue", "-h", "-o", "%j").split()
        await fleet.until(lambda: not fleet.members.remote["west"].seen)
        assert all(order_of(each) is not None for each in held)


async def test_a_cancelled_job_is_over_only_when_slurm_says_so(emptied: RealCluster, ada: SlurmBackend) -> None:
    home = emptied.home(ADA)
    async with fleet_of("west", ada) as fleet:
        job = await fleet.submit(JobSpec(name="long", command="sleep 600", output=str(home)))
        await fleet.until(lambda: fleet.job(job).state is JobState.RUNNING)
        fleet.link.cut = lambda *_: REQUEST
        await fleet.cancel(job)
        rounds = fleet.members.remote["west"].rounds
        await fleet.until(lambda: fleet.members.remote["west"].rounds >= rounds + 2)
        assert not fleet.job(job).ended
        fleet.link.cut = lambda *_: ""
        await fleet.until(lambda: fleet.job(job).ended)
        assert fleet.job(job).state is JobState.STOPPED
        assert emptied.ask("squeue", "-h", "-t", "R", "-o", "%j").split() == []
