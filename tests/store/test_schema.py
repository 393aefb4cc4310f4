from __future__ import annotations

import shutil
import sqlite3
import stat
from pathlib import Path

import pytest

from cockpit.errors import StoreError
from cockpit.model.ids import JobId
from cockpit.store.schema import MIGRATIONS, SCHEMA_VERSION
from tests.store.samples import answered, ended_job, open_journal, opened, submitted

DATA = Path(__file__).parent / "data"
"""`schema1` is a state folder as the first schema wrote it: events 1..4 archived, 5..19 kept, a snapshot after 19, then
event 20. It is never written anew."""


@pytest.fixture
def schema_1(tmp_path: Path) -> Path:
    return Path(shutil.copytree(DATA / "schema1", tmp_path / "schema1"))


def version(file: Path) -> int:
    stored = sqlite3.connect(file)
    number = stored.execute("PRAGMA user_version").fetchone()[0]
    stored.close()
    return int(number)


async def test_a_new_store_has_the_current_version(tmp_path: Path) -> None:
    async with opened(tmp_path):
        pass
    assert version(tmp_path / "journal.db") == SCHEMA_VERSION
    assert stat.S_IMODE((tmp_path / "journal.db").stat().st_mode) == 0o600


@pytest.mark.req("TR-12")
async def test_a_store_of_schema_1_opens_and_is_written_further(schema_1: Path) -> None:
    assert version(schema_1 / "journal.db") == 1
    async with opened(schema_1) as journal:
        state, seq = await journal.load()
        assert (seq, state.seq, list(state.jobs)) == (20, 20, [8])
        assert [record.seq for record in await journal.events(job=None, after=0, limit=99)] == list(range(5, 21))
        assert await answered(journal, "anna:1") == b"job 7"
        assert await journal.ended_job(JobId(7)) == ended_job(7)
        await journal.append([submitted(21)], durable=True)
    assert version(schema_1 / "journal.db") == SCHEMA_VERSION


@pytest.mark.req("TR-12")
async def test_a_store_of_schema_1_replays_from_its_first_event(schema_1: Path) -> None:
    stored = sqlite3.connect(schema_1 / "journal.db", isolation_level=None)
    stored.execute("DELETE FROM snapshots")
    stored.close()
    async with opened(schema_1) as journal:
        state, seq = await journal.load()
        assert (seq, list(state.jobs)) == (20, [8])


@pytest.mark.req("TR-12")
async def test_a_newer_store_is_refused_untouched(schema_1: Path) -> None:
    file = schema_1 / "journal.db"
    stored = sqlite3.connect(file)
    stored.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    stored.close()
    before = file.read_bytes()
    with pytest.raises(StoreError, match=rf"newer cockpit \(store version {SCHEMA_VERSION + 1}.*state_folder"):
        await open_journal(schema_1)
    assert file.read_bytes() == before


async def test_a_foreign_database_is_refused_untouched(tmp_path: Path) -> None:
    file = tmp_path / "journal.db"
    stored = sqlite3.connect(file)
    stored.execute("CREATE TABLE recipes (name)")
    stored.close()
    before = file.read_bytes()
    with pytest.raises(StoreError, match=r"journal.db is a database, but not a cockpit journal"):
        await open_journal(tmp_path)
    assert file.read_bytes() == before


async def test_a_migration_that_fails_leaves_the_old_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened(tmp_path):
        pass
    broken = (*MIGRATIONS, "CREATE TABLE later (x); CREATE TABLE events (x);")
    monkeypatch.setattr("cockpit.store.schema.MIGRATIONS", broken)
    monkeypatch.setattr("cockpit.store.schema.SCHEMA_VERSION", len(broken))
    with pytest.raises(StoreError):
        await open_journal(tmp_path)
    monkeypatch.undo()
    assert version(tmp_path / "journal.db") == SCHEMA_VERSION
    async with opened(tmp_path) as journal:
        assert await journal._database.fetch("SELECT name FROM sqlite_schema WHERE name = 'later'") == []
