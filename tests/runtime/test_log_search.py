"""A search finds in parts what it would find in the whole file at once, and reads nothing that is not stored."""

from __future__ import annotations

import asyncio
import os
import re
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from cockpit.errors import RequestRefused
from cockpit.model.asking import LogMatches, LogRequest, LogSearch
from cockpit.model.refusal import RefusalKind
from cockpit.runtime import log_search
from cockpit.runtime.logs import read_log, search_log

pytestmark = pytest.mark.req("UI-14")
GAP = 64 << 20


async def searched(path: Path, **fields: object) -> tuple[list[int], int]:
    """The offsets of all matches that a reader finds who goes on where each answer ended, and their number."""
    request, found, count = LogSearch(job=1, **fields), list[int](), 0  # type: ignore[arg-type] # fields of any type
    for _ in range(1000):
        answer = await search_log(path, request)
        found += [at for at, _ in answer.found]
        count += answer.count
        if request.backward:
            request = replace(request, end=answer.begin)
            if answer.begin <= request.begin:
                return found, count
        else:
            request = replace(request, begin=answer.end)
            if answer.end >= answer.size:
                return found, count
    raise AssertionError("it does not end")


@given(
    log=st.lists(st.sampled_from([b"a", b"b", b"B", b"\n", b"\0", b"\xff", "é".encode()]), max_size=60).map(b"".join),
    text=st.sampled_from(["a", "b", "ab", "ba", "é", "bé", "b\udcff"[:1]]),
    part=st.integers(1, 9),
    most=st.integers(1, 3),
)
def test_the_parts_find_what_the_whole_has(log: bytes, text: str, part: int, most: int) -> None:
    expected = [each.start() for each in re.finditer(re.escape(text.encode()), log, re.IGNORECASE)]
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        patch.setattr(log_search, "FORWARD_BYTES", part)
        patch.setattr(log_search, "BACKWARD_BYTES", part)
        path = Path(folder, "log")
        path.write_bytes(log)
        found, _ = asyncio.run(searched(path, text=text, most=most))
        back, _ = asyncio.run(searched(path, text=text, most=most, backward=True))
        _, count = asyncio.run(searched(path, text=text, most=0))
        _, lines = asyncio.run(searched(path))
    assert found == sorted(back) == expected
    assert (count, lines) == (len(expected), log.count(b"\n"))


async def test_a_pattern_sees_no_edge_of_a_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_search, "FORWARD_BYTES", 10)
    path = tmp_path / "log"
    path.write_bytes(b"step 1 of 9\nstep 22 of 9\nlast step 3 of 9\n")
    assert (await searched(path, text=r"^step \d+", pattern=True))[0] == [0, 12]
    assert (await searched(path, text=r"9$", pattern=True))[0] == [10, 23, 40]
    answer = await search_log(path, LogSearch(job=1, text="step 22 of", begin=5))
    assert answer.found == ((12, 10),), "across the end of the part"


async def test_capitals_count_only_where_that_is_wanted(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"error\nError\n")
    assert (await searched(path, text="Error"))[0] == [0, 6]
    assert (await searched(path, text="Error", any_case=False))[0] == [6]


async def test_what_was_dropped_from_a_log_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with path.open("wb") as file:
        file.write(b"needle\n" + b"x" * 4088 + b"\n")
        file.seek(GAP << 10)
        file.write(b"needle\n")
    answers: list[LogMatches] = []
    for backward in (False, True):
        found, _ = await searched(path, text="needle", backward=backward, most=5)
        assert sorted(found) == [0, GAP << 10]
        answers.append(await search_log(path, LogSearch(job=1, text="nowhere", backward=backward)))
    assert all(answer.end - answer.begin <= 8192 for answer in answers)


async def test_a_text_that_no_line_can_have_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"x\n")
    for text in ("a\nb", "a\0b", "x" * 10_001):
        with pytest.raises(RequestRefused, match="shorten it") as caught:
            await search_log(path, LogSearch(job=1, text=text))
        assert caught.value.refusal.kind is RefusalKind.INVALID
    with pytest.raises(RequestRefused, match=r"The pattern '\(' cannot be searched: grep: "):
        await search_log(path, LogSearch(job=1, text="(", pattern=True))
    assert await search_log(tmp_path / "none", LogSearch(job=1, text="x")) == LogMatches((), 0, 0, 0, 0)


async def test_a_search_that_takes_too_long_or_is_cancelled_ends_its_programs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = tmp_path / "pid"
    stuck = ("sh", "-c", f"echo $$ > {started}.new; mv {started}.new {started}; exec sleep 1000")
    monkeypatch.setattr(log_search, "search_command", lambda *_: stuck)
    path = tmp_path / "log"
    path.write_bytes(b"x\n")
    async with asyncio.TaskGroup() as tasks:
        search = tasks.create_task(search_log(path, LogSearch(job=1, text="x")))
        while not started.exists():  # noqa: ASYNC110 - a file has no event
            await asyncio.sleep(0.01)
        search.cancel()
    with pytest.raises(ProcessLookupError):
        os.kill(int(started.read_text()), 0)
    monkeypatch.setattr(log_search, "SECONDS", 0.01)
    with pytest.raises(RequestRefused, match="takes longer than"):
        await search_log(path, LogSearch(job=1, text="x"))


async def test_a_reader_of_a_log_that_was_emptied_is_answered_at_once(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"new\n")
    chunk = await read_log(path, LogRequest(job=1, offset=100, wait=True), lambda: False)
    assert (chunk.data, chunk.size, chunk.ended) == (b"", 4, False)
    chunk = await read_log(path, LogRequest(job=1, offset=0, wait=True), lambda: False)
    assert (chunk.data, chunk.size) == (b"new\n", 4)
