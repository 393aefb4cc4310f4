"""A slurmrestd that is slow, dead, flapping, lying, or wants another token."""

from __future__ import annotations

import asyncio
import base64
import json
import re
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from cockpit.backends.slurm.backend import SlurmBackend
from cockpit.backends.slurm.reading import Reading
from cockpit.backends.slurm.wire import database, rest
from cockpit.backends.slurm.wire.answers import Answers, PollIntervals
from cockpit.backends.slurm.wire.http import Place, place_of
from cockpit.backends.slurm.wire.local import LocalCommands
from cockpit.backends.slurm.wire.rest import RestCommands, token_in
from cockpit.errors import RequestRefused, SpecErrors, Unreachable
from cockpit.model.asking import LogRequest, ShellRequest
from cockpit.model.cluster import PriorityKind
from cockpit.model.ids import JobId, Millis
from cockpit.model.priority import WeightChanges
from cockpit.runtime.clock import SystemClock

DATA = Path(__file__).parent / "data" / "rest" / "22.05"
LIST = ("squeue", "--Format=JobID:~")
Answering = Callable[[str, asyncio.StreamWriter], Awaitable[None]]


def http(body: bytes, status: str = "200 OK", length: int | None = None) -> bytes:
    size = len(body) if length is None else length
    return f"HTTP/1.1 {status}\r\nContent-Length: {size}\r\n\r\n".encode() + body


class Daemon:
    """Answers what was recorded, until it is told to do otherwise."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.heads: list[str] = []
        self.instead: Answering | None = None

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        self.heads.append(head)
        target = head.split(" ")[1]
        self.asked.append(target)
        try:
            await (self.instead or self.recorded)(target, writer)
            await writer.drain()
        except ConnectionError:
            return
        finally:
            writer.close()

    async def recorded(self, target: str, writer: asyncio.StreamWriter) -> None:
        area, version, name = target.partition("?")[0].split("/")[1:4]
        file = DATA / f"{'ended' if (area, name) == ('slurmdb', 'jobs') else name}.json"
        if version != "v0.0.38" or not file.exists():
            writer.write(http(b"Unable find requested URL.", "404 NOT FOUND"))
        else:
            writer.write(http(file.read_bytes()))

    def says(self, raw: bytes) -> None:
        async def answer(_: str, writer: asyncio.StreamWriter) -> None:
            writer.write(raw)

        self.instead = answer


@pytest.fixture
async def daemon(tmp_path: Path) -> AsyncIterator[Daemon]:
    made = Daemon()
    async with await asyncio.start_unix_server(made.serve, tmp_path / "rest.sock"):
        yield made


@pytest.fixture
def commands(daemon: Daemon, tmp_path: Path) -> RestCommands:
    return RestCommands(f"slurmrestd+unix://{tmp_path}/rest.sock", str, SystemClock().now)


def backend_over(commands: RestCommands, intervals: PollIntervals) -> SlurmBackend:
    clock = SystemClock()
    return SlurmBackend(
        "lab", commands, Reading(Answers(commands, clock.now, Random(1)), clock.now, intervals), clock, "ann"
    )


@pytest.mark.req("SL-01", "SL-02")
async def test_the_newest_available_version_is_used(daemon: Daemon, commands: RestCommands) -> None:
    assert ((await commands.run(LIST, seconds=5)).records or ())[0] == {"JobID": "1"}
    assert [each for each in daemon.asked if each.endswith("v0.0.38/ping")] == ["/slurm/v0.0.38/ping"]
    before = len(daemon.asked)
    await commands.run(LIST, seconds=5)
    assert daemon.asked[before:] == ["/slurm/v0.0.38/jobs"], "what it speaks is asked once"


@pytest.mark.req("SL-01")
async def test_data_that_slurmrestd_omits_are_reported(commands: RestCommands) -> None:
    backend = backend_over(commands, PollIntervals())
    shown = await backend.priorities()
    assert len(shown.rows) > 10
    assert shown.kind is PriorityKind.MULTIFACTOR, "unknown priorities may change, so no latest start is guaranteed"
    assert (
        "sprio is not available at the moment: slurmrestd v0.0.38 does not report it"
        in (await backend.status()).trouble
    )
    with pytest.raises(RequestRefused, match=r"does not report the weights.*only if you name all of them"):
        await backend.priorities(WeightChanges(age=1000))
    every = WeightChanges(age=1000, assoc=0, fairshare=0, job_size=0, partition=0, qos=0, tres={"cpu": 0})
    assert (await backend.priorities(every)).weights.age == 1000
    with pytest.raises(RequestRefused, match="slurmrestd opens no terminals: enter the job from a login node"):
        await commands.open_shell(("srun",), ShellRequest(job=JobId(1)))


@pytest.mark.req("SL-02")
async def test_an_endpoint_that_this_version_lacks_is_reported(commands: RestCommands) -> None:
    printed = await commands.run(("scontrol", "-o", "show", "licenses"), seconds=5)
    assert (printed.code, printed.stderr) == (1, "slurmrestd v0.0.38 does not report it")


@pytest.mark.req("SL-21")
async def test_the_request_is_shown_as_a_command(commands: RestCommands, tmp_path: Path) -> None:
    shown = await commands.shown(("scontrol", "hold", "7"), "")
    url = "http://localhost/slurm/v0.0.38/job/7"
    assert shown == ("curl", "--unix-socket", f"{tmp_path}/rest.sock", "-X", "POST", url, "--json", '{"hold": true}')


@pytest.mark.req("TR-04")
@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (http(b'{"jobs": [', length=1000), "The answer broke off"),
        (http(b'{"jobs": ['), r"does not answer with JSON \(HTTP status 200\)"),
        (http(b"[1]"), "does not answer with JSON"),
        (b"", "The answer broke off"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "is not HTTP"),
        (b"\xff" * 10_000_000, "is not HTTP"),
        (b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 1000, "is not HTTP"),
        (http(b"", length=1 << 40), "more than 512 MiB, the most that is accepted"),
        (http(b"", "429 TOO MANY REQUESTS"), r"receives too many requests \(HTTP 429\); cockpit tries again later"),
        (http(b"<html>", "500 INTERNAL ERROR"), r"not answer with JSON \(HTTP status 500\): '<html>'"),
        (http(b"", "502 BAD GATEWAY"), "HTTP status 502"),
        (http(b"Authentication failure", "401 UNAUTHORIZED"), "refuses you: 'Authentication failure'. A new token"),
    ],
    ids=["cut", "half", "list", "reset", "ssh", "10 MB line", "headers", "huge", "429", "500", "502", "401"],
)
async def test_an_invalid_answer_is_reported(daemon: Daemon, commands: RestCommands, raw: bytes, said: str) -> None:
    await commands.run(LIST, seconds=5)
    daemon.says(raw)
    with pytest.raises(Unreachable, match=said):
        await commands.run(LIST, seconds=5)
    daemon.instead = None
    assert (await commands.run(LIST, seconds=5)).records, "it recovers by itself"


@pytest.mark.req("TR-04", "SL-02")
@pytest.mark.parametrize("body", [b'{"jobs": 7}', b'{"jobs": null}', b'{"jobs": [7, null, [], {}]}', b"{}"])
async def test_json_of_another_kind_is_no_empty_list(daemon: Daemon, commands: RestCommands, body: bytes) -> None:
    await commands.run(LIST, seconds=5)
    daemon.says(http(body))
    with pytest.raises(Unreachable, match="The answer of slurmrestd is not whole: it has no list of jobs"):
        await commands.run(LIST, seconds=5)


@pytest.mark.req("TR-04")
async def test_slurms_own_error_message_is_reported(daemon: Daemon, commands: RestCommands) -> None:
    await commands.run(LIST, seconds=5)
    wrong = {"errors": [{"error_number": 2017, "error": "Invalid job id specified", "description": "job 7"}]}
    daemon.says(http(json.dumps(wrong).encode(), "500 INTERNAL ERROR"))
    printed = await commands.run(("scancel", "7"), seconds=5, reading=False)
    assert (printed.code, printed.stderr) == (1, "Invalid job id specified: job 7")


NOTHING_FOUND = {"description": "Nothing found", "error_number": 9003, "error": "Nothing found with query"}


@pytest.mark.req("SL-01", "SL-15")
async def test_an_accounting_without_ended_jobs_is_an_empty_list(daemon: Daemon, commands: RestCommands) -> None:
    async def empty(target: str, writer: asyncio.StreamWriter) -> None:
        if target.startswith("/slurmdb/v0.0.38/jobs"):
            writer.write(http(json.dumps({"errors": [NOTHING_FOUND], "jobs": []}).encode()))
        else:
            await daemon.recorded(target, writer)

    daemon.instead = empty
    backend = backend_over(commands, PollIntervals())
    assert await backend.accounting() == []
    assert not [sentence for sentence in (await backend.status()).trouble if "sacct" in sentence]
    (asked,) = (target for target in daemon.asked if target.startswith("/slurmdb/v0.0.38/jobs"))
    assert "state=BF%2CCA%2CCD" in asked, "jobs that were never eligible are listed only with their state"


def recorded_end(number: int) -> dict[str, Any]:
    """The JSON of an ended job in the recording of accounting."""
    jobs: list[dict[str, Any]] = json.loads((DATA / "ended.json").read_bytes())["jobs"]
    return next(each for each in jobs if each["job_id"] == number)


def only_in_accounting(daemon: Daemon, *jobs: dict[str, Any]) -> Answering:
    """A cluster whose controller knows no job, and whose accounting has these."""
    answers = {f"/slurmdb/v0.0.38/job/{each['job_id']}": [each] for each in jobs}
    answers |= {"/slurmdb/v0.0.38/jobs": list(jobs), "/slurm/v0.0.38/jobs": []}

    async def answer(target: str, writer: asyncio.StreamWriter) -> None:
        if (found := answers.get(target.partition("?")[0])) is None:
            await daemon.recorded(target, writer)
        else:
            writer.write(http(json.dumps({"errors": [], "jobs": found}).encode()))

    return answer


@pytest.mark.req("SL-10", "SL-15")
async def test_a_component_of_an_ended_job_has_one_row_in_every_view(daemon: Daemon, commands: RestCommands) -> None:
    components = [recorded_end(1) | {"job_id": 20 + each, "het": {"job_id": 20, "job_offset": each}} for each in (0, 1)]
    daemon.instead = only_in_accounting(daemon, *components)
    backend = backend_over(commands, PollIntervals())
    (listed,) = (row for row in await backend.jobs(ended=True) if row.id == 21)
    (accounted,) = (each for each in await backend.accounting() if each.row.id == 21)
    page = (await backend.job(JobId(21))).row
    assert listed.component == (20, 1)
    assert accounted.row == listed
    assert replace(page, output=listed.output) == listed, "the page finds out the output"


@pytest.mark.req("SL-01", "SL-10")
async def test_output_of_a_forgotten_job_is_read_where_slurm_writes_it_by_default(
    daemon: Daemon, tmp_path: Path
) -> None:
    """slurmrestd of 22.05 reports no output file of a job that only accounting has."""
    ended = recorded_end(1) | {"working_directory": str(tmp_path)}
    daemon.instead = only_in_accounting(daemon, ended, ended | {"job_id": 2})
    files = LocalCommands({"PATH": "/usr/bin:/bin"})
    commands = RestCommands(f"slurmrestd+unix://{tmp_path}/rest.sock", str, SystemClock().now, files)
    backend = backend_over(commands, PollIntervals())
    (tmp_path / "slurm-1.out").write_text("written\n")
    assert (await backend.logs(LogRequest(job=JobId(1)))).data == b"written\n"
    with pytest.raises(RequestRefused, match="no longer reports into which file job 2 wrote its output") as no:
        await backend.logs(LogRequest(job=JobId(2)))
    assert no.value.refusal.message.endswith(f"there is no {tmp_path}/slurm-2.out.")
    assert (await backend.job(JobId(2))).log_tail == ""


@pytest.mark.req("TR-04", "SL-04")
async def test_one_that_stalls_is_not_waited_for(daemon: Daemon, commands: RestCommands) -> None:
    release = asyncio.Event()

    async def stall(_: str, __: asyncio.StreamWriter) -> None:
        await release.wait()

    daemon.instead = stall
    with pytest.raises(Unreachable, match=r"has not answered within 0\.05 s"):
        await commands.run(LIST, seconds=0.05)
    release.set()


@pytest.mark.req("TR-04")
async def test_an_intermittent_slurmrestd_is_used_whenever_it_answers(daemon: Daemon, commands: RestCommands) -> None:
    await commands.run(LIST, seconds=5)
    heard = []
    for broken in (True, False) * 3:
        daemon.says(b"") if broken else setattr(daemon, "instead", None)
        try:
            heard.append((await commands.run(LIST, seconds=5)).code)
        except Unreachable:
            heard.append(None)
    assert heard == [None, 0] * 3


def a_token(ends_at: int) -> str:
    claims = base64.urlsafe_b64encode(json.dumps({"exp": ends_at, "sun": "ann"}).encode()).rstrip(b"=").decode()
    return f"eyJhbGciOiJIUzI1NiJ9.{claims}.sig"


@pytest.mark.req("TR-04", "SL-01")
async def test_a_token_that_has_run_out_is_not_even_sent(daemon: Daemon, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"SLURM_JWT={a_token(100)}\n")
    now = [Millis(99_000)]
    address = f"slurmrestd+unix://{tmp_path}/rest.sock"
    commands = RestCommands(address, token_in(str(file), {}), lambda: now[0])
    await commands.run(LIST, seconds=5)
    assert f"X-SLURM-USER-TOKEN: {a_token(100)}\r\n" in daemon.heads[-1]
    now[0], before = Millis(100_000), len(daemon.asked)
    with pytest.raises(Unreachable, match=r"has expired\. A new token comes from `scontrol token`"):
        await commands.run(LIST, seconds=5)
    assert len(daemon.asked) == before
    file.write_text(a_token(200))
    assert (await commands.run(LIST, seconds=5)).code == 0, "another token is taken at once"
    with pytest.raises(Unreachable, match="the token cannot be read: No such file"):
        token_in(str(tmp_path / "none"), {})()
    assert token_in("", {"SLURM_JWT": "x"})() == "x"


async def test_a_missing_slurmrestd_is_unreachable(tmp_path: Path) -> None:
    commands = RestCommands(f"slurmrestd+unix://{tmp_path}/none.sock", str, SystemClock().now)
    with pytest.raises(Unreachable, match="cannot be reached: No such file or directory"):
        await commands.run(LIST, seconds=5)


@pytest.mark.req("SL-01", "TR-04")
async def test_an_error_names_the_socket_or_the_host_and_port_that_was_tried(tmp_path: Path) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
    for address, named in (
        (f"slurmrestd+unix://{tmp_path}/none.sock", f"slurmrestd at {tmp_path}/none.sock "),
        (f"slurmrestd+http://127.0.0.1:{port}", f"slurmrestd at 127.0.0.1:{port} "),
    ):
        with pytest.raises(Unreachable, match=re.escape(named)):
            await RestCommands(address, str, SystemClock().now).run(LIST, seconds=5)


def test_addresses_are_parsed() -> None:
    assert place_of("slurmrestd+unix:///run/a%20b.sock") == Place("/run/a b.sock")
    assert place_of("slurmrestd+https://ann@host:7000") == Place("", "host", 7000, True, "ann")
    assert place_of("slurmrestd+http://host").url == "http://host:6820"


@pytest.mark.parametrize(
    "address", ["slurmrestd+unix://host/x", "slurmrestd+http:///x", "slurmrestd+http://a:b@host", "http://host"]
)
def test_an_invalid_address_is_reported(address: str) -> None:
    with pytest.raises(SpecErrors, match="is not the address of a slurmrestd; write slurmrestd"):
        place_of(address)


@pytest.mark.req("SL-01", "SL-04", "SL-15")
async def test_pages_do_not_wait_for_a_database_that_hangs_behind_slurmrestd(
    daemon: Daemon, commands: RestCommands, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither for the cluster's name, nor for shares, which this version takes out of the database."""
    awake = asyncio.Event()

    async def answer(target: str, writer: asyncio.StreamWriter) -> None:
        if target.startswith("/slurmdb/"):
            await awake.wait()
        await daemon.recorded(target, writer)

    daemon.instead = answer
    monkeypatch.setattr(rest, "NAME_SECONDS", 0.05)
    monkeypatch.setattr(database, "PROBE_SECONDS", 0.05)
    clock = SystemClock()
    answers = Answers(commands, clock.now, Random(1))
    answers.database.quiet_seconds = 0.0
    backend = SlurmBackend("lab", commands, Reading(answers, clock.now), clock, "ann")
    assert await backend.jobs(ended=True)
    assert "the accounting database (slurmdbd) has not answered" in (await backend.accounts()).missing
    said = " ".join((await backend.overview()).trouble)
    assert "sshare is not available at the moment: the accounting database" in said
    asked = [target.partition("?")[0] for target in daemon.asked if target.startswith("/slurmdb/v0.0.38/")]
    assert asked.count("/slurmdb/v0.0.38/clusters") == 2, "once for the name, and once to see whether it answers"
    assert len(asked) == len(set(asked)) + 1, "no question is put to it again"
    awake.set()
