from __future__ import annotations

import asyncio
import sqlite3
from typing import TYPE_CHECKING

import pytest

from cockpit.engine.state import ClusterState
from cockpit.errors import StoreError
from cockpit.model.ids import JobId
from cockpit.model.requests import KeptAnswer
from cockpit.store import journal as journal_module
from cockpit.store.codec import COLUMNS
from tests.store.samples import DAY, answered, event, open_journal, opened, shells, submitted, toy_apply

if TYPE_CHECKING:
    from pathlib import Path

    from cockpit.store.journal import SqliteJournal
    from tests.store.samples import StillClock


async def seqs(journal: SqliteJournal, *, job: int | None = None, after: int = 0, limit: int = 1000) -> list[int]:
    found = await journal.events(job=None if job is None else JobId(job), after=after, limit=limit)
    return [record.seq for record in found]


async def test_a_new_journal_is_empty(journal: SqliteJournal) -> None:
    assert await journal.load() == (ClusterState(), 0)
    assert await journal.events(job=None, after=-1, limit=10) == []


@pytest.mark.req("TR-01", "TR-11")
async def test_appended_events_are_read_after_reopening(tmp_path: Path) -> None:
    records = [submitted(1, request="r1"), submitted(2, request="r1"), *shells(3, 5)]
    async with opened(tmp_path) as journal:
        await journal.append(records[:2], durable=True)
        await journal.append(records[2:], durable=False)

    async with opened(tmp_path) as journal:
        expected = ClusterState()
        for record in records:
            toy_apply(expected, record)
        assert await journal.events(job=None, after=0, limit=10) == records
        assert await journal.load() == (expected, 5)


@pytest.mark.req("TR-01")
async def test_only_durable_appends_wait_for_the_disk(journal: SqliteJournal) -> None:
    statements: list[str] = []
    await journal._database._connection.set_trace_callback(statements.append)
    await journal.append([submitted(1)], durable=True)
    await journal.append([submitted(2)], durable=True)
    await journal.append([submitted(3)], durable=False)
    await journal.append([submitted(4)], durable=True)
    steps = [word for word in statements if word.startswith(("PRAGMA", "BEGIN", "COMMIT"))]
    full, normal = "PRAGMA synchronous=FULL", "PRAGMA synchronous=NORMAL"
    one = ["BEGIN IMMEDIATE", "COMMIT"]
    assert steps == [full, *one, *one, normal, *one, full, *one]
    assert list(await journal._database.fetch("PRAGMA journal_mode")) == [("wal",)]


async def test_events_are_paged_by_number(journal: SqliteJournal) -> None:
    await journal.append(shells(1, 30), durable=True)
    assert await seqs(journal, after=0, limit=4) == [1, 2, 3, 4]
    assert await seqs(journal, after=4, limit=2) == [5, 6]
    assert await seqs(journal, after=30) == []
    assert await seqs(journal, after=-1, limit=3) == [28, 29, 30]
    assert await seqs(journal, limit=0) == await seqs(journal, limit=-1) == []


async def test_events_are_paged_by_job(journal: SqliteJournal) -> None:
    await journal.append([submitted(1), submitted(2), *shells(3, 5), *shells(6, 8, job=2)], durable=True)
    assert await seqs(journal, job=1) == [1, 3, 4, 5]
    assert await seqs(journal, job=1, after=3, limit=1) == [4]
    assert await seqs(journal, job=2, after=-1, limit=2) == [7, 8]
    assert await seqs(journal, job=9) == await seqs(journal, job=10**30) == await seqs(journal, job=-1) == []
    assert await seqs(journal, job=1, after=10**30) == []


@pytest.mark.parametrize("first", [1, 2, 4, 5])
async def test_an_event_with_a_wrong_number_is_refused_with_its_whole_batch(journal: SqliteJournal, first: int) -> None:
    await journal.append(shells(1, 2), durable=True)
    with pytest.raises(StoreError, match="numbered without gaps"):
        await journal.append(shells(first, first + 3), durable=True, answer=KeptAnswer("r", b"a"))
    with pytest.raises(StoreError, match="numbered without gaps"):
        await journal.append([*shells(3, 4), *shells(6, 6)], durable=True, answer=KeptAnswer("r", b"a"))
    assert await seqs(journal) == [1, 2]
    assert await journal.answer("r") is None
    await journal.append(shells(3, 3), durable=True)
    assert await seqs(journal) == [1, 2, 3]


@pytest.mark.req("TR-11")
@pytest.mark.parametrize(
    ("change", "why"),
    [
        ("UPDATE events SET actor = 'nobody' WHERE seq = 2", "never edited"),
        ("DELETE FROM events WHERE seq = 2", "never deleted before they are archived"),
        ("DELETE FROM events", "never deleted before they are archived"),
        (f"INSERT INTO events SELECT seq + 7, {', '.join(COLUMNS[1:])} FROM events", "gaps"),
        (f"REPLACE INTO events SELECT seq, at, 'x', {', '.join(COLUMNS[3:])} FROM events", "gaps"),
    ],
)
async def test_the_file_itself_refuses_to_be_edited(
    journal: SqliteJournal, tmp_path: Path, change: str, why: str
) -> None:
    await journal.append(shells(1, 3), durable=True)
    other = sqlite3.connect(tmp_path / "journal.db")
    with pytest.raises(sqlite3.IntegrityError, match=why):
        other.execute(change)
    other.close()
    assert await journal.events(job=None, after=0, limit=9) == shells(1, 3)


@pytest.mark.req("TR-01")
async def test_a_repeated_request_is_recorded_once(journal: SqliteJournal) -> None:
    assert await journal.answer("r1") is None
    await journal.append([submitted(1)], durable=True, answer=KeptAnswer("r1", b"job 1"))
    with pytest.raises(StoreError):
        await journal.append([submitted(2)], durable=True, answer=KeptAnswer("r1", b"job 2"))
    assert await answered(journal, "r1") == b"job 1"
    assert await seqs(journal) == [1]


async def test_an_answer_needs_no_event(journal: SqliteJournal) -> None:
    await journal.append([], durable=True, answer=KeptAnswer("r1", b""))
    assert await answered(journal, "r1") == b""


async def test_answers_are_deleted_after_a_day(journal: SqliteJournal, clock: StillClock) -> None:
    await journal.append([submitted(1)], durable=True, answer=KeptAnswer("old", b"1"))
    clock.time += 1
    await journal.append([submitted(2)], durable=True, answer=KeptAnswer("new", b"2"))
    clock.time += DAY
    state, seq = await journal.load()
    await journal.snapshot(state, seq)
    assert await journal.answer("old") is None
    assert await answered(journal, "new") == b"2"


@pytest.mark.parametrize("steps", range(9))
async def test_a_cancelled_append_is_complete_or_absent(journal: SqliteJournal, steps: int) -> None:
    async with asyncio.TaskGroup() as group:
        task = group.create_task(journal.append(shells(1, 3), durable=True, answer=KeptAnswer("r", b"a")))
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()
    kept = await seqs(journal)
    assert kept in ([], [1, 2, 3])
    known = await journal.answer("r")
    assert (known and known.answer) == (b"a" if kept else None)
    await journal.append(shells(len(kept) + 1, 4), durable=True)
    assert await seqs(journal) == [1, 2, 3, 4]


async def test_appends_and_reads_at_once_see_whole_batches(journal: SqliteJournal) -> None:
    seen: list[int] = []

    async def watch() -> None:
        while not seen or seen[-1] < 50:
            seen.append(len(await seqs(journal)))

    async with asyncio.TaskGroup() as group:
        group.create_task(watch())
        for first in range(1, 51, 5):
            await journal.append(shells(first, first + 4), durable=False)
    assert all(count % 5 == 0 for count in seen)


async def test_many_waiting_appends_keep_their_order(journal: SqliteJournal) -> None:
    async with asyncio.TaskGroup() as group:
        for seq in range(1, 21):
            group.create_task(journal.append([event(seq, submitted(seq).body)], durable=seq % 2 == 0))
    assert await seqs(journal) == list(range(1, 21))


async def test_a_damaged_order_of_events_is_reported(journal: SqliteJournal, tmp_path: Path) -> None:
    await journal.append(shells(1, 5), durable=True)
    other = sqlite3.connect(tmp_path / "journal.db", isolation_level=None)
    other.execute("DROP TRIGGER events_are_archived_before_they_go")
    other.execute("DELETE FROM events WHERE seq = 3")
    other.close()
    with pytest.raises(StoreError, match=r"journal.db is damaged: event 4 follows event 2"):
        await journal.load()


async def test_probe_leaves_no_trace_in_history(journal: SqliteJournal) -> None:
    await journal.probe()
    await journal.probe()
    assert await journal.load() == (ClusterState(), 0)


async def test_closing_twice_is_harmless(tmp_path: Path) -> None:
    journal = await open_journal(tmp_path)
    await journal.close()
    await journal.close()


async def test_only_the_latest_refusals_are_kept_and_every_other_answer(
    journal: SqliteJournal, clock: StillClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_module, "REFUSALS_KEPT", 3)
    monkeypatch.setattr(journal_module, "_REFUSALS_BETWEEN", 4)
    await journal.remember(KeptAnswer("accepted", b"job 1"))
    for number in range(8):
        clock.time += 1
        await journal.remember(KeptAnswer(f"refused:{number}", b"no", refused=True))
    kept = [number for number in range(8) if await journal.answer(f"refused:{number}") is not None]
    assert kept == [5, 6, 7]
    assert await journal.answer("accepted") is not None
