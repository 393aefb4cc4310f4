from __future__ import annotations

import gzip
import os
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest

from cockpit.engine.state import ClusterState
from cockpit.errors import StoreError
from cockpit.model.events import EventRecord
from cockpit.model.ids import Millis
from cockpit.store import archive
from tests.store.samples import DAY, SECOND, T0, opened, shells, submitted, toy_apply

if TYPE_CHECKING:
    from cockpit.store.journal import SqliteJournal

RECORDS = [submitted(seq) for seq in range(1, 21)]
"""Event n happened n seconds after T0."""


def state_after(seq: int) -> ClusterState:
    state = ClusterState()
    for record in RECORDS[:seq]:
        toy_apply(state, record)
    return state


def at_second(number: int) -> Millis:
    return Millis(T0 + number * SECOND)


@pytest.fixture
async def full(journal: SqliteJournal) -> SqliteJournal:
    """Twenty events, with snapshots after 12 and 15."""
    await journal.append(RECORDS, durable=True)
    await journal.snapshot(state_after(12), 12)
    await journal.snapshot(state_after(15), 15)
    return journal


async def kept(journal: SqliteJournal) -> list[int]:
    return [record.seq for record in await journal.events(job=None, after=0, limit=100)]


@pytest.mark.req("TR-11")
async def test_old_events_move_to_a_file(full: SqliteJournal, tmp_path: Path) -> None:
    assert await full.archive(at_second(8)) == 7
    assert await kept(full) == list(range(8, 21))
    file = tmp_path / "archive" / "events-1-7.jsonl.gz"
    lines = gzip.decompress(file.read_bytes()).splitlines()
    assert [msgspec.json.decode(line, type=EventRecord) for line in lines] == RECORDS[:7]
    assert list(archive.read(file)) == RECORDS[:7]
    assert list(file.parent.iterdir()) == [file]


async def test_no_event_missing_from_a_snapshot_is_archived(full: SqliteJournal) -> None:
    assert await full.archive(at_second(1000)) == 12
    assert await kept(full) == list(range(13, 21))


async def test_without_old_events_none_is_archived(full: SqliteJournal, tmp_path: Path) -> None:
    assert await full.archive(at_second(1)) == 0
    assert not (tmp_path / "archive").exists()


async def test_without_a_snapshot_no_event_is_archived(journal: SqliteJournal) -> None:
    await journal.append(RECORDS, durable=True)
    assert await journal.archive(at_second(1000)) == 0


async def test_event_numbers_continue_when_all_events_are_archived(journal: SqliteJournal) -> None:
    await journal.append(RECORDS, durable=True)
    await journal.snapshot(state_after(20), 20)
    assert await journal.archive(at_second(1000)) == 20
    with pytest.raises(StoreError, match="without gaps"):
        await journal.append([submitted(1)], durable=True)
    await journal.append([submitted(21)], durable=True)
    assert await kept(journal) == [21]
    assert (await journal.load())[1] == 21


async def test_a_clock_that_jumped_back_archives_no_newer_event(journal: SqliteJournal) -> None:
    seconds = [1, 2, 50, 3, 4]
    await journal.append([submitted(n, at=at_second(s)) for n, s in enumerate(seconds, 1)], durable=True)
    state, seq = await journal.load()
    await journal.snapshot(state, seq)
    assert await journal.archive(at_second(10)) == 2


async def test_many_events_make_several_files(
    full: SqliteJournal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "FILE_EVENTS", 5)
    await full.archive(at_second(8))
    assert await full.archive(at_second(1000)) == 5
    names = sorted(file.name for file in (tmp_path / "archive").iterdir())
    assert names == ["events-1-5.jsonl.gz", "events-6-7.jsonl.gz", "events-8-12.jsonl.gz"]


@pytest.mark.req("TR-01")
async def test_without_snapshots_the_archive_is_replayed(full: SqliteJournal) -> None:
    await full.archive(at_second(8))
    await full.archive(at_second(12))
    await full._database.fetch("DELETE FROM snapshots")
    assert await full.load() == (state_after(20), 20)


@pytest.mark.req("TR-03")
async def test_a_missing_or_damaged_archive_file_is_reported(full: SqliteJournal, tmp_path: Path) -> None:
    await full.archive(at_second(8))
    assert await full.load() == (state_after(20), 20), "with a snapshot, no file is needed"
    await full._database.fetch("DELETE FROM snapshots")
    file = tmp_path / "archive" / "events-1-7.jsonl.gz"
    whole = file.read_bytes()
    for damaged in (whole[:-30], whole[:10], b"no gzip", whole[:40] + bytes(20) + whole[60:]):
        file.write_bytes(damaged)
        with pytest.raises(StoreError, match=r"events-1-7\.jsonl\.gz|archived event"):
            await full.load()
    file.unlink()
    with pytest.raises(StoreError, match=r"events-1-7.jsonl.gz .*cannot be read"):
        await full.load()


@pytest.mark.req("TR-01")
async def test_a_crash_before_the_rows_are_deleted_loses_no_event(
    full: SqliteJournal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is there, but the journal does not name it: the next run, with another end, replaces it."""

    async def crash(*_: object) -> None:
        raise InterruptedError

    with monkeypatch.context() as patch:
        patch.setattr(archive, "_replace_by", crash)
        with pytest.raises(InterruptedError):
            await full.archive(at_second(5))
    (tmp_path / "archive" / "events-1-9.jsonl.unfinished").write_bytes(b"half")
    assert await kept(full) == list(range(1, 21))
    assert await full.archive(at_second(8)) == 7
    assert [file.name for file in (tmp_path / "archive").iterdir()] == ["events-1-7.jsonl.gz"]
    await full._database.fetch("DELETE FROM snapshots")
    assert await full.load() == (state_after(20), 20)


@pytest.mark.req("TR-03")
async def test_an_archive_folder_that_cannot_be_created_moves_no_event(full: SqliteJournal, tmp_path: Path) -> None:
    (tmp_path / "archive").write_text("a file is in the way")
    with pytest.raises(StoreError, match="archive cannot be read or written"):
        await full.archive(at_second(8))
    assert await kept(full) == list(range(1, 21))


async def test_archived_files_are_never_written_again(full: SqliteJournal, tmp_path: Path) -> None:
    await full.archive(at_second(5))
    file = tmp_path / "archive" / "events-1-4.jsonl.gz"
    before = (file.stat().st_ino, file.stat().st_mtime_ns)
    await full.archive(at_second(9))
    assert (file.stat().st_ino, file.stat().st_mtime_ns) == before


async def test_the_catalogue_is_kept_with_the_rows(full: SqliteJournal, tmp_path: Path) -> None:
    await full.archive(at_second(5))
    stored = sqlite3.connect(tmp_path / "journal.db")
    assert stored.execute("SELECT first_seq, last_seq, file FROM archives").fetchall() == [
        (1, 4, "events-1-4.jsonl.gz")
    ]
    stored.close()


@pytest.mark.req("TR-01")
async def test_an_archive_file_and_its_name_are_on_the_disk_before_its_events_leave_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[tuple[str, list[str]]] = []
    sync = os.fsync

    def noted(descriptor: int) -> None:
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        synced.append((path.name, sorted(each.name for each in (tmp_path / "archive").iterdir())))
        sync(descriptor)

    async with opened(tmp_path) as journal:
        await journal.append([submitted(1, at=T0), *shells(2, 6)], durable=True)
        state, seq = await journal.load()
        await journal.snapshot(state, seq)
        monkeypatch.setattr(archive.os, "fsync", noted)
        assert await journal.archive(Millis(T0 + DAY)) == 6
    assert synced == [
        ("events-1-6.jsonl.unfinished", ["events-1-6.jsonl.unfinished"]),
        ("archive", ["events-1-6.jsonl.gz"]),
    ]
