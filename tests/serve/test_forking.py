"""Sessions that are forked: they are given what executed ones are, and outlive the process that forks them."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from contextlib import asynccontextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cockpit.model.access_level import AccessLevel
from cockpit.serve import starting
from cockpit.serve.accounts import Account, find_account, own_account, session_environment
from cockpit.serve.forking import ForkedProcess, ForkServer
from cockpit.serve.program import STDOUT, Program
from cockpit.serve.starting import start_program
from cockpit.session_forks import MODULES
from tests.doubles.terminal import Terminal
from tests.e2e.cockpit_user import eventually
from tests.serve.served import ME, SECONDS, ServedCockpit
from tests.serve.test_ssh import programs_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from cockpit.serve.starting import StartProgram

pytestmark = [pytest.mark.real, pytest.mark.req("TR-08")]
REPORT = "tests.serve.fork_report"
TABLE = {"terminal": (80, 24), "pipes": None}
USERS = [ME, pytest.param("nobody", marks=pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes others"))]


class Reader:
    """A client that keeps what the program writes."""

    def __init__(self) -> None:
        self.written = {STDOUT: b""}
        self.code: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def show(self, data: bytes, stream: int) -> None:
        self.written[stream] = self.written.get(stream, b"") + data

    def hold_input(self, held: bool) -> None:
        assert not held

    def ended(self, code: int) -> None:
        self.code.set_result(code)


@asynccontextmanager
async def forks(module: str = REPORT) -> AsyncIterator[tuple[ForkServer, list[str]]]:
    """A fork server that is ready, and its log."""
    log: list[str] = []
    ready = asyncio.Event()

    def report(line: str) -> None:
        log.append(line)
        ready.set()

    server = ForkServer(report, module)
    server.launch()
    try:
        await asyncio.wait_for(ready.wait(), SECONDS)
        yield server, log
    finally:
        server.close()


async def reported(start: StartProgram, account: Account, size: tuple[int, int] | None, lang: str) -> dict[str, Any]:
    """What a session says that it was given."""
    client = Reader()
    asked = {"TERM": "xterm", "LANG": lang}
    env = session_environment(account, AccessLevel.READ, asked, {**os.environ, "TZ": "Asia/Tokyo"})
    Program(["jobs", "-o", "json", "ü b"], account, env, client, size=size, start=start)
    code = await asyncio.wait_for(client.code, SECONDS)
    assert code == 0, client.written
    return json.loads(client.written[STDOUT])


@pytest.mark.parametrize("lang", ["C.UTF-8", "C", "en_GB.UTF-8", "xx_XX.UTF-8"])
@pytest.mark.parametrize("size", TABLE.values(), ids=TABLE)
@pytest.mark.parametrize("user", USERS)
async def test_a_forked_session_is_given_what_an_executed_one_is(
    monkeypatch: pytest.MonkeyPatch, user: str, size: tuple[int, int] | None, lang: str
) -> None:
    def command(words: Sequence[str]) -> list[str]:
        return [sys.executable, "-P", "-m", REPORT, "plain", *words]

    account = find_account(user)
    assert account is not None
    secret = os.open("/dev/zero", os.O_RDONLY)
    os.set_inheritable(secret, True)
    before = os.umask(0o027)
    try:
        async with forks() as (server, _):
            forked = await reported(server.start, account, size, lang)
        monkeypatch.setattr(starting, "command_line", command)
        executed = await reported(start_program, account, size, lang)
    finally:
        os.umask(before)
        os.close(secret)
    assert forked == executed
    assert forked["descriptors"] == [0, 1, 2]
    assert forked["umask"] == ["Umask:\t0027"]
    assert forked["ids"][0] == [account.uid] * 3


async def test_a_session_that_cannot_be_set_up_is_an_error_of_the_server_alone() -> None:
    async with forks() as (server, log):
        stranger = Account("x", os.geteuid() + 1, 2**32 - 1, "/")
        theirs = tuple(os.open(os.devnull, os.O_RDWR) for _ in range(3))
        with pytest.raises(OSError, match=r"Operation not permitted|Invalid argument"):
            server.start(["jobs"], stranger, {"LANG": "C.UTF-8"}, theirs, terminal=False)
        assert (await reported(server.start, own_account(), None, "C.UTF-8"))["arguments"][0] == "jobs"
        eventually(lambda: collected(server))
        assert len(log) == 1, "the fork server is the one that was"
        for each in theirs:
            os.close(each)


def collected(server: ForkServer) -> bool:
    """Whether no process that failed is left."""
    server._collect()
    return not server._adopted


async def test_where_nothing_forks_sessions_are_executed() -> None:
    async with forks("cockpit.no_such_module") as (server, log):
        client = Reader()
        env = session_environment(own_account(), AccessLevel.READ, {}, os.environ)
        program = Program(["--version"], own_account(), env, client, size=None, start=server.start)
        assert isinstance(program._process, subprocess.Popen)
        assert await asyncio.wait_for(client.code, SECONDS) == 0
        assert "another one starts" in log[0]


@pytest.mark.parametrize(("lang", "kind"), [("de_DE.ISO-8859-1", subprocess.Popen), ("fr_FR.utf8", ForkedProcess)])
async def test_a_session_of_another_encoding_is_executed(lang: str, kind: type) -> None:
    async with forks() as (server, _):
        client = Reader()
        env = session_environment(own_account(), AccessLevel.READ, {"LANG": lang}, os.environ)
        program = Program(["--version"], own_account(), env, client, size=None, start=server.start)
        assert isinstance(program._process, kind)
        assert await asyncio.wait_for(client.code, SECONDS) == 0


def test_sessions_outlive_the_fork_server_and_another_one_starts(fresh: ServedCockpit) -> None:
    key = fresh.key("own", f'user="{ME}"')
    fresh.start()
    home = {"PATH": "/usr/bin:/bin", "HOME": str(fresh.folder)}
    with Terminal(fresh.words(key, "-tt"), home) as one:
        one.until(lambda text: "Jobs" in text)
        (first,) = programs_of(fresh)
        os.kill(fresh.forks_from, signal.SIGKILL)
        fresh.logged("the fork server has ended")
        fresh.forks_from = int(fresh.logged(r"(?s)has ended.*sessions start from process (\d+)").group(1))
        one.press("?")
        one.until(lambda text: "Show what every key does" in text)
        with Terminal(fresh.words(key, "-tt"), home) as other:
            other.until(lambda text: "Jobs" in text)
            assert len(programs_of(fresh)) == 2
            assert all(memory_is_shared(pid) for pid in programs_of(fresh) if pid != first)
        one.press("\x1b")
        one.until(lambda text: "Show what every key does" not in text)
        one.press("q")
        assert one.process.wait(SECONDS) == 0
    eventually(lambda: not programs_of(fresh))
    assert fresh.stop() == 0
    eventually(lambda: not is_running(fresh.forks_from))


def memory_is_shared(pid: int) -> bool:
    """Whether the process was forked: its whole environment is in the space that the fork server keeps for it."""
    raw = Path(f"/proc/{pid}/cmdline").read_bytes()
    return raw.startswith(f"{sys.executable}\0-P\0-m\0cockpit.cli\0".encode()) and raw.endswith(b"\0" * 1000)


@pytest.mark.parametrize("name", MODULES)
def test_what_is_loaded_beforehand_exists(name: str) -> None:
    """One that is missing only makes sessions slower, so that nobody would notice."""
    import_module(name)


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
