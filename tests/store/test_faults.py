from __future__ import annotations

import asyncio
import errno
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cockpit.errors import StoreError
from cockpit.model.requests import KeptAnswer
from cockpit.store import faults
from cockpit.store.faults import store_errors
from tests.store.samples import open_journal, opened, shells, submitted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cockpit.store.journal import SqliteJournal

REPOSITORY = Path(__file__).parents[2]


def run(command: list[str | Path]) -> str:
    """What it printed; it runs beside the tests, so that it can import them, and complains of nothing."""
    said = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True, timeout=60)
    assert said.stderr == ""
    return said.stdout


async def seqs(journal: SqliteJournal) -> list[int]:
    return [record.seq for record in await journal.events(job=None, after=0, limit=5000)]


# ── The disk is full ─────────────────────────────────────────────────────────────────────────────────────────────────

UNSHARE = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "--mount"]


@pytest.mark.req("TR-01", "TR-03")
def test_a_full_disk_is_reported_and_writing_resumes_later(tmp_path: Path) -> None:
    if shutil.which("unshare") is None or subprocess.run([*UNSHARE, "true"], check=False).returncode != 0:
        pytest.skip("this machine gives no mount namespace to put a small disk in")
    told = json.loads(run([*UNSHARE, sys.executable, "-m", "tests.store.full_disk", tmp_path]))
    assert len(told["told"]) == 3
    for sentence in told["told"]:
        assert "full, or your quota is used up. Nothing was accepted. Free some space" in sentence
    assert told["when_full"] == [1, 2, 3]
    assert (told["answer"], told["last"]) == ("b", 503)


@pytest.mark.req("TR-03")
async def test_a_file_at_its_size_limit_keeps_its_events(journal: SqliteJournal) -> None:
    await journal.append([submitted(1)], durable=True)
    ((pages,),) = await journal._database.fetch("PRAGMA page_count")
    await journal._database.fetch(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(StoreError, match="full"):
        await journal.append([submitted(seq) for seq in range(2, 200)], durable=True, answer=KeptAnswer("r", b"a"))
    with pytest.raises(StoreError, match="full"):
        await journal.probe()
    assert await seqs(journal) == [1]
    await journal._database.fetch("PRAGMA max_page_count = 100000")
    await journal.probe()
    await journal.append([submitted(seq) for seq in range(2, 200)], durable=True, answer=KeptAnswer("r", b"a"))
    assert len(await seqs(journal)) == 199


@pytest.mark.req("TR-03")
async def test_events_of_running_jobs_have_reserved_space_that_submissions_cannot_use(
    journal: SqliteJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    await journal.append([submitted(1)], durable=True)
    await journal.keep_spare()
    ((pages,),) = await journal._database.fetch("PRAGMA page_count")
    await journal._database.fetch(f"PRAGMA max_page_count = {pages}")
    monkeypatch.setattr(faults, "_free_bytes", lambda _: 0)
    with pytest.raises(StoreError, match="full"):
        await journal.append([submitted(2)], durable=True)
    await journal.append(shells(2, 3000), durable=True)
    with pytest.raises(StoreError, match="full"):
        await journal.probe()
    assert (await seqs(journal))[-1] == 3000


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_the_system_errors_that_mean_a_full_disk(number: int, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"journal.db is full.*Free some space"), store_errors(tmp_path / "journal.db"):
        raise OSError(number, os.strerror(number))


# ── Another process has it ───────────────────────────────────────────────────────────────────────────────────────────

LOCK = """
import sqlite3, sys
other = sqlite3.connect(sys.argv[1], isolation_level=None)
other.execute("BEGIN IMMEDIATE")
print("locked", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def locker(journal: SqliteJournal, tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", LOCK, tmp_path / "journal.db"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "locked\n"
        yield process
        process.kill()


@pytest.mark.req("TR-03")
async def test_a_lock_is_waited_for_then_reported(journal: SqliteJournal, locker: subprocess.Popen[str]) -> None:
    with pytest.raises(StoreError, match=r"journal.db is locked by another process.*fuser -v .*journal.db"):
        await journal.append([submitted(1)], durable=True, answer=KeptAnswer("r", b"a"))
    assert await seqs(journal) == [], "reading goes on"
    locker.kill()
    locker.wait()
    await journal.append([submitted(1)], durable=True)
    assert await seqs(journal) == [1]


# ── It may not be written ────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def reachable() -> Iterator[Path]:
    """A folder that every user may enter, unlike pytest's."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.mark.req("TR-03")
def test_a_read_only_folder_is_reported_to_an_ordinary_user(reachable: Path) -> None:
    old, new = reachable / "old", reachable / "new"
    old.mkdir()
    new.mkdir()
    asyncio.run(write_one(old))
    (old / "journal.db").chmod(0o444)
    old.chmod(0o555)
    new.chmod(0o555)
    sentences = run([sys.executable, "-m", "tests.store.read_only", old, new]).splitlines()
    assert len(sentences) == 4
    for sentence in sentences:
        assert "cannot be written" in sentence
        assert "COCKPIT_STATE_FOLDER" in sentence
    old.chmod(0o755)
    new.chmod(0o755)


async def write_one(folder: Path) -> None:
    async with opened(folder) as journal:
        await journal.append([submitted(1)], durable=True)


# ── It is damaged ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
async def closed(tmp_path: Path) -> Path:
    """The file of a journal with 400 events."""
    async with opened(tmp_path) as journal:
        await journal.append([submitted(seq) for seq in range(1, 401)], durable=True)
    return tmp_path / "journal.db"


DAMAGED = r"journal.db is damaged \(.*\). Nothing was accepted. .*from a backup"


def overwrite(file: Path, offset: int, data: bytes) -> None:
    with file.open("r+b") as opened:
        opened.seek(offset)
        opened.write(data)


async def open_and_load(folder: Path) -> None:
    async with opened(folder) as journal:
        await journal.load()


@pytest.mark.req("TR-03")
@pytest.mark.parametrize("begin", [b"not a database at all", b"\0" * 100])
async def test_a_damaged_header_is_reported(closed: Path, begin: bytes) -> None:
    overwrite(closed, 0, begin)
    with pytest.raises(StoreError, match=DAMAGED):
        await open_journal(closed.parent)


@pytest.mark.req("TR-03")
async def test_damaged_pages_are_reported_when_read(closed: Path) -> None:
    overwrite(closed, 20 * 4096, b"\xaa" * 20 * 4096)
    with pytest.raises(StoreError, match=DAMAGED):
        await open_and_load(closed.parent)


@pytest.mark.req("TR-03")
async def test_a_truncated_file_is_reported(closed: Path) -> None:
    os.truncate(closed, 30 * 4096)
    with pytest.raises(StoreError, match=DAMAGED):
        await open_and_load(closed.parent)


@pytest.mark.req("TR-01", "TR-03")
async def test_a_torn_end_of_the_write_ahead_log_loses_only_unacknowledged_events(tmp_path: Path) -> None:
    """As after a power cut in the middle of an append: the last transaction's pages are there in part."""
    async with opened(tmp_path) as journal:
        await journal.append(shells(1, 3), durable=True)
        acknowledged = (tmp_path / "journal.db-wal").stat().st_size
        await journal.append(shells(4, 90), durable=True)
        crashed = tmp_path / "crashed"
        crashed.mkdir()
        for name in ("journal.db", "journal.db-wal"):
            shutil.copy(tmp_path / name, crashed / name)
        os.truncate(crashed / "journal.db-wal", acknowledged + 4096)

    async with opened(crashed) as journal:
        assert await seqs(journal) == [1, 2, 3]
        await journal.append(shells(4, 5), durable=True)


@pytest.mark.req("TR-03")
@pytest.mark.parametrize(
    ("code", "passes"), [(errno.ENOSPC, True), (errno.EDQUOT, True), (errno.EIO, False), (errno.EROFS, False)]
)
def test_only_a_full_disk_passes_without_a_repair(code: int, passes: bool, tmp_path: Path) -> None:
    with pytest.raises(StoreError) as failed, store_errors(tmp_path / "journal.db"):
        raise OSError(code, os.strerror(code))
    assert failed.value.passing is passes


def sentence_of(error: Exception) -> tuple[str, bool]:
    with pytest.raises(StoreError) as caught, store_errors(Path("/state/journal.db")):
        raise error
    return str(caught.value), caught.value.passing


@pytest.mark.parametrize(
    ("error", "said", "passing"),
    [
        (OSError(errno.ENOSPC, "No space"), "The disk that holds /state/journal.db is full", True),
        (OSError(errno.EDQUOT, "Quota"), "The disk that holds /state/journal.db is full", True),
        (OSError(errno.EROFS, "Read-only", "/state/other"), "/state/other cannot be written", False),
        (OSError(errno.EIO, "Input/output error"), "journal.db cannot be read or written (Input/output error, ", False),
        (OSError("no number"), "/state/journal.db cannot be read or written (no number, OSError)", False),
        (sqlite3.Error("odd"), "/state/journal.db cannot be read or written (odd, Error)", False),
        (UnicodeDecodeError("utf-8", b"x", 0, 1, "bad"), "damaged (text that is not UTF-8)", False),
    ],
)
def test_every_error_names_its_file_and_cause(error: Exception, said: str, passing: bool) -> None:
    sentence, ends_by_itself = sentence_of(error)
    assert said in sentence
    assert ends_by_itself is passing


@pytest.mark.parametrize("code", [sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN])
@pytest.mark.parametrize(("free", "full"), [(faults._NEARLY_NOTHING - 1, True), (faults._NEARLY_NOTHING, False)])
def test_an_input_output_error_on_a_full_disk_means_the_full_disk(
    monkeypatch: pytest.MonkeyPatch, code: int, free: int, full: bool
) -> None:
    monkeypatch.setattr(faults, "_free_bytes", lambda _file: free)
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = code | 3 << 8
    sentence, passing = sentence_of(error)
    assert sentence.startswith("The disk that holds") is passing is full


def test_a_disk_is_full_when_its_free_space_is_unknown_or_too_small(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert faults._free_bytes(tmp_path / "x") > 0
    assert faults._free_bytes(tmp_path / "none" / "x") == faults._NEARLY_NOTHING
    monkeypatch.setattr(faults, "_free_bytes", lambda _file: faults._NEARLY_NOTHING)
    faults.check_room(tmp_path / "x")
    monkeypatch.setattr(faults, "_free_bytes", lambda _file: faults._NEARLY_NOTHING - 1)
    with pytest.raises(StoreError, match="is full"):
        faults.check_room(tmp_path / "x")
