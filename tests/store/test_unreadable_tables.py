"""A store whose tables cannot be read, or that has more damage than fits on a page."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from cockpit.errors import StoreError
from cockpit.model.ids import Millis
from cockpit.model.requests import KeptAnswer
from cockpit.store.schema import SCHEMA_VERSION
from cockpit.store.verifying import MOST_SHOWN, Damage, _Verification, verify
from tests.store.samples import T0, ended_job, opened, shells, submitted

pytestmark = pytest.mark.req("TR-03")


@pytest.fixture
async def folder(tmp_path: Path) -> Path:
    async with opened(tmp_path) as journal:
        await journal.append([submitted(1, at=T0), *shells(2, 3)], durable=True)
        state, seq = await journal.load()
        await journal.snapshot(state, seq)
        await journal.append(shells(4, 40), durable=True, answer=KeptAnswer("anna:1", b"job 1", "submit", b"d"))
        await journal.record_ended([ended_job(7)])
        assert await journal.archive(Millis(0)) == 0
    return tmp_path


def change(folder: Path, *statements: str) -> None:
    with closing(sqlite3.connect(folder / "journal.db", isolation_level=None)) as stored:
        triggers = [name for (name,) in stored.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'")]
        for each in (*(f"DROP TRIGGER {name}" for name in triggers), *statements):
            stored.execute(each)


def damages(folder: Path) -> tuple[Damage, ...]:
    return verify(folder / "journal.db", folder / "archive").damages


@pytest.mark.parametrize(
    ("table", "where", "needed"),
    [
        ("snapshots", "snapshots", True),
        ("archives", "list of archive files", True),
        ("events", "event 1", False),
        ("answers", "answers to requests", False),
        ("ended_jobs", "accounting", True),
        ("spans", "usage of ended jobs", False),
        ("promised_starts", "promised starts", False),
    ],
)
def test_a_table_that_cannot_be_read_is_reported(folder: Path, table: str, where: str, needed: bool) -> None:
    change(folder, f"DROP TABLE {table}")
    (damage,) = damages(folder)
    assert (damage.where, damage.needed) == (where, needed)
    assert f"no such table: {table}" in damage.what


def test_an_event_that_cannot_be_read_is_needed_where_no_snapshot_covers_it(folder: Path) -> None:
    change(folder, "DROP TABLE events", "DELETE FROM snapshots")
    assert [(each.where, each.needed) for each in damages(folder)] == [("event 1", True)]


class Structure:
    """A connection whose integrity check has this result."""

    def __init__(self, result: list[str] | sqlite3.DatabaseError) -> None:
        self._result = result

    def execute(self, _sql: str) -> Iterable[tuple[str]]:
        if isinstance(self._result, sqlite3.DatabaseError):
            raise self._result
        return [(line,) for line in self._result]


@pytest.mark.parametrize(
    ("result", "sentences"),
    [
        (["ok"], []),
        (["row 3 missing from index", "page 9 is never used"], ["row 3 missing from index", "page 9 is never used"]),
        (sqlite3.DatabaseError("database disk image is malformed"), ["database disk image is malformed"]),
    ],
)
def test_a_damaged_structure_is_reported_in_the_words_of_sqlite(result: Any, sentences: list[str]) -> None:
    connection: Any = Structure(result)
    verification = _Verification(connection, Path("journal.db"), Path("archive"), None)
    verification._structure()
    assert verification._damages == [Damage("file structure", f"SQLite says: {each}") for each in sentences]


def test_further_damages_are_counted(folder: Path) -> None:
    change(folder, "UPDATE events SET actor = 'mallory' WHERE seq BETWEEN 11 AND 35")
    found = verify(folder / "journal.db", folder / "archive")
    assert [each.where for each in found.damages] == [f"event {seq}" for seq in range(11, 11 + MOST_SHOWN)]
    assert found.more == 25 - MOST_SHOWN


@pytest.mark.parametrize(("beside", "advice"), [(-1, "Start its engine once"), (1, "Use the newer cockpit")])
def test_a_store_of_another_version_says_which_cockpit_verifies_it(folder: Path, beside: int, advice: str) -> None:
    change(folder, f"PRAGMA user_version = {SCHEMA_VERSION + beside}")
    with pytest.raises(StoreError, match=advice):
        damages(folder)
