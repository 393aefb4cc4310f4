"""What was held in the past: the same from SQLite as from memory, and known of stores from before it was counted."""

from __future__ import annotations

import shutil
import sqlite3
from itertools import pairwise
from pathlib import Path

import pytest
from msgspec.structs import replace

from cockpit.engine.views.spending import spans
from cockpit.model.attempt import EndCause
from cockpit.model.ids import JobId, Millis
from cockpit.model.node import CardSlice
from cockpit.model.resilience import Elastic
from cockpit.runtime.memory_journal import MemoryJournal
from cockpit.store.accounting import SPAN_COLUMNS, is_whole_span
from cockpit.store.codec import checksum_of
from cockpit.store.journal import SqliteJournal
from tests.store.samples import HOUR, T0, ended_job, opened

DATA = Path(__file__).parent / "data"
EDGES = [Millis(T0 + at * HOUR) for at in (-1, 0, 1, 2, 5)]


def jobs() -> list:
    first = ended_job(1, ended_at=T0 + HOUR)
    tried = replace(first.attempt, ended_at=Millis(T0 + HOUR // 2), cause=EndCause.PREEMPTED)
    again = replace(ended_job(2, user="boris", ended_at=T0 + 3 * HOUR), earlier=(tried,), account="nlp")
    return [first, replace(again, attempt=replace(again.attempt, number=2)), ended_job(3, ended_at=T0 + HOUR)]


@pytest.mark.req("UI-09")
async def test_sqlite_and_memory_give_the_same_figures(journal: SqliteJournal) -> None:
    memory = MemoryJournal()
    for each in (journal, memory):
        await each.record_ended(jobs())
        await each.record_ended(jobs()[:1])
    found, kept = await journal.spent(EDGES, [JobId(3)]), await memory.spent(EDGES, [JobId(3)])
    assert [sorted(map(repr, stretch)) for stretch in found] == [sorted(map(repr, stretch)) for stretch in kept]
    assert [len(stretch) for stretch in found] == [0, 2, 1, 1]
    whole = [each for stretch in await journal.spent([EDGES[0], EDGES[-1]], ()) for each in stretch]
    held = [span for job in jobs() for span in spans(job, Millis(0))]
    assert sum(each.card_milli_ms for each in whole) == sum(s.card_milli * (s.until_at - s.from_at) for s in held) > 0
    assert all(begins < ends for begins, ends in pairwise(EDGES))


@pytest.mark.req("JT-48")
async def test_ended_jobs_within_a_time(journal: SqliteJournal) -> None:
    memory = MemoryJournal()
    ends = {1: 10, 2: 20, 3: 30}
    for each in (journal, memory):
        await each.record_ended([ended_job(job, ended_at=T0 + end) for job, end in ends.items()])
        found = await each.ended_jobs(limit=9, since=Millis(T0 + 20), until=Millis(T0 + 30))
        assert [job.id for job in found] == [2]
        assert [job.id for job in await each.ended_jobs(limit=9, since=Millis(T0 + 20))] == [3, 2]


@pytest.mark.req("TR-12", "UI-09")
@pytest.mark.parametrize("story", ["schema1", "before_accounts", "with_accounts"])
async def test_an_older_store_reports_the_resources_of_its_jobs(tmp_path: Path, story: str) -> None:
    folder = Path(shutil.copytree(DATA / story, tmp_path / story))
    await _counted(folder)


@pytest.mark.req("TR-12")
async def test_attempts_before_the_last_one_are_reported_too(tmp_path: Path) -> None:
    """Of a store of the first schema, in which somebody's job was preempted."""
    async with opened(tmp_path) as journal:
        await journal.record_ended(jobs())
    stored = sqlite3.connect(tmp_path / "journal.db", isolation_level=None)
    stored.executescript(
        "DROP TABLE spans; DROP TABLE promised_starts; DROP INDEX answers_refused; DROP INDEX submissions_by_request;"
        "ALTER TABLE events DROP COLUMN checksum; ALTER TABLE answers DROP COLUMN op;"
        "ALTER TABLE answers DROP COLUMN digest; ALTER TABLE answers DROP COLUMN refused;"
        "ALTER TABLE answers DROP COLUMN checksum; ALTER TABLE ended_jobs DROP COLUMN checksum;"
        "ALTER TABLE snapshots DROP COLUMN row_checksum; ALTER TABLE archives DROP COLUMN checksum;"
        "PRAGMA user_version=1;"
    )
    stored.close()
    assert len(await _counted(tmp_path)) == 4


async def _counted(folder: Path) -> list:
    """What the store has of each attempt: the same as its jobs tell."""
    async with opened(folder) as journal:
        ended = await journal.ended_jobs(limit=99)
    expected = sorted(
        (each.job, each.attempt, each.user, each.account, each.from_at, each.until_at, each.cpus, each.card_milli)
        for job in ended
        for each in spans(job, Millis(0))
    )
    stored = sqlite3.connect(folder / "journal.db")
    rows = stored.execute(
        "SELECT job, attempt, user, account, from_at, until_at, cpus, card_milli FROM spans"
    ).fetchall()
    stored.close()
    assert sorted(rows) == expected
    assert expected
    return expected


def elastic_job() -> list:
    """An ended job with cards that was elastic, with a minimum of no worker: all that it held was above it."""
    job = ended_job(9, ended_at=T0 + 2 * HOUR)
    part = replace(job.attempt.placement[0], slices=(CardSlice(0, None, 1000),))
    size = Elastic(workers=1, min_workers=0, max_workers=1)
    return [replace(job, spec=replace(job.spec, elastic=size), attempt=replace(job.attempt, placement=(part,)))]


@pytest.mark.req("EL-01", "UI-09")
async def test_what_elastic_jobs_had_above_their_minimum_is_part_of_their_card_hours(journal: SqliteJournal) -> None:
    memory = MemoryJournal()
    for each in (journal, memory):
        await each.record_ended([*jobs(), *elastic_job()])
        (rows,) = await each.spent([EDGES[0], EDGES[-1]], [])
        held = [span for job in elastic_job() for span in spans(job, Millis(0))]
        above = sum(row.above_min_card_milli_ms for row in rows)
        assert above == sum(s.card_milli * (s.until_at - s.from_at) for s in held) > 0
        assert above < sum(row.card_milli_ms for row in rows)


@pytest.mark.req("TR-12")
async def test_a_span_from_before_this_was_counted_is_still_whole(tmp_path: Path) -> None:
    async with opened(tmp_path) as journal:
        await journal.record_ended(elastic_job())
    stored = sqlite3.connect(tmp_path / "journal.db", isolation_level=None)
    names = ", ".join(SPAN_COLUMNS)
    (row,) = stored.execute(f"SELECT {names} FROM spans").fetchall()
    assert is_whole_span(row)
    *plain, above, _ = row
    assert above
    assert is_whole_span((*plain, None, checksum_of(*plain)))
    assert not is_whole_span((*plain, above + 1, row[-1]))
    stored.execute("UPDATE spans SET above_min_card_milli = NULL, checksum = ?", (checksum_of(*plain),))
    stored.close()
    async with opened(tmp_path) as journal:
        (rows,) = await journal.spent([EDGES[0], EDGES[-1]], [])
    assert [each.above_min_card_milli_ms for each in rows] == [0]
