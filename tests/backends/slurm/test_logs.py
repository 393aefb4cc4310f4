"""Which file of a job is read, from where, and what is shown of it."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from cockpit.backends.slurm import logs
from cockpit.backends.slurm.mapping.jobs import Listed, LookedUpJob
from cockpit.backends.slurm.wire.calls import Printed
from cockpit.errors import RequestRefused, Unreachable
from cockpit.model.asking import LogRequest, LogStream
from cockpit.model.ids import JobId
from cockpit.model.jobdetail import StepRow
from cockpit.model.refusal import RefusalKind
from tests.backends.slurm.test_values import a_record

pytestmark = pytest.mark.req("SL-10")
RUNS = {"State": "RUNNING", "NodeList": "n1", "StartTime": "2026-11-21T08:00:00", "UserName": "ann", "Name": "train"}
ENDED = {"State": "FAILED", "EndTime": "2026-11-21T09:00:00"}
STEP = StepRow(name="0", command="x", state="running", nodes=1, tasks=1, started_at=None, ended_at=None)


def job(**fields: str) -> LookedUpJob:
    each = Listed(a_record(**{"JobID": "7", **RUNS, **fields}))
    return LookedUpJob(each.job, each)


class Reading:
    """What Slurm reports of the files of a job."""

    def __init__(self, files: dict[str, str] | None = None, steps: Sequence[StepRow] = (), script: str = "") -> None:
        self.files, self.steps, self.own_script = files or {}, tuple(steps), script
        self.sacct = self

    async def output_files(self, _job: str) -> dict[str, str]:
        return dict(self.files)

    async def accounted(self, _job: str) -> tuple[None, tuple[StepRow, ...]]:
        return None, self.steps

    async def host_of(self, node: str) -> str:
        return f"{node}.site.org"

    async def version(self) -> tuple[int, ...]:
        return (24, 11)

    async def script(self, _job: str) -> str:
        return self.own_script


class Files:
    """Files of the cluster: stat prints their sizes, and dd encodes their pieces."""

    def __init__(self, **files: bytes) -> None:
        self.files = {f"/{name.replace('_', '/')}": content for name, content in files.items()}
        self.denied: set[str] = set()
        self.read: list[str] = []

    async def run(self, argv: Sequence[str], *, seconds: float) -> Printed:
        del seconds
        path = argv[4] if argv[0] == "sh" else argv[-1]
        if path in self.denied:
            return Printed("", f"stat: cannot statx '{path}': Permission denied", 1)
        if path not in self.files:
            return Printed("", f"stat: cannot statx '{path}': No such file or directory", 1)
        if argv[0] == "stat":
            return Printed(f"{len(self.files[path])}\n", "", 0)
        start, size = int(argv[5]), int(argv[6])
        self.read.append(path)
        return Printed(base64.b64encode(self.files[path][start : start + size]).decode(), "", 0)


FILES = {"stdout": "/out", "stderr": "/err", "folder": "/w"}


async def chunk(known: LookedUpJob, files: Files, reading: Reading | None = None, **request: Any) -> Any:
    commands: Any = files
    there: Any = reading or Reading(FILES)
    return await logs.read(commands, there, known, LogRequest(job=7, **request))


@pytest.mark.parametrize(
    ("offset", "limit", "start", "data", "at_end"),
    [
        (0, 100, 0, b"0123456789", True),
        (0, 4, 0, b"0123", False),
        (6, 100, 6, b"6789", True),
        (-3, 100, 7, b"789", True),
        (-99, 4, 0, b"0123", False),
        (10, 100, 10, b"", True),
        (99, 100, 99, b"", True),
    ],
)
@pytest.mark.parametrize("ended", [False, True])
async def test_a_piece_ends_the_log_only_if_the_job_has_ended_and_nothing_follows(
    offset: int, limit: int, start: int, data: bytes, at_end: bool, ended: bool
) -> None:
    found = await chunk(job(**ENDED if ended else {}), Files(out=b"0123456789"), offset=offset, limit=limit)
    assert (found.offset, found.data, found.ended) == (start, data, ended and at_end)


async def test_a_log_that_is_not_there_is_empty() -> None:
    for known, ended in ((job(), False), (job(**ENDED), True)):
        found = await chunk(known, Files())
        assert (found.data, found.offset, found.ended) == (b"", 0, ended)
    waits = Listed(a_record(JobID="7", State="PENDING"))
    files = Files(out=b"x")
    assert (await chunk(LookedUpJob(waits.job, waits), files)).data == b""
    assert files.read == []


async def test_a_log_of_another_user_is_refused() -> None:
    files = Files(out=b"x")
    files.denied.add("/out")
    with pytest.raises(RequestRefused, match="/out cannot be read: it belongs to another user") as caught:
        await chunk(job(), files)
    assert caught.value.refusal.kind is RefusalKind.DENIED


async def test_errors_have_a_file_of_their_own() -> None:
    files = Files(out=b"out", err=b"err")
    assert (await chunk(job(), files, stream=LogStream.STDERR)).data == b"err"
    assert (await chunk(job(), files)).data == b"out"


@pytest.mark.parametrize(
    ("output", "path"),
    [("/abs/%j.%N", "/abs/7.n1"), ("rel.%t", "/w/rel.0"), ("", "/out")],
)
async def test_a_step_writes_its_own_file_or_that_of_the_job(output: str, path: str) -> None:
    reading = Reading(FILES, [replace(STEP, name="batch"), replace(STEP, output=output)])
    known = job()
    there: Any = reading
    assert await logs._path(there, known, LogRequest(job=7, step="0", rank=0)) == path
    with pytest.raises(RequestRefused, match="Accounting knows no step 9 of job 7") as caught:
        await logs._path(there, known, LogRequest(job=7, step="9"))
    assert caught.value.refusal.kind is RefusalKind.NOT_FOUND


async def test_a_relative_file_of_a_step_without_a_known_folder_begins_at_the_jobs_output() -> None:
    there: Any = Reading()
    known = LookedUpJob(replace(job().job, spec=replace(job().job.spec, output="/o")), None, {})
    assert await logs._step_path(there, known, replace(STEP, output="rel"), 0) == "/o/rel"
    known = LookedUpJob(known.job, None, {"folder": "/f"})
    assert await logs._step_path(there, known, replace(STEP, output="rel"), 0) == "/f/rel"


async def test_the_host_of_a_node_is_asked_for_only_where_the_name_has_it() -> None:
    there: Any = Reading()
    assert (await logs._words(there, job(), "/x/%N"))["N"] == "n1"
    asked: list[str] = []

    async def host_of(node: str) -> str:
        asked.append(node)
        return "other.site.org"

    there.host_of = host_of
    assert (await logs._words(there, job(), "/x/%3N"))["N"] == "other"
    assert (await logs._words(there, job(), "/x/%j"))["N"] == "n1"
    assert asked == ["n1"]


async def test_the_tail_of_an_ended_job_is_that_of_its_errors_else_of_its_output() -> None:
    lines = b"".join(b"line %d\n" % number for number in range(20))
    there: Any = Reading(FILES)
    for files, expected in (
        (Files(out=lines, err=b"wrong\n"), "wrong"),
        (Files(out=lines, err=b""), "\n".join(f"line {number}" for number in range(8, 20))),
        (Files(), ""),
    ):
        commands: Any = files
        assert await logs.tail(commands, there, job(**ENDED)) == expected
    denied = Files(err=b"x")
    denied.denied.add("/err")
    commands = denied
    assert await logs.tail(commands, there, job(**ENDED)) == ""


async def test_a_script_of_accounting_names_the_files_of_a_forgotten_job() -> None:
    known = LookedUpJob(
        job().job, None, {"JobID": "7", "JobIDRaw": "7", "WorkDir": "/w", "SubmitLine": "sbatch job.sh"}
    )
    there: Any = Reading(script="#!/bin/sh\n#SBATCH --output=mine-%j\n")
    assert await logs.output_path(there, known) == "/w/mine-7"


async def test_a_component_has_the_file_of_the_first_one(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[JobId] = []

    async def look_up(_reading: object, wanted: JobId) -> LookedUpJob:
        asked.append(wanted)
        return job()

    monkeypatch.setattr(logs, "look_up", look_up)
    there: Any = Reading(FILES)
    other = job(JobID="8", HetJobID="7", HetJobOffset="1")
    assert (await logs._leader(there, other)).job.id == 7
    assert asked == [7]
    first = job(HetJobID="7", HetJobOffset="0")
    assert await logs._leader(there, first) is first


async def test_a_connection_that_is_lost_while_reading_is_an_error_of_the_log_but_not_of_the_tail() -> None:
    async def lost(*_: object, **__: object) -> Printed:
        raise Unreachable("lost")

    files: Any = Files()
    files.run = lost
    there: Any = Reading(FILES)
    with pytest.raises(Unreachable):
        await logs.read(files, there, job(), LogRequest(job=7))
    assert await logs.tail(files, there, job()) == ""
