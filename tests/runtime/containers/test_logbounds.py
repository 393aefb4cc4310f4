"""Logs that are longer than their limit: what is kept, what readers see, and how much of the disk is taken."""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from cockpit.headless.verbs.logs import tail_offset
from cockpit.model.asking import LogChunk, LogRequest
from cockpit.runtime.containers.plan import Bounds
from cockpit.runtime.containers.shim import linux, logbounds
from cockpit.runtime.containers.shim.logbounds import GRAIN, LogBounds
from cockpit.runtime.iterations import Iterations
from cockpit.runtime.logs import left_out, log_tail, read_log
from tests.runtime.containers.conftest import IS_ROOT

MIB = 1 << 20
LIMIT = 2 * MIB
LINE = b"line %08d of a training that says much\n"
LINES = [LINE % number for number in range(400_000)]
WHOLE = b"".join(LINES)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Written in pieces, with looks between them."""
    path = tmp_path / "1.0.stdout"
    bounds = LogBounds([str(path), str(tmp_path / "not there")], LIMIT)
    bounds.look()
    with path.open("ab", buffering=0) as file:
        for at in range(0, len(WHOLE), MIB):
            file.write(WHOLE[at : at + MIB])
            bounds.look()
            assert taken(path) <= LIMIT + MIB + 2 * GRAIN
    return path


def taken(path: Path) -> int:
    return path.stat().st_blocks * 512


async def everything(path: Path, limit: int = MIB, offset: int = 0) -> tuple[bytes, list[LogChunk]]:
    """The whole log, as a reader gets it piece by piece."""
    chunks: list[LogChunk] = []
    while True:
        chunk = await read_log(path, LogRequest(job=1, offset=offset, limit=limit), lambda: True)
        chunks.append(chunk)
        offset = chunk.offset + len(chunk.data)
        if chunk.ended:
            return b"".join(each.data for each in chunks), chunks


@pytest.mark.req("UI-14")
@pytest.mark.parametrize("limit", [7, 4096, MIB])
async def test_the_head_and_the_tail_of_a_log_are_kept_and_a_line_names_the_omitted_part(log: Path, limit: int) -> None:
    assert taken(log) <= LIMIT + 2 * GRAIN
    assert log.stat().st_size == len(WHOLE)
    if limit < 100:
        return await short_pieces(log, limit)
    shown, chunks = await everything(log, limit)
    head, _, rest = shown.partition("\n…".encode())
    marker, _, tail = rest.partition(b"\n")
    assert marker.decode() == f" {left_out(log) / MIB:.0f}M left out (log_limit) …"
    assert WHOLE.startswith(head)
    assert len(head) == LIMIT // 2
    assert WHOLE.endswith(tail)
    assert LIMIT // 2 <= len(tail) <= LIMIT // 2 + GRAIN
    assert len(head) + left_out(log) + len(tail) == len(WHOLE)
    assert sum(each.left_out > 0 for each in chunks) == 1
    return None


async def short_pieces(log: Path, limit: int) -> None:
    """Around the hole, byte by byte."""
    shown, _ = await everything(log, limit, log.stat().st_size - LIMIT)
    assert shown.startswith("\n… ".encode())
    assert WHOLE.endswith(shown.split(b"\n", 2)[2])


@pytest.mark.parametrize("lines", [0, 1, 3, 20_000, 30_000, 60_000])
async def test_the_last_lines_of_a_bounded_log_are_those_kept(log: Path, lines: int) -> None:
    requests: list[LogRequest] = []

    async def logs(request: LogRequest) -> LogChunk:
        requests.append(request)
        return await read_log(log, request, lambda: True)

    call = SimpleNamespace(backend=SimpleNamespace(logs=logs))
    offset = await tail_offset(call, LogRequest(job=1), lines)
    shown, _ = (b"", []) if lines == 0 else await everything(log, offset=offset)
    kept, _ = await everything(log)
    assert shown == b"".join(kept.splitlines(keepends=True)[-lines:] if lines else [])
    assert len(requests) < 60, "what is left out is not read through"


async def test_a_slow_reader_continues_after_the_omitted_part(log: Path) -> None:
    chunk = await read_log(log, LogRequest(job=1, offset=LIMIT, wait=True), lambda: False)
    assert chunk.data.startswith("\n… ".encode())
    assert chunk.offset - chunk.left_out == LIMIT // 2
    assert WHOLE.endswith(chunk.data.split(b"\n", 2)[2][-1000:]) or chunk.data.count(b"\n") > 1000


async def test_other_readers_skip_the_omitted_part(log: Path) -> None:
    assert log_tail(log, 2).encode() + b"\n" == b"".join(LINES[-2:])
    with log.open("ab") as file:
        file.write(b"iteration time (ms): hardware 100.0, end-to-end 900.0\n")
    read = Iterations(log)
    for _ in range(8):
        list(read.read_on())
    assert read._at == log.stat().st_size


def test_a_short_log_is_not_changed(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(WHOLE[:LIMIT])
    LogBounds([str(path)], LIMIT).look()
    assert (path.read_bytes(), left_out(path)) == (WHOLE[:LIMIT], 0)


@pytest.mark.req("TR-03")
@pytest.mark.parametrize("keeps_size", [False, True])
def test_space_that_a_job_allocates_ahead_is_freed(tmp_path: Path, keeps_size: bool) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"begun\n")
    option = ("--keep-size",) if keeps_size else ()
    subprocess.run(["fallocate", *option, "--length", str(32 * MIB), path], check=True, timeout=60)
    assert taken(path) >= 32 * MIB
    LogBounds([str(path)], LIMIT).look()
    assert taken(path) <= LIMIT + 2 * GRAIN
    assert path.read_bytes().startswith(b"begun\n")
    assert path.stat().st_size == (len(b"begun\n") if keeps_size else 32 * MIB)


@pytest.mark.req("TR-03")
@pytest.mark.parametrize("empties", [False, True])
def test_a_log_for_which_a_job_allocates_space_again_and_again_is_checked_more_often(
    tmp_path: Path, empties: bool
) -> None:
    path = tmp_path / "log"
    path.touch()
    bounds = LogBounds([str(path)], LIMIT)
    for _ in range(3):
        subprocess.run(["fallocate", "--length", str(32 * MIB), path], check=True, timeout=60)
        assert bounds.look() < 0.2
        if empties:
            os.truncate(path, 0)
            assert bounds.look() < 0.2


def test_a_log_that_is_a_link_is_not_changed(tmp_path: Path) -> None:
    (tmp_path / "other").write_bytes(WHOLE)
    (tmp_path / "log").symlink_to(tmp_path / "other")
    LogBounds([str(tmp_path / "log")], LIMIT).look()
    assert (tmp_path / "other").read_bytes() == WHOLE


async def test_a_disk_that_cannot_punch_holes_keeps_the_head(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EOPNOTSUPP, "punch a hole: not supported")

    monkeypatch.setattr(linux, "punch_hole", refuse)
    path = tmp_path / "log"
    path.write_bytes(WHOLE)
    LogBounds([str(path)], LIMIT).look()
    assert path.read_bytes() == WHOLE[: LIMIT // 2]


async def test_holes_that_a_job_makes_itself_cost_a_reader_little(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with path.open("wb") as file:
        for number in range(2000):
            file.seek(number * 2 * GRAIN)
            file.write(b"x")
    chunk = await read_log(path, LogRequest(job=1, offset=1999 * 2 * GRAIN - 5), lambda: True)
    assert chunk.data.endswith(b"x")
    assert left_out(path) > 0
    os.truncate(path, 1 << 40)
    chunk = await read_log(path, LogRequest(job=1, offset=-10), lambda: True)
    assert chunk.ended
    assert b"left out" in chunk.data


def test_a_fast_growing_log_is_checked_more_often(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"")
    bounds = LogBounds([str(path)], 2 * len(WHOLE))
    assert bounds.look() == 1.0
    path.write_bytes(WHOLE)
    assert bounds.look() < 1.0


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 100 MiB, of which logs leave 5 free."""
    if not IS_ROOT:
        pytest.skip("only root mounts a small disk")
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=100m", "small", str(disk)], check=True)
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


@pytest.mark.real
@pytest.mark.req("TR-03")
def test_on_a_full_disk_logs_stop_growing_and_continue_when_space_is_free(disk: Path) -> None:
    path, other = disk / "log", disk / "other"
    bounds = LogBounds([str(path)], 1 << 30)
    with path.open("ab", buffering=0) as file:
        for _ in range(300):
            file.write(WHOLE[:MIB])
            bounds.look()
            assert free(disk) > 3 * MIB, "5 MiB are reserved, less what is written between two looks"
        assert taken(path) > 90 * MIB
        other.write_bytes(b"x" * (2 * MIB))
        before = taken(path)
        for _ in range(50):
            file.write(WHOLE[:MIB])
            bounds.look()
            assert taken(path) <= before + MIB
        assert left_out(path) > 200 * MIB


@pytest.mark.real
@pytest.mark.req("JT-40")
def test_logs_that_grew_together_into_the_reserve_give_it_back(disk: Path) -> None:
    logs, rest = [disk / "first", disk / "second"], disk / "rest"
    bounds = LogBounds([*map(str, logs), str(rest)], 1 << 30)
    rest.write_bytes(WHOLE[: 8 * MIB])
    for growth in (36 * MIB, 9 * MIB):
        for log in logs:
            with log.open("ab") as file:
                file.write(b"x" * growth)
        before = taken(rest)
        bounds.look()
    assert free(disk) >= 5 * MIB - 4 * logbounds.GRAIN, "the reserve: a twentieth of the disk"
    assert all(taken(log) >= 36 * MIB for log in logs), "no more is given back than was missing"
    assert taken(rest) == before, "a log that did not grow keeps what it has"


def free(disk: Path) -> int:
    found = os.statvfs(disk)
    return found.f_bavail * found.f_frsize


@pytest.mark.real
@pytest.mark.req("JT-40")
async def test_a_job_that_writes_much_is_neither_blocked_nor_ended(house) -> None:
    house.bounds = Bounds(pids=200, scratch_mib=64, log_limit_mib=1)
    script = "seq 1 20000000; echo errors >&2; seq 1 20000000 >&2; exit 3"
    job = house.job(script)
    status = await house.kept(job)
    assert status.code == 3, status
    used = house.seen.used[job.replica]
    assert used is not None
    assert used.log_left_out_mib is not None
    assert used.log_left_out_mib > 2 * 150
    for stream in ("stdout", "stderr"):
        path = house.state / "logs" / str(job.replica.job) / f"1.0.{stream}"
        assert taken(path) <= MIB + 2 * logbounds.GRAIN
        assert log_tail(path, 1) == "20000000"
        first = await read_log(path, LogRequest(job=1, limit=100), lambda: True)
        assert first.data.startswith(b"1\n2\n" if stream == "stdout" else b"errors\n1\n")
