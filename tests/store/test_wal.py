"""The write-ahead log of an engine that was killed, with any byte changed: no event vanishes silently."""

from __future__ import annotations

import asyncio
import os
import platform
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from cockpit.errors import StoreError
from cockpit.model.requests import KeptAnswer
from cockpit.store.verifying import verify
from cockpit.store.wal import LogDamage, booted_at, find_damage, index_of, log_of
from tests.store.samples import open_journal, opened, submitted
from tests.store.unsynced_writer import SYNCS

pytestmark = pytest.mark.req("TR-03", "TR-11")
REPOSITORY = Path(__file__).parents[2]
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
        shutil.copytree(tmp_path / "running", tmp_path / "killed")
    return tmp_path / "killed"


@pytest.fixture(params=["with its index", "without its index"])
def either(request: pytest.FixtureRequest, killed: Path) -> Path:
    """The same folder as it is, and as a copy without the index of the log."""
    if request.param == "without its index":
        index_of(killed / "journal.db").unlink()
    return killed


def change(file: Path, at: int) -> None:
    data = bytearray(file.read_bytes())
    data[at] ^= 0x10
    file.write_bytes(data)


def events(folder: Path) -> int:
    with closing(sqlite3.connect(folder / "journal.db")) as stored:
        ((count,),) = stored.execute("SELECT count(*) FROM events")
    return int(count)


async def test_an_undamaged_log_has_no_findings_and_loses_no_event(either: Path) -> None:
    killed = either
    assert find_damage(killed / "journal.db") is None
    assert verify(killed / "journal.db", killed / "archive").damages == ()
    async with opened(killed) as journal:
        assert (await journal.load())[1] == EVENTS


@pytest.mark.parametrize("seed", range(15))
async def test_a_byte_that_was_changed_anywhere_before_the_last_frame_is_missed_loudly(either: Path, seed: int) -> None:
    log = log_of(either / "journal.db")
    await refused(either, random.Random(seed).randrange(log.stat().st_size - FRAME))


@pytest.mark.parametrize("seed", range(15))
async def test_a_byte_that_was_changed_in_the_last_frame_is_missed_loudly(killed: Path, seed: int) -> None:
    log = log_of(killed / "journal.db")
    await refused(killed, log.stat().st_size - 1 - random.Random(seed).randrange(FRAME))


async def refused(killed: Path, changed: int) -> None:
    """The doctor names the damage, twice, and leaves the store as it is; the engine does not start from it."""
    log = log_of(killed / "journal.db")
    change(log, changed)
    before = log.read_bytes()
    for _ in range(2):
        assert "write-ahead log journal.db-wal" in found(killed)
    with pytest.raises(StoreError, match=r"journal.db-wal is damaged: .*Nothing was accepted or changed"):
        await open_journal(killed)
    assert log.read_bytes() == before
    assert "write-ahead log journal.db-wal" in found(killed)


@pytest.mark.parametrize(("left", "frame"), [(0, 0), (20, 0), (HEADER, 1), (HEADER + 1, 1), (HEADER + FRAME, 2)])
async def test_the_first_missing_frame_of_a_shorter_log_is_named(killed: Path, left: int, frame: int) -> None:
    log = log_of(killed / "journal.db")
    log.write_bytes(log.read_bytes()[:left])
    assert find_damage(killed / "journal.db") == LogDamage(frame)


async def test_the_header_of_a_missing_log_is_named(killed: Path) -> None:
    log_of(killed / "journal.db").unlink()
    assert find_damage(killed / "journal.db") == LogDamage(0)


@pytest.mark.parametrize("left", [0, 20, HEADER, HEADER + FRAME, -FRAME, -1])
async def test_a_log_that_is_shorter_than_it_was_is_missed_loudly(killed: Path, left: int) -> None:
    log = log_of(killed / "journal.db")
    log.write_bytes(log.read_bytes()[:left])
    with pytest.raises(StoreError, match=r"journal.db-wal is damaged"):
        await open_journal(killed)


async def test_a_missing_log_is_missed_loudly(killed: Path) -> None:
    log_of(killed / "journal.db").unlink()
    with pytest.raises(StoreError, match=r"journal.db-wal is damaged"):
        await open_journal(killed)


@pytest.mark.parametrize("at", [0, 12, 18, 33, 46])
async def test_a_damaged_index_is_not_believed(killed: Path, at: int) -> None:
    index = index_of(killed / "journal.db")
    change(index, at)
    async with opened(killed) as journal:
        assert (await journal.load())[1] == EVENTS


async def test_a_commit_of_which_the_index_does_not_know_yet_is_no_damage(killed: Path, tmp_path: Path) -> None:
    """A kill between the last frame and the index."""
    file = tmp_path / "running/journal.db"
    async with opened(file.parent) as journal:
        await journal.append([submitted(EVENTS + 1)], durable=True)
        index = index_of(file).read_bytes()
        await journal.append([submitted(EVENTS + 2)], durable=True)
        shutil.rmtree(killed)
        shutil.copytree(file.parent, killed)
    index_of(killed / "journal.db").write_bytes(index)
    change(log_of(killed / "journal.db"), log_of(killed / "journal.db").stat().st_size - 1)
    assert find_damage(killed / "journal.db") is None
    async with opened(killed) as journal:
        assert (await journal.load())[1] == EVENTS + 1


def found(folder: Path) -> str:
    """Return what the verification says."""
    try:
        return str(verify(folder / "journal.db", folder / "archive").damages)
    except StoreError as error:
        return str(error)


async def test_the_header_is_named(killed: Path) -> None:
    change(log_of(killed / "journal.db"), 9)
    with pytest.raises(StoreError, match="its header is missing or does not match its checksum"):
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
    for each in (log, index_of(killed / "journal.db")):
        os.utime(each, (before_the_start, before_the_start))
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


@pytest.mark.skipif(platform.machine() not in SYNCS, reason="the filter's numbers are of other processors")
@pytest.mark.parametrize("written", [0, 1])
async def test_a_transaction_that_the_disk_refused_to_sync_is_neither_stored_nor_taken_for_a_lost_one(
    tmp_path: Path, written: int
) -> None:
    words = [sys.executable, "-m", "tests.store.unsynced_writer", str(tmp_path), "200", str(written)]
    done = await asyncio.to_thread(subprocess.run, words, cwd=REPOSITORY, capture_output=True, text=True, timeout=60)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert "refused" in done.stdout
    assert "Nothing was accepted" in done.stdout
    assert find_damage(tmp_path / "journal.db") is None
    async with opened(tmp_path) as journal:
        assert (await journal.load())[1] == 1 + written
