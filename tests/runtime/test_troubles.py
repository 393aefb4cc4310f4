"""The sentences about what is wrong, and the pieces in which a log is read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from cockpit.model.asking import LogRequest
from cockpit.model.ids import JobId
from cockpit.model.job import Job
from cockpit.runtime import logs
from cockpit.runtime.logs import read_log
from cockpit.runtime.troubles import FaultLog, Outages, clock_trouble
from tests.builders import ANN, NOON, SECOND, a_spec

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.req("TR-03")


@pytest.mark.parametrize(
    ("offset", "words"),
    [
        (0, ""),
        (10 * SECOND - 1, ""),
        (1 - 10 * SECOND, ""),
        (10 * SECOND, "has been set 10 s ahead of the engine's"),
        (-10 * SECOND, "has been set back to 10 s behind the engine's"),
    ],
)
def test_a_clock_ten_seconds_away_is_reported(offset: int, words: str) -> None:
    told = clock_trouble(offset)
    assert words in told
    assert bool(told) is bool(words)


def test_a_source_that_fails_is_logged_once_and_named_until_it_answers(capfd: pytest.CaptureFixture[str]) -> None:
    outages = Outages()
    outages.note("the address of prices", "")
    assert outages.sentences == ()
    outages.note("the address of prices", "did not answer")
    outages.note("the address of prices", "was not found")
    outages.note("the mail server", "refused the login")
    assert outages.sentences == ("The address of prices was not found.", "The mail server refused the login.")
    assert capfd.readouterr().err.count("the address of prices") == 1
    outages.note("the address of prices", "")
    assert outages.sentences == ("The mail server refused the login.",)
    outages.note("the address of prices", "did not answer")
    assert capfd.readouterr().err == "cockpit engine: the address of prices did not answer\n"


def queue(*jobs: int) -> dict[JobId, Job]:
    return {
        JobId(each): Job(id=JobId(each), spec=a_spec(), submitter=ANN, project="p", submitted_at=NOON, state_since=NOON)
        for each in jobs
    }


@pytest.mark.parametrize(
    ("jobs", "named"),
    [
        ((1,), "job 1 from"),
        ((1, 2), "jobs 1, 2 from"),
        ((1, 2, 3), "1, 2, 3 from"),
        ((1, 2, 3, 4, 5), "3 and 2 more from"),
    ],
)
def test_three_jobs_with_defects_are_named(
    jobs: tuple[int, ...], named: str, capfd: pytest.CaptureFixture[str]
) -> None:
    faults, waiting = FaultLog(), queue(*jobs, 9)
    assert faults.sentences(waiting) == ()
    assert faults.note({JobId(each): ValueError("odd") for each in jobs}, waiting) == list(jobs)
    (sentence,) = faults.sentences(waiting)
    assert named in sentence
    assert "ValueError" in sentence
    assert faults.of(waiting[JobId(9)]) == ""
    assert faults.note({JobId(1): ValueError("odd")}, waiting) == [], "it is logged once"
    changed = {**waiting, JobId(1): replace(waiting[JobId(1)], version=7)}
    assert faults.of(changed[JobId(1)]) == "", "the job is another now"
    assert faults.note({JobId(1): ValueError("odd")}, changed) == [1]
    assert faults.sentences({}) == ()
    assert "odd" in capfd.readouterr().err


async def piece(path: Path, *, over: bool = True, **request: int) -> tuple[bytes, int, bool]:
    chunk = await read_log(path, LogRequest(job=1, **request), lambda: over)
    return chunk.data, chunk.offset, chunk.ended


@pytest.mark.req("JT-48")
async def test_a_log_is_read_in_pieces_from_either_end(tmp_path: Path) -> None:
    path = tmp_path / "log"
    assert await piece(path) == (b"", 0, True)
    assert await piece(path, over=False) == (b"", 0, False)
    path.write_bytes(b"0123456789")
    assert await piece(path) == (b"0123456789", 0, True)
    assert await piece(path, over=False) == (b"0123456789", 0, False)
    assert await piece(path, offset=4, limit=3) == (b"456", 4, False)
    assert await piece(path, offset=7, limit=3) == (b"789", 7, True)
    assert await piece(path, offset=-2) == (b"89", 8, True)
    assert await piece(path, offset=-99) == (b"0123456789", 0, True)
    assert await piece(path, offset=10) == (b"", 10, True)
    assert await piece(path, offset=11) == (b"", 11, True)
    assert await piece(path, limit=-1) == (b"", 0, False)


@pytest.mark.req("JT-48")
async def test_no_piece_of_a_log_is_larger_than_a_frame_takes(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"x" * (logs.MAX_CHUNK + 1))
    data, offset, ended = await piece(path, limit=1 << 30)
    assert (len(data), offset, ended) == (1 << 20, 0, False)
