"""The size of the part that is left out of a log is the same wherever it is shown."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from cockpit.model.asking import LogRequest
from cockpit.present import units
from cockpit.present.log_lines import left_out_line
from cockpit.runtime.logs import first_address, left_out, log_tail, mib_of, read_log, skip_left_out

if TYPE_CHECKING:
    from pathlib import Path


MIB = 1 << 20

pytestmark = pytest.mark.req("JT-40")


@pytest.mark.parametrize("size", [MIB, 56 * MIB + 190_000, 57 * MIB - 1, 12 * 1024 * MIB + 1])
def test_the_job_and_its_log_report_the_same_size(size: int) -> None:
    assert units.memory(mib_of(size)) == units.size(size)


@pytest.mark.parametrize(("size", "mib"), [(0, 0), (1, 1), (MIB - 1, 1)])
def test_a_small_omitted_part_is_not_reported_as_zero(size: int, mib: int) -> None:
    assert mib_of(size) == mib


HEAD, GAP, TAIL = 4096, 1 << 20, b"tail\n"


def with_gaps(path: Path, *heads: bytes) -> Path:
    """A log of these pieces, each of one block, with a gap of a MiB behind each, and of a last line."""
    with path.open("wb") as file:
        for head in heads:
            file.write(head)
            file.seek(GAP, os.SEEK_CUR)
        file.write(TAIL)
    return path


LINES, PART = b"x" * (HEAD - 1) + b"\n", b"x" * HEAD


@pytest.mark.req("JT-48")
@pytest.mark.parametrize(("head", "before"), [(LINES, b""), (PART, b"\n")])
async def test_a_line_takes_the_place_of_what_was_left_out(tmp_path: Path, head: bytes, before: bytes) -> None:
    path = with_gaps(tmp_path / "log", head)
    marker = before + f"{left_out_line(GAP)}\n".encode()
    first = await read_log(path, LogRequest(job=1), lambda: True)
    assert (first.data, first.offset, first.ended, first.left_out) == (head, 0, False, 0)
    for offset in (HEAD, HEAD + 1, HEAD + GAP - 1):
        chunk = await read_log(path, LogRequest(job=1, offset=offset), lambda: True)
        assert (chunk.data, chunk.ended) == (marker + TAIL, True)
        assert (chunk.offset, chunk.left_out) == (HEAD + GAP - len(marker), GAP - len(marker))
    behind = await read_log(path, LogRequest(job=1, offset=HEAD + GAP), lambda: True)
    assert (behind.data, behind.left_out) == (TAIL, 0)


@pytest.mark.req("JT-48")
async def test_each_gap_has_its_own_size(tmp_path: Path) -> None:
    path = with_gaps(tmp_path / "log", LINES, PART)
    assert left_out(path) == 2 * GAP
    second = HEAD + GAP
    chunk = await read_log(path, LogRequest(job=1, offset=second + HEAD), lambda: True)
    assert chunk.data == f"\n{left_out_line(GAP)}\n".encode() + TAIL
    with path.open("rb") as file:
        assert [skip_left_out(file.fileno(), at) for at in (0, HEAD, second, second + HEAD, 2 * second)] == [
            0,
            second,
            second,
            2 * second,
            2 * second,
        ]
    (tmp_path / "whole").write_bytes(LINES)
    assert (left_out(tmp_path / "whole"), left_out(tmp_path / "none")) == (0, 0)


@pytest.mark.req("JT-03")
def test_the_first_address_with_a_port_is_found(tmp_path: Path) -> None:
    empty, said = tmp_path / "stdout", tmp_path / "stderr"
    empty.write_text("see http://example.com/docs\n")
    said.write_text("at http://127.0.0.1:8888/lab?token=a and http://127.0.0.1:9999/\n")
    assert first_address([tmp_path / "none", empty, said]) == "http://127.0.0.1:8888/lab?token=a"
    assert first_address([said], limit=10) == ""
    assert first_address([]) == ""


def test_the_last_lines_of_a_log_are_readable(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"one\ntwo\xff\nthree\n")
    assert log_tail(path, 2) == "two\\xff\nthree"
    assert log_tail(path, 9, limit=6) == "three"
    assert log_tail(tmp_path / "none", 2) == ""
