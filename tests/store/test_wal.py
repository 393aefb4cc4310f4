"""The write-ahead log of an engine that was killed, with any byte changed: no event vanishes in silence."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from cockpit.errors import StoreError
from cockpit.model.requests import KeptAnswer
from cockpit.store.verifying import verify
from cockpit.store.wal import booted_at, find_damage, log_of
from tests.store.samples import open_journal, opened, submitted

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.req("TR-03", "TR-11")
EVENTS = 12
HEADER, FRAME = 32, 24 + 4096


@pytest.fixture
async def killed(tmp_path: Path) -> Path:
    """The state folder of an engine that was killed: all events are in the write-ahead log."""
    (tmp_path / "running").mkdir()
    async with opened(tmp_path / "running") as journal:
        for number in range(1, EVENTS + 1):
            answer = KeptAnswer(f"anna:{number}", b"job")
            await journal.append([submitted(number)], durable=True, answer=answer)
        shutil.copytree(tmp_path / "running", tmp_path / "killed", ignore=shutil.ignore_patterns("*-shm"))
    return tmp_path / "killed"


def change(file: Path, at: int) -> None:
    data = bytearray(file.read_bytes())
    data[at] ^= 0x10
    file.write_bytes(data)


def events(folder: Path) -> int:
    with closing(sqlite3.connect(folder / "journal.db")) as stored:
        ((count,),) = stored.execute("SELECT count(*) FROM events")
    return int(count)


async def test_an_undamaged_log_has_no_findings_and_loses_no_event(killed: Path) -> None:
    assert find_damage(killed / "journal.db") is None
    assert verify(killed / "journal.db", killed / "archive").damages == ()
    async with opened(killed) as journal:
        assert (await journal.load())[1] == EVENTS


@pytest.mark.parametrize("seed", range(40))
async def test_a_byte_that_was_changed_anywhere_before_the_last_frame_is_missed_loudly(killed: Path, seed: int) -> None:
    log = log_of(killed / "journal.db")
    change(log, random.Random(seed).randrange(log.stat().st_size - FRAME))
    before = log.read_bytes()
    with pytest.raises(StoreError, match=r"journal.db-wal is damaged: .*Nothing was accepted or changed"):
        await open_journal(killed)
    assert log.read_bytes() == before
    assert "write-ahead log journal.db-wal" in found(killed)


def found(folder: Path) -> str:
    """What the verification says."""
    try:
        return str(verify(folder / "journal.db", folder / "archive").damages)
    except StoreError as error:
        return str(error)


async def test_the_header_is_named(killed: Path) -> None:
    change(log_of(killed / "journal.db"), 9)
    with pytest.raises(StoreError, match="its header does not match its checksum"):
        await open_journal(killed)
    assert "Nothing of the store can be read" in found(killed)


async def test_a_store_is_opened_without_the_lost_events_after_what_the_error_advises(killed: Path) -> None:
    log = log_of(killed / "journal.db")
    change(log, log.stat().st_size - 3 * FRAME)
    with pytest.raises(StoreError, match="PRAGMA wal_checkpoint"):
        await open_journal(killed)
    with closing(sqlite3.connect(killed / "journal.db")) as stored:
        stored.execute("PRAGMA wal_checkpoint").fetchall()
    async with opened(killed) as journal:
        assert 0 < (await journal.load())[1] < EVENTS


async def test_a_power_cut_is_no_damage_that_stops_an_engine(killed: Path) -> None:
    log = log_of(killed / "journal.db")
    change(log, log.stat().st_size - 3 * FRAME)
    before_the_start = booted_at() - 1
    os.utime(log, (before_the_start, before_the_start))
    async with opened(killed) as journal:
        assert 0 < (await journal.load())[1] < EVENTS


async def test_an_unfinished_transaction_and_frames_of_an_older_log_are_no_damage(tmp_path: Path) -> None:
    file = tmp_path / "journal.db"
    async with opened(tmp_path) as journal:
        await journal.append([submitted(1)], durable=True)
        with closing(sqlite3.connect(file, isolation_level=None)) as other:
            for statement in (
                "PRAGMA cache_size = 1",
                "BEGIN",
                "INSERT INTO probe VALUES (2, 0, zeroblob(400000))",
                "UPDATE probe SET filler = zeroblob(500000)",
                "ROLLBACK",
            ):
                other.execute(statement)
        await journal.append([submitted(2)], durable=True)
        unfinished = log_of(file).read_bytes()
        assert find_damage(file) is None
        with closing(sqlite3.connect(file, isolation_level=None)) as other:
            other.execute("PRAGMA wal_checkpoint(RESTART)").fetchall()
        await journal.append([submitted(3)], durable=True)
        assert len(unfinished) > HEADER + 50 * FRAME
        assert len(log_of(file).read_bytes()) >= len(unfinished)
        assert find_damage(file) is None
    assert events(tmp_path) == 3


async def test_the_log_of_a_running_engine_is_verified_beside_it(tmp_path: Path) -> None:
    async with opened(tmp_path) as journal:
        await journal.append([submitted(1)], durable=True)
        await journal.append([submitted(2)], durable=True)
        change(log_of(tmp_path / "journal.db"), HEADER + 100)
        assert verify(tmp_path / "journal.db", tmp_path / "archive").damages[0].where.startswith("write-ahead log")
