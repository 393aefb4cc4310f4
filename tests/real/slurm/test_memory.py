"""Jobs that name no memory, on a real cluster: cockpit's plan before and after submission, and Slurm's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from cockpit.model.batchscript import BatchScript
from cockpit.model.ids import JobId
from cockpit.model.job import JobState
from cockpit.model.spec import HomeAccess, Mode
from tests.builders import a_spec
from tests.real.slurm.conftest import eventually
from tests.real.slurm.real_cluster import ADA

if TYPE_CHECKING:
    from cockpit.backends.slurm.backend import SlurmBackend
    from cockpit.model.forecast import Outlook
    from tests.real.slurm.real_cluster import RealCluster

pytestmark = [pytest.mark.real, pytest.mark.real_slurm]
MINUTE = 60_000
SCRIPT = BatchScript(text="#!/bin/sh\n#SBATCH -c 1\nsleep 60\n", work_dir="/tmp")


@pytest.mark.req("SL-14", "SC-12", "LA-70")
async def test_a_job_that_names_no_memory_waits_for_a_node_with_all_its_memory(
    emptied: RealCluster, ada: SlurmBackend
) -> None:
    def fill(node: str, minutes: int) -> int:
        options = ("-pbatch", f"-w{node}", "-c1", "--mem=100", f"-t{minutes}")
        return emptied.submit(ADA, *options, run=f"sleep {60 * minutes}")

    # no node has all its memory before n3, in 20 minutes, though all but 100 MiB of each is free
    for node, minutes in (("n1", 60), ("n2", 60), ("n4", 40)):
        fill(node, minutes)
    first = JobId(fill("n3", 20))
    running = await eventually(ada.jobs, lambda rows: sum(row.state is JobState.RUNNING for row in rows) == 4 and rows)
    started_at = next(row.started_at for row in running if row.id == first)
    assert started_at is not None
    ends_at = started_at + 20 * MINUTE

    spec = replace(a_spec("x", cpus=1, memory_mib=1024), script=SCRIPT, account="vision", partitions=("batch",))
    spec = replace(spec, output="/tmp", time_limit_seconds=300, mode=Mode.SLURM, home=HomeAccess.RW)
    (before,) = await ada.predict([spec])
    job = JobId(emptied.submit(ADA, "-pbatch", "-c1", "-t5", run="sleep 60"))

    async def outlook() -> Outlook:
        return await ada.explain(job)

    def is_planned(found: Outlook) -> bool:
        return found.scheduler_start_at is not None and found.forecast.likely_at is not None

    after = await eventually(outlook, is_planned)
    # how soon depends on how long the user's earlier jobs ran; planned with too little memory, both would start now
    for forecast in (before.forecast, after.forecast):
        assert not forecast.now
        assert forecast.likely_at is not None, (before, after)
        assert forecast.after
    assert after.scheduler_start_at is not None
    assert abs(after.scheduler_start_at - ends_at) < 2 * MINUTE
