"""What a real cluster shows beside plain jobs: arrays, components, steps, files, slices of cards, licences, history."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from cockpit.model.asking import LogRequest
from cockpit.model.ids import JobId, rest_id, task_id
from cockpit.model.job import JobState
from cockpit.model.view import QueueKind
from cockpit.present.reasons import reason_sentence
from tests.real.slurm.conftest import PATIENCE, eventually
from tests.real.slurm.real_cluster import ADA, BEN

if TYPE_CHECKING:
    from collections.abc import Callable

    from cockpit.backends.slurm.backend import SlurmBackend
    from cockpit.model.jobrow import JobRow
    from cockpit.model.view import NodeRow, QueueRow
    from tests.real.slurm.real_cluster import RealCluster

pytestmark = [pytest.mark.real, pytest.mark.real_slurm]

SMALL = ("-pbatch", "--mem=100", "-t10")


async def rows_of(backend: SlurmBackend) -> dict[int, JobRow]:
    return {row.id: row for row in await backend.jobs()}


@pytest.mark.req("SL-10", "SL-21")
async def test_a_long_array_is_one_row_and_actions_on_it_keep_running_tasks(
    emptied: RealCluster, root: SlurmBackend
) -> None:
    array = emptied.submit(ADA, *SMALL, "--array=0-1999%2", run="sleep 600")

    def settled(rows: dict[int, JobRow]) -> bool:
        return len(rows) == 3 and sum(row.state is JobState.RUNNING for row in rows.values()) == 2

    rows = await eventually(lambda: rows_of(root), settled)
    rest = rows[rest_id(array)]
    assert (len(rest.tasks), rest.array and rest.array.at_once) == (1998, 2)
    assert (await root.explain(task_id(array, 1500))).job == task_id(array, 1500)
    await root.hold(rest.id)
    held = await eventually(lambda: rows_of(root), lambda rows: "held by" in said(rows[rest_id(array)]))
    assert sorted(row.state for row in held.values()) == [JobState.QUEUED, JobState.RUNNING, JobState.RUNNING]
    await root.cancel(rest.id)
    await eventually(lambda: rows_of(root), lambda rows: rest_id(array) not in rows and len(rows) == 2)


def said(row: JobRow) -> str:
    return reason_sentence(row.reason, row.submitted_at, None) if row.reason is not None else ""


@pytest.mark.req("SL-10")
async def test_the_components_of_a_job_are_listed_together(emptied: RealCluster, root: SlurmBackend) -> None:
    more = (":", "-n1", "--mem=100", "-pbatch", "-t10")
    first = emptied.submit(BEN, *SMALL, "-Jhet", *more, run="sleep 600")
    rows = await eventually(
        lambda: rows_of(root), lambda rows: [row.state for row in rows.values()] == [JobState.RUNNING] * 2
    )
    assert [row.component for row in rows.values()] == [(first, 0), (first, 1)]


@pytest.mark.req("SL-10")
async def test_a_job_that_runs_has_its_steps(emptied: RealCluster, root: SlurmBackend) -> None:
    job = emptied.submit(BEN, *SMALL, "-Jsteps", run="until srun sleep 600; do sleep 1; done")
    running = {("batch", "running"), ("sleep", "running")}
    await eventually(
        lambda: root.job(JobId(job)),
        lambda detail: running <= {(step.command, step.state) for step in detail.steps},
    )


@pytest.mark.req("SL-10")
async def test_logs_are_found_by_every_pattern(emptied: RealCluster, ada: SlurmBackend) -> None:
    patterns = ("%j", "%J", "%A", "%a", "%x", "%u", "%n%t", "%s", "%%", "%5j", "%3t")
    jobs = {
        emptied.submit(ADA, *SMALL, f"--output=out-{number}-{pattern}", "-Jpat", run=f"echo {number}"): number
        for number, pattern in enumerate(patterns)
    }
    array = emptied.submit(ADA, *SMALL, "--array=12", "--output=arr.%A.%a.%J.%j", run="echo task")
    for job, number in jobs.items():
        assert (await ada.wait(JobId(job), timeout_seconds=60)) is not None
        assert (await ada.logs(LogRequest(job=JobId(job)))).data == f"{number}\n".encode(), patterns[number]
    assert (await ada.wait(task_id(array, 12), timeout_seconds=60)) is not None
    assert (await ada.logs(LogRequest(job=task_id(array, 12)))).data == b"task\n"


@pytest.mark.req("SL-11", "SL-13")
async def test_slices_of_cards_and_licences(emptied: RealCluster, root: SlurmBackend) -> None:
    emptied.submit(ADA, *SMALL, "--gres=gpu:a100_1g.5gb:2", "-Jmig", run="sleep 600")
    emptied.submit(ADA, *SMALL, "-wn2", "--gres=shard:3", "-Jshard", run="sleep 600")
    lent = emptied.submit(BEN, *SMALL, "-Lmatlab:3", "-Jlent", run="sleep 600")

    async def nodes() -> dict[str, NodeRow]:
        return {row.node.name: row for row in await root.nodes()}

    def placed(rows: dict[str, NodeRow]) -> bool:
        return {use.name for name in ("n4", "n2") for use in rows[name].slices} == {"mig", "shard"}

    shown = await eventually(nodes, placed)
    assert [(use.card, use.slot, use.milli, use.name) for use in shown["n4"].slices] == [
        (0, 0, 142, "mig"),
        (0, 1, 142, "mig"),
    ]
    assert [(use.milli, use.name) for use in shown["n2"].slices] == [(750, "shard")]
    waiting = emptied.submit(ADA, *SMALL, "-Lmatlab:2", "-Jwants", run="true")

    async def licences() -> QueueRow:
        return next(row for row in (await root.queues()).rows if row.kind is QueueKind.LICENCE)

    row = await eventually(licences, lambda row: row.waiting == 1)
    assert (row.name, row.running, row.used, row.max) == ("matlab", 1, {"license": 3000}, {"license": 4000})
    await eventually(lambda: rows_of(root), lambda rows: said(rows[waiting]).startswith("waits for licences"))
    outlook = await root.explain(JobId(waiting))
    assert outlook.holders == (lent,)
    assert outlook.explanation is not None
    assert "matlab: 3 of 4 in use, 2 asked" in reason_sentence(outlook.explanation.reason, row.since or 0, None)


@pytest.mark.req("UI-11", "SL-13")
async def test_the_states_that_a_watching_cockpit_sees_are_stored(emptied: RealCluster, root: SlurmBackend) -> None:
    watched = aiter(root.watch_jobs(anything=True))

    async def until(job: int, seen: Callable[[JobRow], object]) -> None:
        while not any(row.id == job and seen(row) for row in (await anext(watched)).changed):
            pass

    await anext(watched)
    stage = emptied.submit(ADA, *SMALL, "-Jstage", run="sleep 600")
    after = emptied.submit(ADA, *SMALL, f"-dafterok:{stage}", "-Jafter", run="true")
    async with asyncio.timeout(PATIENCE):
        await until(stage, lambda row: row.state is JobState.RUNNING)
        emptied.as_person(ADA, "scontrol", "hold", str(after))
        await until(after, lambda row: said(row) == f"held by {ADA}")
        emptied.as_person(ADA, "scancel", str(stage))
        await until(stage, lambda row: row.ended_at is not None)
        await anext(watched)
    detail = await root.job(JobId(after))
    assert detail.recorded
    # once what it waits for is gone, Slurm may call the same hold an administrator's
    assert type(detail.waited[-1].reason).__name__ == "Held"
    kinds = [type(each.body).__name__ for each in (await root.job(JobId(stage))).events]
    assert kinds == ["JobSubmitted", "JobPlaced", "JobEnded"]
