"""Stores that were damaged in every way: the engine says so in a sentence, and the verification finds it."""

from __future__ import annotations

import asyncio
import gzip
import os
import random
import shutil
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cockpit.backends.local.journal_check import brief_findings, journal_findings
from cockpit.engine.apply.events import apply
from cockpit.engine.state import ClusterState
from cockpit.errors import StoreError
from cockpit.model.events import EngineStopped
from cockpit.model.forecast import PromisedStart
from cockpit.model.ids import JobId, Millis
from cockpit.model.requests import KeptAnswer
from cockpit.runtime.findings import FindingLevel
from cockpit.store import archive, snapshots
from cockpit.store.journal import SqliteJournal
from cockpit.store.schema import SCHEMA_VERSION
from cockpit.store.verifying import verify
from tests.store.samples import DAY, T0, StillClock, answered, ended_job, event, opened, shells, submitted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cockpit.store.verifying import Verified

pytestmark = pytest.mark.req("TR-03", "TR-11")
STORIES = Path(__file__).parent / "data"
ARCHIVED = 6
EVENTS = 14
PROMISE = PromisedStart(JobId(1), Millis(T0 + DAY))


@pytest.fixture
async def folder(tmp_path: Path) -> Path:
    """Events 1 to 6 archived, 7 to 14 kept, a snapshot after 10 and one ended job."""
    async with opened(tmp_path) as journal:
        await journal.append([submitted(1, at=T0), *shells(2, ARCHIVED)], durable=True)
        state, seq = await journal.load()
        await journal.snapshot(state, seq)
        await journal.archive(Millis(T0 + DAY))
        await journal.append(shells(ARCHIVED + 1, 10), durable=True)
        state, seq = await journal.load()
        await journal.snapshot(state, seq)
        await journal.append(shells(11, EVENTS), durable=True, answer=KeptAnswer("anna:1", b"job 1", "submit", b"d"))
        await journal.record_ended([ended_job(7)])
        await journal.save_promised_starts([PROMISE], ())
    return tmp_path


def verified(folder: Path) -> Verified:
    return verify(folder / "journal.db", folder / "archive")


def edit(folder: Path, *statements: str) -> None:
    """As somebody does who knows SQLite and nothing of cockpit."""
    with closing(sqlite3.connect(folder / "journal.db", isolation_level=None)) as stored:
        triggers = [name for (name,) in stored.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'")]
        for each in (*(f"DROP TRIGGER {name}" for name in triggers), *statements):
            stored.execute(each)


def archive_file(folder: Path) -> Path:
    (file,) = (folder / "archive").iterdir()
    return file


def test_an_undamaged_store_has_no_findings(folder: Path) -> None:
    found = verified(folder)
    assert (found.damages, found.archived, found.events) == ((), ARCHIVED, EVENTS - ARCHIVED)
    assert (found.snapshots, found.answers, found.ended, found.unchecked) == (2, 1, 1, 0)
    assert [each.level for each in journal_findings(folder)] == ["ok", "ok"]


@pytest.mark.parametrize(
    ("statement", "where", "needed"),
    [
        ("UPDATE events SET actor = 'mallory' WHERE seq = 12", "event 12", True),
        ("UPDATE events SET body = replace(body, 'rank', 'tank') WHERE seq = 8", "event 8", False),
        ("UPDATE events SET at = 'soon' WHERE seq = 12", "event 12", True),
        ("UPDATE events SET body = x'ff' WHERE seq = 12", "event 12", True),
        ("UPDATE events SET job = NULL WHERE seq = 13", "event 13", True),
        ("DELETE FROM events WHERE seq = 12", "event 12", True),
        ("DELETE FROM events WHERE seq BETWEEN 8 AND 9", "events 8 to 9", False),
        ("DELETE FROM events WHERE seq >= 9", "events 9 to 10", False),
        ("DELETE FROM archives", f"events 1 to {ARCHIVED}", False),
        ("UPDATE snapshots SET state = x'00' WHERE seq = 10", "snapshot after event 10", False),
        ("UPDATE snapshots SET state = 'text' WHERE seq = 10", "snapshot after event 10", False),
        ("UPDATE snapshots SET seq = 11 WHERE seq = 10", "snapshot after event 11", False),
        ("UPDATE answers SET answer = x'00'", "answer to request anna:1", False),
        ("UPDATE answers SET answer = 'text'", "answer to request anna:1", False),
        ("UPDATE answers SET request = 'anna:2'", "answer to request anna:2", False),
        ("UPDATE answers SET digest = x''", "answer to request anna:1", False),
        ("UPDATE answers SET refused = 1", "answer to request anna:1", False),
        ("UPDATE answers SET at = at + 1", "answer to request anna:1", False),
        ("UPDATE ended_jobs SET job = replace(job, 'anna', 'bert')", "accounting record of job 7", False),
        ("UPDATE ended_jobs SET card_milli = 1", "accounting record of job 7", False),
        ("UPDATE ended_jobs SET job = 'nothing'", "accounting record of job 7", False),
        ("UPDATE ended_jobs SET job = 7", "accounting record of job 7", False),
        ("UPDATE spans SET card_milli = card_milli + 1", "usage of attempt 1 of job 7", False),
        ("UPDATE spans SET user = 'bert'", "usage of attempt 1 of job 7", False),
        ("UPDATE spans SET until_at = 'soon'", "usage of attempt 1 of job 7", False),
        ("UPDATE spans SET job = 8", "usage of attempt 1 of job 8", False),
        ("UPDATE promised_starts SET job = 5", "promised start of job 5", False),
        ("UPDATE promised_starts SET promise = replace(promise, '1', '2')", "promised start of job 1", False),
        ("UPDATE promised_starts SET promise = x'ff'", "promised start of job 1", False),
        ("UPDATE snapshots SET version = version + 1 WHERE seq = 10", "snapshot after event 10", False),
        ("UPDATE snapshots SET created_at = 1 WHERE seq = 10", "snapshot after event 10", False),
        ("UPDATE archives SET created_at = 1", "name of archive file events-1-6.jsonl.gz", False),
    ],
)
def test_a_changed_record_is_reported(folder: Path, statement: str, where: str, needed: bool) -> None:
    edit(folder, statement)
    named = {each.where: each for each in verified(folder).damages}
    assert where in named, named
    if statement.startswith("UPDATE snapshots"):
        return  # an older one counts now
    assert named[where].needed == needed
    (finding,) = [each for each in journal_findings(folder) if each.subject == where]
    assert finding.level == "missing"
    assert ("starts without it" in finding.advice) == (not needed)


async def test_a_damaged_answer_is_never_given_and_its_request_not_executed_anew(folder: Path) -> None:
    edit(folder, "UPDATE answers SET answer = x'00'")
    async with opened(folder) as journal:
        with pytest.raises(StoreError, match="answer to the request anna:1 is damaged"):
            await journal.answer("anna:1")


async def test_a_snapshot_of_another_version_by_damage_is_not_used(folder: Path) -> None:
    edit(folder, "DELETE FROM snapshots WHERE seq != 10", "UPDATE snapshots SET created_at = 1")
    async with opened(folder) as journal:
        assert (await journal.load())[1] == EVENTS
        assert await snapshots.newest(journal._database, EVENTS) == (ClusterState(), 0)


async def test_a_damaged_promise_is_not_shown(folder: Path) -> None:
    async with opened(folder) as journal:
        assert await journal.promised_starts() == [PROMISE]
        edit(folder, "UPDATE promised_starts SET promise = replace(promise, '1', '2')")
        assert await journal.promised_starts() == []


async def test_promised_starts_are_replaced_and_deleted_with_their_jobs(folder: Path) -> None:
    later, other = PromisedStart(JobId(1), Millis(T0 + 2 * DAY)), PromisedStart(JobId(2), Millis(T0))
    async with opened(folder) as journal:
        await journal.save_promised_starts([other, later], ())
        assert await journal.promised_starts() == [later, other]
        await journal.save_promised_starts([], [JobId(1)])
        assert await journal.promised_starts() == [other]


async def test_records_of_an_older_release_have_no_checksum_and_are_accepted(folder: Path) -> None:
    tables = ("answers", "ended_jobs", "spans", "promised_starts", "archives")
    edit(folder, *(f"UPDATE {table} SET checksum = NULL" for table in tables), "UPDATE snapshots SET row_checksum=NULL")
    assert verified(folder).damages == ()
    async with opened(folder) as journal:
        assert (await snapshots.newest(journal._database, EVENTS))[1] == 10
        assert await journal.promised_starts() == [PROMISE]
        assert await answered(journal, "anna:1") == b"job 1"


@pytest.mark.parametrize(
    "damage",
    [
        lambda file: file.unlink(),
        lambda file: file.write_bytes(b""),
        lambda file: file.write_bytes(file.read_bytes()[:-20]),
        lambda file: file.write_bytes(b"x" + file.read_bytes()[1:]),
        lambda file: file.write_bytes(gzip.compress(gzip.decompress(file.read_bytes()).replace(b"anna", b"bert"))),
        lambda file: file.write_bytes(gzip.compress(gzip.decompress(file.read_bytes()).partition(b"\n")[0] + b"\n")),
    ],
)
def test_a_damaged_archive_is_reported(folder: Path, damage: Any) -> None:
    damage(archive_file(folder))
    found = verified(folder)
    assert found.damages
    assert not any(each.needed for each in found.damages), "snapshots hold what the archive has"


def test_a_store_of_an_older_release_is_verified_once_it_is_migrated(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(STORIES / "with_accounts", tmp_path / "old"))
    with pytest.raises(StoreError, match="Start its engine once"):
        verified(folder)
    _everything(folder)
    found = verified(folder)
    assert found.damages == ()
    assert found.unchecked == found.events + found.archived - 1 > 0, "all but the one that was added now"
    assert [each.subject for each in journal_findings(folder)] == ["journal", "checked", "without checksum"]


def test_the_brief_check_finds_a_damaged_page_and_accepts_an_older_store(folder: Path, tmp_path: Path) -> None:
    (finding,) = brief_findings(folder)
    assert (finding.level, finding.found) == (FindingLevel.OK, f"{folder / 'journal.db'} has no damaged page")
    edit(folder, f"PRAGMA user_version = {SCHEMA_VERSION - 1}")
    assert brief_findings(folder)[0].level is FindingLevel.OK
    file = folder / "journal.db"
    pages = bytearray(file.read_bytes())
    for start in range(4096, len(pages), 4096):
        pages[start : start + 8] = b"\x55" * 8
    file.write_bytes(pages)
    (finding,) = brief_findings(folder)
    assert finding.level is FindingLevel.MISSING
    assert finding.found.startswith(f"{file} is damaged: ")
    assert "*** in database" not in finding.found
    assert brief_findings(tmp_path / "none") == []


def test_a_missing_store_is_reported_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="There is no journal"):
        verified(tmp_path)


async def test_the_store_of_a_running_engine_is_verified_beside_it(folder: Path) -> None:
    async with opened(folder) as journal:
        await journal.append(shells(EVENTS + 1, EVENTS + 3), durable=True)
        found = await asyncio.to_thread(verified, folder)
        await journal.append(shells(EVENTS + 4, EVENTS + 5), durable=True)
    assert (found.damages, found.events) == ((), EVENTS + 3 - ARCHIVED)


async def test_changes_by_a_running_engine_are_no_damage(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All tables are read as of one moment: here events leave a table after the list of archive files was read."""
    read = archive.lines

    def lines_after_a_change(file: Path) -> Iterator[bytes]:
        edit(folder, f"DELETE FROM events WHERE seq <= {EVENTS - 2}")
        return read(file)

    monkeypatch.setattr(archive, "lines", lines_after_a_change)
    found = verified(folder)
    assert (found.damages, found.events) == ((), EVENTS - ARCHIVED)


@pytest.mark.parametrize("seed", range(60))
def test_changed_bytes_anywhere_are_reported_or_harmless(tmp_path: Path, seed: int) -> None:
    """Opening, loading, listing and verifying raise nothing but `StoreError`."""
    chance = random.Random(seed)
    story = chance.choice(["before_accounts", "with_accounts"])
    folder = Path(shutil.copytree(STORIES / story, tmp_path / "store"))
    if chance.random() < 0.5:
        _everything(folder)  # of the present schema, with checksums
    _damage(chance.choice([file for file in folder.rglob("*") if file.is_file()]), chance)
    for look in (_everything, verified, journal_findings, _everything):
        with suppress(StoreError):
            look(folder)


def _damage(file: Path, chance: random.Random) -> None:
    data = bytearray(file.read_bytes())
    if chance.random() < 0.2:
        del data[chance.randrange(len(data) + 1) :]
    for _ in range(chance.choice([1, 10, 200]) if data else 0):
        at = chance.randrange(len(data))
        data[at] = chance.randrange(256)
    file.write_bytes(data)


def _everything(folder: Path) -> None:
    asyncio.run(_look_at_everything(folder))


async def _look_at_everything(folder: Path) -> None:
    journal = await SqliteJournal.open(folder / "journal.db", folder / "archive", clock=StillClock(), apply=apply)
    try:
        state, seq = await journal.load()
        await journal.events(job=None, after=0, limit=10_000)
        await journal.ended_jobs(limit=10_000)
        await journal.ended_job(JobId(7))
        await journal.spent([Millis(0), Millis(T0 + DAY)], [])
        await journal.answer("anna:1")
        await journal.append([event(seq + 1, EngineStopped("0.1.0"))], durable=True)
        await journal.snapshot(state, state.seq)
    finally:
        await journal.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root's files stay readable without their folder's permission")
def test_a_store_that_cannot_be_written_is_verified(folder: Path) -> None:
    for each in (folder, folder / "journal.db"):
        each.chmod(0o500)
    assert verified(folder).damages == ()


@pytest.mark.parametrize(("kept", "where"), [(5, "event 6"), (4, "events 5 to 6")])
def test_the_end_of_an_archive_file_that_is_gone_is_named(folder: Path, kept: int, where: str) -> None:
    file = archive_file(folder)
    lines = gzip.decompress(file.read_bytes()).splitlines(keepends=True)
    file.write_bytes(gzip.compress(b"".join(lines[:kept])))
    found = verified(folder)
    assert [(each.where, each.what) for each in found.damages] == [(where, "missing")]
    assert found.archived == kept


@pytest.mark.parametrize(
    ("gone", "where"),
    [("first_seq = 1", "events 1 to 2"), ("first_seq = 3", "events 3 to 4"), ("last_seq = 4", "events 3 to 4")],
)
async def test_an_archive_file_that_is_not_listed_is_named_by_its_events(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gone: str, where: str
) -> None:
    monkeypatch.setattr(archive, "FILE_EVENTS", 2)
    async with opened(tmp_path) as journal:
        await journal.append([submitted(1, at=T0), *shells(2, 6)], durable=True)
        state, seq = await journal.load()
        await journal.snapshot(state, seq)
        assert await journal.archive(Millis(T0 + DAY)) == 6
    assert verified(tmp_path).damages == ()
    edit(tmp_path, f"DELETE FROM archives WHERE {gone}")
    assert [each.where for each in verified(tmp_path).damages] == [where]
