from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

import msgspec
import pytest

from cockpit.model.ids import JobId
from cockpit.model.job import JobState
from tests.store.samples import HOUR, T0, ended_job, queued_job

if TYPE_CHECKING:
    from pathlib import Path

    from cockpit.store.journal import SqliteJournal


async def test_a_recorded_job_is_read_back_completely(journal: SqliteJournal) -> None:
    await journal.record_ended([ended_job(1), ended_job(2, user="boris")])
    assert await journal.ended_job(JobId(1)) == ended_job(1)
    assert await journal.ended_job(JobId(2)) == ended_job(2, user="boris")


async def test_the_ended_tasks_of_an_array_are_found_by_their_ids(journal: SqliteJournal) -> None:
    await journal.record_ended([ended_job(number) for number in (4, 2, 1, 3)])
    assert [job.id for job in await journal.ended_among(JobId(2), JobId(3))] == [2, 3]
    assert await journal.ended_among(JobId(5), JobId(9)) == []


@pytest.mark.parametrize("job", [0, -1, 7, 2**63, 10**30])
async def test_an_unknown_job_is_not_found(journal: SqliteJournal, job: int) -> None:
    assert await journal.ended_job(JobId(job)) is None


async def test_recording_twice_replaces(journal: SqliteJournal) -> None:
    await journal.record_ended([ended_job(1)])
    await journal.record_ended([ended_job(1, code=9), ended_job(1, code=0)])
    assert await journal.ended_jobs(limit=10) == [ended_job(1, code=0)]


async def test_jobs_are_listed_newest_first(journal: SqliteJournal) -> None:
    ends = {1: 50, 2: 70, 3: 10, 4: 70}
    await journal.record_ended(
        [ended_job(job, ended_at=T0 + end, user="anna" if job < 4 else "boris") for job, end in ends.items()]
    )
    assert [job.id for job in await journal.ended_jobs(limit=10)] == [4, 2, 1, 3]
    assert [job.id for job in await journal.ended_jobs(limit=2, user="anna")] == [2, 1]
    assert await journal.ended_jobs(limit=10, user="' OR '1'='1") == []
    assert await journal.ended_jobs(limit=-1) == []


async def test_the_columns_are_summed_correctly(journal: SqliteJournal, tmp_path: Path) -> None:
    await journal.record_ended([ended_job(5, ended_at=T0 + HOUR)])
    stored = sqlite3.connect(tmp_path / "journal.db")
    row = stored.execute(
        "SELECT name, user, uid, state, end_cause, submitted_at, started_at, ended_at, exit_code,"
        " nodes, cpus, memory_mib, card_milli FROM ended_jobs"
    ).fetchone()
    stored.close()
    assert row == ("held-[bold]one", "anna", 1000, "error", "exit", T0, T0 + 10, T0 + HOUR, 3, 2, 8, 4096, 1000)


async def test_a_job_that_never_ran_records_its_request(journal: SqliteJournal, tmp_path: Path) -> None:
    job = msgspec.structs.replace(queued_job(6), state=JobState.STOPPED)
    await journal.record_ended([job])
    stored = sqlite3.connect(tmp_path / "journal.db")
    row = stored.execute("SELECT started_at, ended_at, exit_code, nodes, cpus, card_milli FROM ended_jobs").fetchone()
    stored.close()
    assert row == (None, T0, None, 2, 8, 1000)
    assert await journal.ended_jobs(limit=1) == [job]
