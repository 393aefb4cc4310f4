"""The ways to a cluster: HTTP answers, programs of this machine, and the arguments of ssh."""

from __future__ import annotations

import asyncio
import os
import select
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path

import pytest

from cockpit.backends.slurm.wire import calls, http, openssh
from cockpit.backends.slurm.wire.calls import AnswerLost, Failed, Printed, check_success, command_of, complaint
from cockpit.backends.slurm.wire.local import LocalCommands
from cockpit.backends.slurm.wire.openssh import Host, Master
from cockpit.backends.slurm.wire.ssh import SshCommands, _jump
from cockpit.errors import SpecErrors, Unreachable
from cockpit.runtime.http_client import HttpAnswer

pytestmark = pytest.mark.req("SL-01", "TR-04")
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n"


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[list[bytes]]:
    """A server that answers each request with the first of these bytes; then it adds the request."""
    spoken: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = next((int(line[16:]) for line in head.split(b"\r\n") if line.startswith(b"Content-Length: ")), 0)
        spoken.append(head + await reader.readexactly(length))
        writer.write(spoken.pop(0))
        writer.close()

    async with await asyncio.start_unix_server(serve, tmp_path / "socket"):
        yield spoken


async def ask(folder: Path, **words: object) -> HttpAnswer:
    return await http.ask(http.Place(str(folder / "socket")), "POST", "/x", {"A": "b"}, **words)


@pytest.mark.parametrize(
    ("raw", "reply"),
    [
        (b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nabcdef", HttpAnswer(200, b"abc")),
        (b"HTTP/1.0 404 Not Found\r\nContent-Length: 0\r\n\r\n", HttpAnswer(404, b"")),
        (b"HTTP/1.1 500 X\r\n\r\nto the end", HttpAnswer(500, b"to the end")),
        (
            CHUNKED + b"a;name=x\r\n0123456789\r\n10\r\n" + b"x" * 16 + b"\r\n0\r\n\r\n",
            HttpAnswer(200, b"0123456789" + b"x" * 16),
        ),
        (CHUNKED + b"0\r\n\r\n", HttpAnswer(200, b"")),
    ],
    ids=["sized", "empty", "unsized", "chunks", "no chunks"],
)
async def test_the_body_of_an_answer_is_read_as_its_headers_say(
    server: list[bytes], tmp_path: Path, raw: bytes, reply: HttpAnswer
) -> None:
    server.append(raw)
    assert await ask(tmp_path, body=b"{}") == reply
    (request,) = server
    lines = [b"POST /x HTTP/1.1", b"Connection: close", b"Host: localhost", b"Accept: application/json", b"A: b"]
    assert request == b"\r\n".join([*lines, b"Content-Length: 2", b"", b"{}"])


async def test_a_request_without_a_body_says_nothing_of_one(server: list[bytes], tmp_path: Path) -> None:
    server.append(b"HTTP/1.1 200 OK\r\n\r\n")
    assert await http.ask(http.Place(str(tmp_path / "socket")), "GET", "/x", {}) == HttpAnswer(200, b"")
    assert b"Content-Length" not in server[0]


@pytest.mark.parametrize(
    "raw",
    [
        CHUNKED + b"600\r\n" + b"x" * 0x600 + b"\r\n0\r\n\r\n",
        CHUNKED + b"300\r\n" + b"x" * 0x300 + b"\r\n300\r\n" + b"x" * 0x300 + b"\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 0x600,
        b"HTTP/1.1 200 OK\r\nContent-Length: 1025\r\n\r\n" + b"x" * 1025,
    ],
    ids=["chunk", "chunks", "unsized", "sized"],
)
async def test_a_body_that_is_too_long_is_not_read(
    server: list[bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, raw: bytes
) -> None:
    monkeypatch.setattr(http, "MOST_BYTES", 1024)
    server.append(raw)
    with pytest.raises(Unreachable, match="the most that is accepted"):
        await ask(tmp_path)


@pytest.mark.parametrize(
    "raw",
    [
        CHUNKED + b"5\r\nab",
        CHUNKED + b"zz\r\n",
        b"HTTP/2 200 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
    ],
)
async def test_a_cut_body_is_no_answer(server: list[bytes], tmp_path: Path, raw: bytes) -> None:
    server.append(raw)
    with pytest.raises(AnswerLost, match="broke off, or is not HTTP"):
        await ask(tmp_path)


def test_the_arguments_of_ssh_name_host_port_and_user() -> None:
    assert Host("lab").words == ("--", "lab")
    assert Host("-x", "ann", 2222).words == ("-p", "2222", "-l", "ann", "--", "-x")
    assert Host("lab", port=0).words == ("-p", "0", "--", "lab")


@pytest.fixture
def ssh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[str]]:
    """Return the lines of ssh's calls so far; ssh ends as the files `code` and `said` say."""
    program, calls_file = tmp_path / "bin" / "ssh", tmp_path / "calls"
    program.parent.mkdir()
    program.write_text(
        f'#!/bin/sh\nprintf "%s\\n" "$*" >>{calls_file}\ncat {tmp_path}/said >&2 2>/dev/null\n'
        f"exit $(cat {tmp_path}/code 2>/dev/null || echo 0)\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    return lambda: calls_file.read_text().splitlines()


async def test_a_line_runs_over_the_shared_connection(ssh: Callable[[], list[str]], tmp_path: Path) -> None:
    own = Master(Host("lab", "ann"), tmp_path / "made")
    (tmp_path / "made").mkdir()
    assert (await own.run("squeue --all", seconds=30, stdin=b"")).code == 0
    await own.close()
    assert not (tmp_path / "made").exists()
    theirs = Master(Host("lab"))
    await theirs.run("sinfo", seconds=30, stdin=b"")
    await theirs.close()
    shared = f"-o ControlPath={tmp_path}/made/to"
    assert ssh() == [
        f"{shared} -o ControlMaster=no -o BatchMode=yes -l ann -- lab squeue --all",
        f"{shared} -O exit -l ann -- lab",
        "-o ControlMaster=no -o BatchMode=yes -- lab sinfo",
    ]


@pytest.mark.parametrize(("said", "reason"), [("lost it", "lost it"), ("", "ssh says nothing")])
async def test_a_lost_shared_connection_is_reported(
    ssh: Callable[[], list[str]], tmp_path: Path, said: str, reason: str
) -> None:
    (tmp_path / "code").write_text("255")
    (tmp_path / "said").write_text(said)
    with pytest.raises(AnswerLost, match=f"^The connection to lab was lost: {reason}"):
        await Master(Host("lab")).run("sinfo", seconds=30, stdin=b"")
    (tmp_path / "code").write_text("7")
    assert (await Master(Host("lab")).run("sinfo", seconds=30, stdin=b"")).code == 7


async def test_a_connection_that_the_user_has_open_is_shared(ssh: Callable[[], list[str]], tmp_path: Path) -> None:
    assert await openssh.open_master(Host("lab")) is not None
    assert ssh() == ["-O check -- lab"]
    (tmp_path / "code").write_text("255")
    assert await openssh.open_master(Host("lab")) is None


@pytest.mark.parametrize("typing", [False, True])
async def test_a_login_of_ssh_makes_a_shared_connection(
    ssh: Callable[[], list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, typing: bool
) -> None:
    temporary = tmp_path / "temporary"  # of this test alone: other logins make their folders in /tmp meanwhile
    temporary.mkdir()
    monkeypatch.setattr(openssh, "LONGEST_FOLDER", len(str(temporary)))
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    made = await openssh.logged_in(Host("lab"), typing=typing)
    assert made._folder is not None
    assert made._folder.parent == temporary
    assert made._folder.stat().st_mode & 0o777 == 0o700
    (line,) = ssh()
    assert f"-o ControlPath={made._folder}/to -o ControlMaster=yes -o ControlPersist=600 -n" in line
    assert ("BatchMode=yes" in line) is not typing
    await made.close()
    assert list(temporary.iterdir()) == []
    (tmp_path / "code").write_text("255")
    (tmp_path / "said").write_text("no route\n")
    said = "no route" if not typing else "ssh says why above"
    with pytest.raises(Unreachable, match=f"^lab cannot be reached over SSH: {said}"):
        await openssh.logged_in(Host("lab"), typing=typing)
    assert list(temporary.iterdir()) == []


def test_jump_hosts_are_read_as_ssh_reads_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _jump("gate") == Host("gate")
    assert _jump("ann@gate:2222") == _jump("ssh://ann@gate:2222") == Host("gate", "ann", 2222)
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".ssh").mkdir()
    config = tmp_path / ".ssh" / "config"
    for jump, found in (("one,bob@two:99", [Host("one"), Host("two", "bob", 99)]), ("none", []), (None, [])):
        config.write_text(f"Host lab\n  User ann\n{f'  ProxyJump {jump}' if jump else ''}\n")
        assert list(SshCommands("ssh://lab")._jumps()) == found


@pytest.mark.parametrize(
    "address", ["ssh://", "http://lab", "ssh://lab:0", "ssh://lab:x", "ssh://lab/home", "ssh://a:b@lab"]
)
def test_what_is_no_ssh_address_is_refused(address: str) -> None:
    with pytest.raises(SpecErrors, match="is not an SSH address; write ssh://user@login"):
        SshCommands(address)


def test_an_ssh_address_names_the_login_node() -> None:
    assert (SshCommands("ssh://ann@lab:22/").name, SshCommands("ssh://ann@lab").user) == ("ann@lab", "ann")
    assert (SshCommands("ssh://lab").name, SshCommands("ssh://lab").user) == ("lab", "")


async def test_a_program_that_takes_too_long_is_ended_with_its_children(tmp_path: Path) -> None:
    here = LocalCommands(os.environ)
    with pytest.raises(AnswerLost, match=r"sh has not answered within 0\.5 s"):
        await here.run(("sh", "-c", f"sleep 100 & echo $! >{tmp_path}/pid; wait"), seconds=0.5)
    with suppress(ProcessLookupError):
        child = os.pidfd_open(int((tmp_path / "pid").read_text()))
        assert select.select([child], [], [], 30)[0] == [child], "its child has ended too"
        os.close(child)


async def test_programs_that_read_print_times_in_utc_and_no_variable_changes_their_form() -> None:
    steering = {"SQUEUE_FORMAT": "%i", "SLURM_TIME_FORMAT": "relative", "SLURM_CONF": "/etc/x", "TZ": "Asia/Tokyo"}
    here = LocalCommands({**steering, "PATH": os.environ["PATH"]})
    for reading, zone in ((True, "UTC"), (False, "Asia/Tokyo")):
        printed = await here.run(("env",), seconds=30, reading=reading)
        found = dict(line.partition("=")[::2] for line in printed.stdout.splitlines())
        assert {"TZ": zone, "SLURM_CONF": "/etc/x"}.items() <= found.items()
        assert not {"SQUEUE_FORMAT", "SLURM_TIME_FORMAT"} & found.keys()
    assert (await here.run(("sh", "-c", "cat; echo x >&2; exit 3"), seconds=30, stdin=b"in")) == Printed("in", "x\n", 3)
    with pytest.raises(Unreachable, match="none cannot be run on this machine: No such file"):
        await here.run(("/none",), seconds=1)


def test_the_last_three_lines_of_a_complaint_are_shown() -> None:
    lines = "one\nscontrol: error: two\n\n three \nerror: four\n"
    assert complaint(Printed("", lines, 1)) == "two three four"
    assert command_of(("scontrol", "-o", "show", "node", "n1", "x")) == "scontrol show node"
    assert command_of(("squeue", "--all", "abc")) == "squeue"


@pytest.mark.parametrize(
    ("printed", "error", "said"),
    [
        (Printed("", "Unable to contact slurm controller", 1), Unreachable, "Slurm does not answer squeue: Unable"),
        (Printed("", "Socket timed out", 1), AnswerLost, "Slurm does not answer squeue: Socket"),
        (Printed("", "", -9), AnswerLost, r"squeue was killed before it had answered \(exit code -9\)"),
        (Printed("", "", 129), AnswerLost, "exit code 129"),
        (Printed("", "no such option", 129), Failed, "no such option"),
        (Printed("", "", 128), Failed, "squeue ended with 128 and said nothing"),
        (Printed("on stdout", "", 1), Failed, "on stdout"),
    ],
)
def test_the_end_of_a_command_says_whether_slurm_answered(printed: Printed, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said) as caught:
        check_success(printed, ("squeue",))
    assert type(caught.value) is error
    assert check_success(printed._replace(code=0), ("squeue",)).code == 0


async def test_a_program_that_prints_without_end_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "MOST_BYTES", 1 << 20)
    with pytest.raises(Unreachable, match="yes prints without end; it was ended after 1 MiB"):
        await LocalCommands(os.environ).run(("yes",), seconds=60)
