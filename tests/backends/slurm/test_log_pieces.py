"""Pieces of jobs' output, read by the real programs from files of this machine."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest

from cockpit.backends.slurm.backend import SlurmBackend
from cockpit.backends.slurm.reading import Reading
from cockpit.backends.slurm.wire.answers import Answers
from cockpit.backends.slurm.wire.calls import Printed
from cockpit.backends.slurm.wire.recorded import RecordedCommands
from cockpit.errors import RequestRefused
from cockpit.model.asking import LogRequest, LogSearch
from cockpit.model.ids import JobId
from cockpit.runtime.clock import VirtualClock


class WithFiles(RecordedCommands):
    """A recorded cluster whose jobs' output files are below a folder of this machine."""

    def __init__(self, root: Path) -> None:
        super().__init__("24.11")
        self.root = root

    async def run(self, argv: Sequence[str], *, seconds: float, stdin: bytes = b"", reading: bool = True) -> Printed:
        if argv[0] not in {"stat", "sh"}:
            return await super().run(argv, seconds=seconds, stdin=stdin, reading=reading)
        here = [f"{self.root}{word}" if word.startswith("/") else word for word in argv]
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(*here, stdout=pipe, stderr=pipe)
        out, err = await process.communicate()
        return Printed(out.decode(), err.decode(), process.returncode or 0)


@pytest.fixture
async def cluster(tmp_path: Path) -> tuple[SlurmBackend, JobId, Path]:
    """The backend, a running job, and its output file on this machine, which does not exist yet."""
    commands = WithFiles(tmp_path)
    clock = VirtualClock(commands.recorded_at)
    backend = SlurmBackend("new", commands, Reading(Answers(commands, clock.now, Random(1)), clock.now), clock, "alice")
    running = next(row.id for row in await backend.jobs() if row.placed_on)
    path = (await backend.job(running)).job.spec.output
    assert path.startswith("/")
    file = tmp_path / path[1:]
    file.parent.mkdir(parents=True)
    return backend, running, file


@pytest.mark.req("SL-10")
async def test_pieces_are_the_files_own_bytes(cluster: tuple[SlurmBackend, JobId, Path]) -> None:
    backend, job, file = cluster
    written = bytes(range(256)) * 300
    file.write_bytes(written)
    for offset, limit, start in ((0, 100, 0), (70_000, 1 << 20, 70_000), (-300, 1000, 76_500), (-1 << 30, 10, 0)):
        chunk = await backend.logs(LogRequest(job=job, offset=offset, limit=limit))
        assert (chunk.offset, chunk.data) == (start, written[start : start + limit])
        assert not chunk.ended, "the job still runs"
    beyond = await backend.logs(LogRequest(job=job, offset=len(written)))
    assert (beyond.offset, beyond.data) == (len(written), b"")


@pytest.mark.req("UI-14", "TR-06")
async def test_a_file_is_searched_where_it_is(cluster: tuple[SlurmBackend, JobId, Path]) -> None:
    backend, job, file = cluster
    assert (await backend.search_log(LogSearch(job=job, text="x"))).size == 0, "there is no file yet"
    written = b"".join(b"step %d\n" % number for number in range(5000)) + b"it's $(here) \"\\n\n"
    file.write_bytes(written)
    for text in ("STEP 4999", "it's $(here) \"\\"):
        (match,) = (await backend.search_log(LogSearch(job=job, text=text))).found
        assert match == (written.lower().index(text.lower().encode()), len(text))
    last = await backend.search_log(LogSearch(job=job, text="step 4", backward=True, end=written.index(b"step 4998")))
    assert last.found == ((written.index(b"step 4997"), 6),)
    counted = await backend.search_log(LogSearch(job=job, text="p .$", pattern=True, most=0))
    assert (counted.count, counted.begin, counted.end) == (10, 0, len(written))
    assert (await backend.search_log(LogSearch(job=job))).count == 5001
    with pytest.raises(RequestRefused, match=r"The pattern '\[' cannot be searched: grep: "):
        await backend.search_log(LogSearch(job=job, text="[", pattern=True))


@pytest.mark.req("SL-10")
async def test_a_file_that_does_not_exist_yet_is_empty(cluster: tuple[SlurmBackend, JobId, Path]) -> None:
    backend, job, _ = cluster
    assert (await backend.logs(LogRequest(job=job))).data == b""


@pytest.mark.req("SL-10", "TR-04")
async def test_an_unreadable_file_is_refused_with_the_cause(
    cluster: tuple[SlurmBackend, JobId, Path],
) -> None:
    backend, job, file = cluster
    file.mkdir()
    with pytest.raises(RequestRefused, match=r"cannot be read: .*Is a directory"):
        await backend.logs(LogRequest(job=job))
