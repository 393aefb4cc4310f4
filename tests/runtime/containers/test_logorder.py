"""The order in which two logs grew: what is recorded of it, and the merged log that is read from it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from cockpit.errors import RequestRefused
from cockpit.model.asking import LogChunk, LogRequest, LogSearch, LogStream
from cockpit.model.ids import JobId, ReplicaId
from cockpit.runtime.containers.shim import linux, logorder
from cockpit.runtime.containers.shim.logbounds import GRAIN
from cockpit.runtime.containers.shim.logorder import LogOrder, order_path
from cockpit.runtime.logs import log_path
from cockpit.runtime.merged_logs import NO_ORDER, MergedLog, read_merged, search_merged

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.req("UI-14")

REPLICA = ReplicaId(JobId(7), 1, 0)
SECOND = 1_000_000_000


class Job:
    """A job that writes, and the holder that looks at its logs; `now` is the time in seconds."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.now = folder, 0
        self.paths = [log_path(folder, REPLICA, each) for each in (LogStream.STDOUT, LogStream.STDERR)]
        self.paths[0].parent.mkdir()
        self.order = LogOrder(*map(str, self.paths), order_path(str(self.paths[0])))
        self.seconds = self.order.look()

    def write(self, data: bytes, stderr: bool = False) -> None:
        self.now += 1
        with self.paths[stderr].open("ab") as file:
            file.write(data)
        os.utime(self.paths[stderr], ns=(self.now * SECOND, self.now * SECOND))

    def look(self) -> None:
        self.seconds = self.order.look()

    async def read(self, *, over: bool = False, **request: int) -> LogChunk:
        return await read_merged(self.folder, REPLICA, LogRequest(job=7, **request), lambda: over)

    async def whole(self, limit: int) -> list[LogChunk]:
        chunks, offset = list[LogChunk](), 0
        while not chunks or not chunks[-1].ended:
            chunks.append(await self.read(over=True, offset=offset, limit=limit))
            assert chunks[-1].data, "no end"
            offset = chunks[-1].offset + len(chunks[-1].data)
        return chunks


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(tmp_path)


async def test_lines_of_both_logs_come_in_the_order_in_which_they_were_written(job: Job) -> None:
    job.write(b"one\n")
    job.look()
    job.write(b"warn\n", stderr=True)
    job.write(b"two\n")
    job.look()
    chunk = await job.read()
    assert chunk.data == b"one\nwarn\ntwo\n", "between two looks the log that was written to last comes last"
    assert chunk.errors == ((4, 9),)
    assert chunk.moments == ((4, 1000), (9, 2000), (13, 3000))
    assert (chunk.ended, chunk.size) == (False, 13)


async def test_a_line_appears_once_it_is_whole_and_the_rest_at_the_end(job: Job) -> None:
    job.write(b"50 %\r", stderr=True)
    job.write(b"a\n")
    job.look()
    assert (await job.read()).data == b"a\n"
    job.write(b"100 %\nbye", stderr=True)
    job.write(b"b\n")
    job.look()
    assert (await job.read()).data == b"a\n50 %\r100 %\nb\n"
    job.write(b"c\n")
    whole = await job.read(over=True)
    assert (whole.data, whole.ended) == (b"a\n50 %\r100 %\nb\nc\nbye", True)
    assert whole.data[slice(*whole.errors[-1])] == b"bye"


async def test_a_line_of_a_mib_without_an_end_does_not_wait_for_it(job: Job) -> None:
    job.write(b"x" * (logorder.LONGEST_LINE + 1))
    job.look()
    assert (await job.read()).size == logorder.LONGEST_LINE + 1


@pytest.mark.parametrize("limit", [1, 7, 1000, 1 << 20])
async def test_windows_of_any_size_are_the_same_log(job: Job, limit: int) -> None:
    wanted = b""
    for number in range(150):
        for stderr in (number % 3 == 0, number % 7 == 0):
            line = b"%s %d\n" % (b"err" if stderr else b"out", number)
            job.write(line, stderr=stderr)
            job.look()
            wanted += line
    chunks = await job.whole(limit)
    assert b"".join(each.data for each in chunks) == wanted
    errors = {at for each in chunks for begin, end in each.errors for at in range(begin, end)}
    lines = wanted.split(b"\n")
    begins = [sum(len(line) + 1 for line in lines[:number]) for number in range(len(lines) - 1)]
    assert [at in errors for at in begins] == [line.startswith(b"err") for line in lines[:-1]]
    with MergedLog(job.folder, REPLICA, over=True) as log:
        for at in range(log.size):
            out, err = log.positions(at)
            assert log.offset_of(at in errors, err if at in errors else out) == at


async def test_a_search_finds_the_matches_of_both_logs_in_order(job: Job) -> None:
    wanted = b""
    for number in range(40):
        line = b"loss %d\n" % number
        job.write(line, stderr=number % 4 == 1)
        job.look()
        wanted += line
    asked = LogSearch(job=7, stream=LogStream.MERGED, text="loss", most=100)
    begins = [at for at in range(len(wanted)) if wanted.startswith(b"loss", at)]

    async def search(**changes: int | bool | str) -> list[int]:
        answer = await search_merged(job.folder, REPLICA, LogSearch(**{**structure(asked), **changes}), over=True)
        return [at for at, _ in answer.found] or [answer.count]

    assert await search() == begins
    assert await search(most=3, begin=1) == begins[1:4]
    assert await search(most=2, backward=True, end=begins[30]) == begins[28:30]
    assert await search(most=0) == [40]
    assert await search(most=0, text="", begin=begins[5]) == [35], "lines"


def structure(request: LogSearch) -> dict[str, object]:
    return {name: getattr(request, name) for name in request.__struct_fields__}


async def test_what_was_dropped_of_a_log_is_left_out_with_a_line_and_the_other_log_stays(job: Job) -> None:
    line = b"x" * (GRAIN - 1) + b"\n"
    for number in range(8):
        job.write(line)
        job.look()
        job.write(b"err %d\n" % number, stderr=True)
        job.look()
    fd = os.open(job.paths[0], os.O_WRONLY)
    linux.punch_hole(fd, 2 * GRAIN, 4 * GRAIN)
    os.close(fd)
    chunks = await job.whole(1 << 20)
    text = b"".join(each.data for each in chunks)
    assert [text.count(b"err %d\n" % number) for number in range(8)] == [1] * 8
    assert text.count(line) == 4
    assert text.count(b"left out (log_limit)") == 4, "one for each part that was between lines of stderr"
    for each in chunks:
        assert all(each.data[b - each.offset : e - each.offset].startswith(b"err") for b, e in each.errors)
    answer = await search_merged(
        job.folder, REPLICA, LogSearch(job=7, stream=LogStream.MERGED, text="err", most=0), over=True
    )
    assert answer.begin == 0
    assert answer.count + await rest_of_count(job, answer.end) == 8


async def rest_of_count(job: Job, begin: int) -> int:
    count = 0
    for _ in range(20):
        asked = LogSearch(job=7, stream=LogStream.MERGED, text="err", most=0, begin=begin)
        answer = await search_merged(job.folder, REPLICA, asked, over=True)
        count, begin = count + answer.count, max(begin + 1, answer.end)
        if answer.end >= answer.size:
            return count
    raise AssertionError("the search makes no progress")


async def test_an_emptied_log_begins_anew(job: Job) -> None:
    job.write(b"old\nold\n")
    job.write(b"err\n", stderr=True)
    job.look()
    os.truncate(job.paths[0], 0)
    job.write(b"n\n")
    job.look()
    chunk = await job.read(offset=12, wait=True)
    assert (chunk.data, chunk.ended, chunk.size) == (b"", False, 6), "its reader is told"
    assert sorted((await job.read()).data.splitlines()) == [b"err", b"n"]


async def test_many_records_are_thinned_and_the_log_stays_whole(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logorder, "MOST_RECORDS", 20)
    for number in range(200):
        job.write(b"%d\n" % number, stderr=number % 2 == 1)
        job.look()
    record = os.stat(order_path(str(job.paths[0]))).st_size
    assert record <= 21 * logorder.RECORD.size
    chunks = await job.whole(1 << 20)
    numbers = [int(each) for chunk in chunks for each in chunk.data.split()]
    assert sorted(numbers) == list(range(200))
    assert numbers[-6:] == list(range(194, 200)), "the last lines keep their order"


async def test_a_job_without_a_record_is_refused_with_the_reason(tmp_path: Path) -> None:
    path = log_path(tmp_path, REPLICA, LogStream.STDOUT)
    path.parent.mkdir()
    assert (await read_merged(tmp_path, REPLICA, LogRequest(job=7), lambda: True)).ended, "it has written nothing"
    path.write_bytes(b"a\n")
    with pytest.raises(RequestRefused, match="earlier version") as no:
        await read_merged(tmp_path, REPLICA, LogRequest(job=7), lambda: True)
    assert no.value.refusal.message == NO_ORDER


def test_a_quiet_log_is_looked_at_less_often(job: Job) -> None:
    job.write(b"a\n")
    job.look()
    assert job.seconds == 0.1
    for _ in range(5):
        job.look()
    assert job.seconds == 1.0
