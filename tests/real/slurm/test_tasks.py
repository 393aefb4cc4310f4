"""Tasks on any number of nodes (`-n 18`), on a real cluster: cockpit's own plan, Slurm's, and what then happens."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cockpit.model.ids import JobId, Millis
from cockpit.model.job import JobState
from cockpit.model.reasons import NotEnoughFree
from tests.real.slurm.conftest import eventually
from tests.real.slurm.real_cluster import ADA, BEN

if TYPE_CHECKING:
    from cockpit.backends.slurm.backend import SlurmBackend
    from cockpit.model.forecast import Outlook
    from cockpit.model.jobrow import JobRow
    from tests.real.slurm.real_cluster import RealCluster

pytestmark = [pytest.mark.real, pytest.mark.real_slurm]

MINUTE = 60_000


@pytest.mark.req("SL-14", "SC-12", "UI-32")
async def test_tasks_wait_for_and_start_on_as_many_nodes_as_it_takes(emptied: RealCluster, root: SlurmBackend) -> None:
    def fill(node: str, cpus: int, minutes: int) -> int:
        run = f"sleep {60 * minutes}"
        return emptied.submit(ADA, "-pbatch", f"-w{node}", f"-c{cpus}", "--mem=100", f"-t{minutes}", run=run)

    # CPUs free: 2 of n1, none of n2, 4 of n3, none of n4; after 10 min 8 of n1, after 20 min 8 of n2
    first, second = fill("n1", 6, 10), fill("n2", 8, 20)
    for node, cpus in (("n3", 12), ("n4", 8)):
        fill(node, cpus, 60)
    await eventually(root.jobs, lambda rows: sum(row.state is JobState.RUNNING for row in rows) == 4)
    spread = JobId(emptied.submit(BEN, "-pbatch", "-n18", "--mem=100", "-t10", run="sleep 600"))
    behind = JobId(emptied.submit(BEN, "-pbatch", "-n2", "--mem=100", "-t2", "--nice=1000", run="sleep 60"))

    async def row_of(job: JobId) -> JobRow:
        return {row.id: row for row in await root.jobs()}[job]

    async def outlook() -> Outlook:
        return await root.explain(spread)

    def agrees_with_slurm(found: Outlook) -> bool:
        """Both see that it waits for n1 and n2, 20 minutes. Slurm's first estimate may be of an earlier queue."""
        own = found.forecast.likely_at
        if own is None or found.scheduler_start_at is None or found.scheduler != "Slurm":
            return False
        return abs(own - found.scheduler_start_at) <= 3 * MINUTE

    told = await eventually(outlook, agrees_with_slurm)
    assert {each.job for each in told.forecast.after} >= {JobId(second)}
    starts = {each.job: each.at for each in await root.starts([spread])}
    assert starts[spread] == (await row_of(spread)).starts_by
    await eventually(lambda: row_of(behind), lambda row: row.state is JobState.RUNNING)  # it ends long before
    emptied.ask("scancel", str(second), str(first))
    placed = await eventually(lambda: row_of(spread), lambda row: row.state is JobState.RUNNING)
    assert placed.nodes == 3
    assert (emptied.ask("squeue", "-h", f"--jobs={spread}", "-o", "%N") or "").strip() == "n[1-3]"


async def planned(root: SlurmBackend, job: JobId) -> Millis | None:
    """The start in cockpit's own plan if all jobs run as long as they may; `likely_at` knows how long others ran."""
    judged = await root._mirror.judge(await root._reading.everything(closely=True))
    explanation = (await judged.explain(job)).explanation
    return explanation.reserved_at if explanation is not None else None


@pytest.mark.req("SL-14", "SL-11", "SC-12")
@pytest.mark.parametrize(
    ("options", "minutes"),
    [
        (("-n6", "--gpus=a100:6"), 20),  # two of n1 and all of n2, or the other way round
        (("-n2", "--gpus=a100:4"), 10),  # all of n1, which has more free by then
        (("-n3", "--gpus-per-task=a100:1", "--ntasks-per-node=3"), 10),
        (("-n8", "--gpus=a100:4", "--ntasks-per-gpu=2"), 10),
        (("-N2", "-n2", "--gpus=a100:5"), 20),
        (("-n4", "--gpus=h100:3", "--mem-per-gpu=1000"), 60),
    ],
)
async def test_cards_of_the_whole_job_wait_as_long_as_with_slurm(
    emptied: RealCluster, root: SlurmBackend, options: tuple[str, ...], minutes: int
) -> None:
    for node, cards, limit in (("n1", 2, 10), ("n2", 4, 20), ("n3", 8, 60)):
        wanted = ("-pbatch", f"-w{node}", f"--gres=gpu:{cards}", "--mem=100", f"-t{limit}")
        emptied.submit(ADA, *wanted, run=f"sleep {60 * limit}")
    await eventually(root.jobs, lambda rows: sum(row.state is JobState.RUNNING for row in rows) == 3)
    memory = () if any(each.startswith("--mem") for each in options) else ("--mem=100",)
    job = JobId(emptied.submit(BEN, "-pbatch", *options, *memory, "-t10", run="sleep 600"))

    async def outlook() -> Outlook:
        return await root.explain(job)

    told = await eventually(outlook, lambda found: found.scheduler_start_at is not None)
    own, began = await planned(root, job), (await root.job(job)).job.submitted_at
    assert own is not None
    assert told.scheduler_start_at is not None
    assert abs(told.scheduler_start_at - began - minutes * MINUTE) <= 2 * MINUTE
    assert abs(own - told.scheduler_start_at) <= 2 * MINUTE


@pytest.mark.req("SL-14", "SL-10", "SC-12")
async def test_components_that_start_together_are_planned_together(emptied: RealCluster, root: SlurmBackend) -> None:
    """One would fit at once, the other in 20 minutes: the nodes of the first one are free for others until then."""
    for node, cards, limit in (("n1", 4, 20), ("n2", 4, 40), ("n3", 8, 60)):
        wanted = ("-pbatch", f"-w{node}", f"--gres=gpu:{cards}", "--mem=100", f"-t{limit}")
        emptied.submit(ADA, *wanted, run=f"sleep {60 * limit}")
    await eventually(root.jobs, lambda rows: sum(row.state is JobState.RUNNING for row in rows) == 3)
    first = ("-pbatch", "-n3", "--mem=100", "-t10")
    second = ("--account=nlp", "-pgpu", "-n2", "--gpus=a100:2", "--mem=100", "-t10")
    leader = JobId(emptied.submit(BEN, *first, ":", *second, run="sleep 600"))
    other = JobId(leader + 1)

    async def rows() -> list[JobRow]:
        return [row for row in await root.jobs() if row.id in {leader, other}]

    listed = await eventually(rows, lambda found: [row.starts_by is not None for row in found] == [True, True])
    assert listed[0].starts_by == listed[1].starts_by
    for job, row in zip((leader, other), listed, strict=True):
        outlook = await root.explain(job)
        assert outlook.component == row.component == (leader, job - leader)
        assert outlook.scheduler_start_at == row.starts_by == (await root.starts([job]))[0].at
        own = await planned(root, leader)
        assert own is not None
        assert outlook.scheduler_start_at is not None
        assert abs(own - outlook.scheduler_start_at) <= 2 * MINUTE
        assert abs(own - row.submitted_at - 20 * MINUTE) <= 2 * MINUTE
        assert not outlook.what_ifs
    waits = (await root.explain(other)).explanation
    assert waits is not None
    assert isinstance(waits.reason, NotEnoughFree)
    assert waits.reason.card_models == ("a100",)
