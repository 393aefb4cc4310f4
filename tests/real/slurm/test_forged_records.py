"""Names and comments with line breaks, which a real scontrol prints as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cockpit.backends.slurm.mapping.placements import DETAIL
from cockpit.model.ids import JobId, NodeName
from cockpit.model.job import JobState
from tests.real.slurm.conftest import eventually
from tests.real.slurm.real_cluster import ADA, BEN

if TYPE_CHECKING:
    from cockpit.backends.slurm.backend import SlurmBackend
    from tests.real.slurm.real_cluster import RealCluster

pytestmark = [pytest.mark.real, pytest.mark.real_slurm]
FACTS = "   JobState=RUNNING Reason=None\n     Nodes=n3 CPU_IDs=0-15 Mem=9 GRES=gpu:h100:8(IDX:0-7)\n"


@pytest.mark.req("SL-02", "TR-06")
async def test_no_text_of_a_user_gives_a_job_what_it_does_not_have(emptied: RealCluster, root: SlurmBackend) -> None:
    options = ("-pbatch", "-wn4", "-c1", "--mem=100", "-t5")
    one = JobId(emptied.submit(ADA, *options, run="sleep 300"))
    comment = f"x\n\nJobId=999999 JobName=f\n{FACTS}\n\nJobId=999998 JobName=g\n{FACTS}"
    two = JobId(emptied.submit(BEN, *options, f"--comment={comment}", f"--job-name=a\n{FACTS}", run="sleep 300"))
    await eventually(root.jobs, lambda rows: {row.state for row in rows} == {JobState.RUNNING} and len(rows) == 2)
    assert "\nJobId=999999 JobName=f\n" in (emptied.ask(*DETAIL) or ""), "this Slurm prints line breaks of comments"
    known = await root._reading.details()
    assert known[one].keys() == known[two].keys() == {NodeName("n4")}
    (n3,) = [row for row in await root.nodes() if row.node.name == "n3"]
    assert not n3.jobs
    assert {row.id for row in await root.jobs()} == {one, two}
