from __future__ import annotations

import asyncio
import sqlite3
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cockpit.engine.state import STATE_VERSION, ClusterState
from cockpit.model.attempt import EndCause
from cockpit.model.events import EventRecord, JobArchived, JobEnded
from cockpit.model.ids import JobId, Millis
from cockpit.model.job import JobState
from cockpit.store.journal import SqliteJournal
from tests.store.samples import SECOND, T0, event, open_journal, shells, submitted, toy_apply

if TYPE_CHECKING:
    from collections.abc import Callable


def change(file: Path, sql: str) -> None:
    other = sqlite3.connect(file, isolation_level=None)
    other.execute(sql)
    other.close()


def folded(records: list[EventRecord]) -> ClusterState:
    state = ClusterState()
    for record in records:
        toy_apply(state, record)
    return state


def counting(applied: list[int]) -> Callable[[ClusterState, EventRecord], None]:
    def apply(state: ClusterState, record: EventRecord) -> None:
        applied.append(record.seq)
        toy_apply(state, record)

    return apply


@pytest.fixture
async def history(journal: SqliteJournal) -> list[EventRecord]:
    """Fifteen events, with snapshots after 5 and 10."""
    records = [submitted(seq) for seq in range(1, 16)]
    await journal.append(records, durable=True)
    await journal.snapshot(folded(records[:5]), 5)
    await journal.snapshot(folded(records[:10]), 10)
    return records


async def test_only_the_tail_is_applied(journal: SqliteJournal, history: list[EventRecord]) -> None:
    applied: list[int] = []
    journal._apply = counting(applied)
    assert await journal.load() == (folded(history), 15)
    assert applied == [11, 12, 13, 14, 15]


NEWEST = "WHERE seq = (SELECT max(seq) FROM snapshots)"


@pytest.mark.req("TR-01", "TR-03")
@pytest.mark.parametrize(
    ("damage", "first_applied"),
    [
        (f"UPDATE snapshots SET state = substr(state, 1, 20) {NEWEST}", 6),
        (f"UPDATE snapshots SET state = zeroblob(100) {NEWEST}", 6),
        (f"UPDATE snapshots SET checksum = zeroblob(32) {NEWEST}", 6),
        (f"UPDATE snapshots SET version = {STATE_VERSION + 1} {NEWEST}", 6),
        (f"UPDATE snapshots SET version = {STATE_VERSION - 1}", 1),
        (f"UPDATE snapshots SET seq = 99 {NEWEST}", 6),
        ("UPDATE snapshots SET state = x''", 1),
        ("DELETE FROM snapshots", 1),
    ],
)
async def test_a_bad_snapshot_falls_back(
    journal: SqliteJournal, history: list[EventRecord], tmp_path: Path, damage: str, first_applied: int
) -> None:
    change(tmp_path / "journal.db", damage)
    applied: list[int] = []
    journal._apply = counting(applied)
    assert await journal.load() == (folded(history), 15)
    assert applied == list(range(first_applied, 16))


async def test_a_snapshot_of_other_types_falls_back(
    journal: SqliteJournal, history: list[EventRecord], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its checksum is right, but it does not decode."""
    monkeypatch.setattr("msgspec.msgpack.encode", lambda _: b"\x01")
    await journal.snapshot(folded(history), 15)
    assert await journal.load() == (folded(history), 15)


async def test_the_last_two_are_kept(journal: SqliteJournal, history: list[EventRecord]) -> None:
    await journal.snapshot(folded(history), 15)
    assert await journal._database.fetch("SELECT seq FROM snapshots") == [(10,), (15,)]


async def test_the_state_may_change_while_it_is_written(journal: SqliteJournal) -> None:
    await journal.append(shells(1, 1), durable=True)
    state = folded(shells(1, 1))
    async with asyncio.TaskGroup() as group:
        group.create_task(journal.snapshot(state, 1))
        await asyncio.sleep(0)
        state.last_job_id = 77
    assert (await journal.load())[0].last_job_id == 0


Step = tuple[str, int]
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("submit"), st.integers(1, 4)),
        st.tuples(st.just("end"), st.integers(1, 12)),
        st.tuples(st.just("drop"), st.integers(1, 12)),
        st.tuples(st.just("snapshot"), st.just(0)),
        st.tuples(st.just("archive"), st.integers(0, 40)),
        st.tuples(st.just("damage newest"), st.just(0)),
        st.tuples(st.just("damage all"), st.just(0)),
        st.tuples(st.just("reopen"), st.just(0)),
    ),
    max_size=25,
)


class Story:
    """A journal, and beside it every event that it was ever given."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.records: list[EventRecord] = []

    async def tell(self, steps: list[Step]) -> None:
        self.journal = await open_journal(self.folder)
        try:
            for step in steps:
                await self.act(*step)
            assert await self.journal.load() == (folded(self.records), len(self.records))
        finally:
            await self.journal.close()

    async def act(self, verb: str, number: int) -> None:
        seq = len(self.records) + 1
        match verb:
            case "submit":
                await self.append([submitted(seq + i) for i in range(number)])
            case "end":
                await self.append([event(seq, JobEnded(JobId(number), JobState.SUCCEEDED, EndCause.EXIT))])
            case "drop":
                await self.append([event(seq, JobArchived(JobId(number)))])
            case "snapshot":
                await self.journal.snapshot(*await self.journal.load())
            case "archive":
                await self.journal.archive(Millis(T0 + number * SECOND))
            case "damage newest":
                change(self.folder / "journal.db", f"UPDATE snapshots SET state = x'00' {NEWEST}")
            case "damage all":
                change(self.folder / "journal.db", "UPDATE snapshots SET state = zeroblob(9)")
            case "reopen":
                await self.journal.close()
                self.journal = await open_journal(self.folder)

    async def append(self, records: list[EventRecord]) -> None:
        await self.journal.append(records, durable=False)
        self.records += records


@pytest.mark.req("TR-01")
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(STEPS)
def test_snapshot_and_tail_equal_the_full_replay(steps: list[Step]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(Story(Path(folder)).tell(steps))
