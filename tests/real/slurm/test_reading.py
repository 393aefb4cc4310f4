from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cockpit.backends.slurm.mapping.completeness import flaw
from cockpit.backends.slurm.mapping.priorities import COMMAND
from cockpit.backends.slurm.wire.local import LocalCommands
from cockpit.backends.snapshot.backend import open_snapshot
from cockpit.model.asking import LogRequest
from cockpit.model.ids import JobId
from cockpit.model.job import JobState
from cockpit.model.priority import FactorName
from cockpit.present.reasons import reason_sentence
from tests.real.slurm.conftest import backend_for, eventually
from tests.real.slurm.real_cluster import ADA, BEN

if TYPE_CHECKING:
    from cockpit.backends.slurm.backend import SlurmBackend
    from cockpit.model.jobrow import JobRow
    from cockpit.model.view import Priorities
    from tests.real.slurm.real_cluster import RealCluster

pytestmark = [pytest.mark.real, pytest.mark.real_slurm]
LAST = 1_000_000
"""So nice that whatever anybody has used before, everybody else comes first."""


async def rows_of(backend: SlurmBackend) -> dict[int, JobRow]:
    return {row.id: row for row in await backend.jobs()}


@pytest.mark.req("SL-10", "SL-11", "SL-13")
async def test_a_running_cluster_is_shown_correctly(emptied: RealCluster, root: SlurmBackend) -> None:
    big = emptied.submit(BEN, "-pgpu", "--gres=gpu:h100:8", "-t120", "-Jbig", run="sleep 600")
    after = emptied.submit(ADA, "-pdebug", f"-dafterok:{big}", "-Jafter", run="true")
    await eventually(lambda: rows_of(root), lambda rows: rows[big].state is JobState.RUNNING)
    waiting = emptied.submit(ADA, "-pgpu", "--gres=gpu:h100:8", "-t60", "-Jwaiting", run="true")
    behind = emptied.submit(BEN, "-pgpu", "--gres=gpu:h100:1", "-t60", f"--nice={LAST}", "-Jbehind", run="true")
    limited = emptied.submit(ADA, "-pgpu", "-qhigh", "--gres=gpu:a100:3", "-Jlimited", run="true")
    held = emptied.submit(ADA, "-pbatch", "-H", "-Jheld", run="true")
    array = emptied.submit(ADA, "-pbatch", "--array=0-5%2", "-c2", "-Jarr", run="sleep 600")

    def settled(rows: dict[int, JobRow]) -> bool:
        if array not in {row.array.array for row in rows.values() if row.array is not None}:
            return False
        tasks = [row for row in rows.values() if row.array is not None and row.array.array == array]
        running = sum(row.state is JobState.RUNNING for row in tasks)
        sentences = {job: said(rows[job]) for job in (waiting, behind, limited)}
        return (
            (running, sum(len(row.tasks) or 1 for row in tasks)) == (2, 6)
            and sentences[waiting].startswith("waits for free")
            and "QOS" in sentences[limited]
            and sentences[behind].startswith("jobs of higher priority")
        )

    rows = await eventually(lambda: rows_of(root), settled)
    assert said(rows[held]) == f"held by {ADA}"
    assert said(rows[after]) == f"waits for job {big} to succeed"
    assert rows[big].card_milli == 8000
    assert rows[big].placed_on == ("n3",)
    nodes = {row.node.name: row for row in await root.nodes()}
    assert [use.name for use in nodes["n3"].slices] == ["big"] * 8
    assert [card.model for card in nodes["n1"].node.cards] == ["a100"] * 4
    outlook = await root.explain(JobId(waiting))
    assert outlook.scheduler == "Slurm"
    assert outlook.explanation is not None
    assert said(rows[waiting], outlook.explanation.reason).startswith("waits for 8 h100 on one node")
    assert waiting in {each.job for each in (await root.explain(JobId(behind))).named if not each.running}
    why_limited = (await root.explain(JobId(limited))).explanation
    assert why_limited is not None
    assert "MaxTRESPerUser" in said(rows[limited], why_limited.reason)


def said(row: JobRow, reason: object = None) -> str:
    told = reason or row.reason
    return reason_sentence(told, row.submitted_at, None) if told is not None else ""  # type: ignore[arg-type] # of a row


@pytest.mark.req("SL-10", "SL-15")
async def test_ended_jobs_are_in_the_list_the_logs_and_the_accounting(emptied: RealCluster, ada: SlurmBackend) -> None:
    job = JobId(emptied.submit(ADA, "-pdebug", "-Jfails", run="echo out; echo oops >&2; exit 3"))
    ended = await ada.wait(job, timeout_seconds=60)
    assert ended is not None
    assert (ended.state, ended.exit and ended.exit.code) == (JobState.ERROR, 3)
    assert (await ada.logs(LogRequest(job=job))).data == b"out\noops\n"
    assert "oops" in (await ada.job(job)).log_tail
    done = await eventually(ada.accounting, lambda found: any(each.row.id == job for each in found))
    (mine,) = [each for each in done if each.row.id == job]
    assert (mine.row.exit_code, mine.row.account, mine.attempts) == (3, "vision", 1)


@pytest.mark.req("SC-24", "SL-12", "SL-30")
async def test_the_core_counts_every_priority_as_sprio_prints_it(emptied: RealCluster, root: SlurmBackend) -> None:
    emptied.submit(BEN, "-pgpu", "--gres=gpu:h100:8", "-t120", run="sleep 600")
    for number in range(1, 5):
        emptied.submit(ADA, "-pgpu", f"--gres=gpu:h100:{4 + number}", f"-c{number}", f"--mem={number}G", run="true")
        emptied.submit(BEN, "-pgpu", f"--gres=gpu:h100:{4 + number}", f"--nice={10 * number}", "-N1", run="true")

    def counted(found: Priorities) -> bool:
        parts = [part for row in found.rows if row.breakdown is not None for part in row.breakdown.parts]
        return sum(part.name is FactorName.FAIRSHARE and part.contribution > 0 for part in parts) >= 8

    await eventually(root.priorities, counted)
    compared = 0
    for row in (await (await open_snapshot(await root.snapshot(), "root")).priorities()).rows:
        if row.reported is not None and row.reported.parts and row.breakdown is not None:
            told = {(part.name, part.tres): part.contribution for part in row.reported.parts}
            own = {(part.name, part.tres): part.contribution for part in row.breakdown.parts}
            assert {key: round(own.get(key, 0)) for key in told} == told
            assert abs(row.breakdown.total - row.reported.total) <= 1
            compared += 1
    assert compared >= 6


@pytest.mark.req("SL-30", "TR-04")
async def test_sprio_reports_without_an_error_that_a_job_is_not_pending(emptied: RealCluster) -> None:
    """A job may start between the command that listed it and the one that asks for its priority."""
    printed = await LocalCommands(emptied.env).run((*COMMAND, "--jobs=99999"), seconds=60)
    assert printed.code == 0
    assert not flaw((*COMMAND, "--jobs=99999"), printed.stdout, "|")


async def test_each_user_sees_the_same_and_changes_only_own_jobs(emptied: RealCluster) -> None:
    job = emptied.submit(BEN, "-pbatch", "-H", "-Jbens", run="true")
    rows = await rows_of(backend_for(emptied, ADA))
    assert str(rows[job].may) == "ro"
    assert str((await rows_of(backend_for(emptied, BEN)))[job].may) == "rw"
