"""Licences of a real cluster, of slurm.conf and of slurmdbd: a job that waits for one has no start in the plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cockpit.model.forecast import Forecast
from cockpit.model.ids import JobId
from cockpit.model.job import JobState
from cockpit.model.reasons import SchedulerReason
from tests.real.slurm.conftest import eventually
from tests.real.slurm.real_cluster import ADA

if TYPE_CHECKING:
    from cockpit.backends.slurm.backend import SlurmBackend
    from tests.real.slurm.real_cluster import RealCluster

pytestmark = [pytest.mark.real, pytest.mark.real_slurm]
REMOTE = ("name=fluent", "server=flex")


@pytest.mark.req("SL-11", "SL-14", "SC-12")
async def test_a_job_that_waits_for_a_licence_is_planned_no_start(emptied: RealCluster, root: SlurmBackend) -> None:
    def submit(*options: str) -> JobId:
        return JobId(emptied.submit(ADA, "-pbatch", "--mem=100", *options, run="sleep 600"))

    fluent = (*REMOTE, "count=10", "type=license", "cluster=cockpit", "percentallowed=20")
    assert emptied.ask("sacctmgr", "-i", "add", "resource", *fluent) is not None
    try:
        await eventually(root.queues, lambda shown: any(row.name == "fluent@flex" for row in shown.rows))
        everywhere = submit("-N4", "-n4", "-t10", "-Lmatlab:3,fluent@flex:2")
        await eventually(root.jobs, lambda rows: [row.state for row in rows] == [JobState.RUNNING])
        # all three need a node to themselves, in ten minutes; the first two have no licence then either
        local, remote, plain = (
            submit("-N1", "--exclusive", "-t5", *more) for more in (["-Lmatlab:2"], ["-Lfluent@flex"], [])
        )
        await eventually(root.jobs, lambda rows: len(rows) == 4)
        for job, name in ((local, "matlab: 3 of 4 in use, 2 asked"), (remote, "fluent@flex: 2 of 2 in use, 1 asked")):
            outlook = await root.explain(job)
            assert outlook.forecast == Forecast()
            assert outlook.explanation is not None
            assert isinstance(outlook.explanation.reason, SchedulerReason)
            assert name in outlook.explanation.reason.about
        forecast = (await root.explain(plain)).forecast
        assert forecast.likely_at is not None
        assert [each.job for each in forecast.after] == [everywhere]
    finally:
        emptied.clear()
        emptied.ask("sacctmgr", "-i", "delete", "resource", *REMOTE)
