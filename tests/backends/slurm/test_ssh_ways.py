"""Which connection a command takes to a login node, and what becomes of connections that are lost."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import asyncssh
import pytest

from cockpit.backends.slurm.wire import ssh
from cockpit.backends.slurm.wire.calls import AnswerLost, Garbled, Printed
from cockpit.backends.slurm.wire.openssh import Host
from cockpit.backends.slurm.wire.ssh import Refused, SshCommands, _options, _whole, remote_line
from cockpit.errors import LoginLost, Unreachable
from cockpit.model.asking import ShellRequest

pytestmark = pytest.mark.req("SL-01", "TR-04")


NOTHING = Printed("", "", 0)


class FakeMaster:
    """A shared connection of ssh, whose commands print what a test says."""

    def __init__(self, printed: Printed | Unreachable = NOTHING) -> None:
        self.printed, self.lines, self.closed = printed, [], 0

    async def run(self, line: str, *, seconds: float, stdin: bytes) -> Printed:
        self.lines.append(line)
        if isinstance(self.printed, Unreachable):
            raise self.printed
        end = line.rpartition("echo ")[2].strip("'") if "&& echo" in line else ""
        return self.printed._replace(stdout=self.printed.stdout + (f"{end}\n" if end else ""))

    async def open_shell(self, line: str, request: ShellRequest) -> str:
        return f"shell of {line}"

    async def close(self) -> None:
        self.closed += 1


class Connection:
    """An open connection of asyncssh."""

    def __init__(self) -> None:
        self.open, self.waited = True, False

    def is_closed(self) -> bool:
        return not self.open

    def close(self) -> None:
        self.open = False

    async def wait_closed(self) -> None:
        self.waited = True


class Ways:
    """The ways that there are to a login node, each of which a test opens."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.shared: FakeMaster | None = None
        self.direct: Connection | Exception = Unreachable("no route")
        self.taken: list[str] = []
        monkeypatch.setattr(ssh, "Master", FakeMaster)
        monkeypatch.setattr(ssh, "open_master", self._standing)
        monkeypatch.setattr(ssh, "logged_in", self._logged_in)
        monkeypatch.setattr(ssh, "log_in_now", self._log_in_now)
        monkeypatch.setattr(ssh.shutil, "which", lambda _: "/usr/bin/ssh")
        self.commands = SshCommands("ssh://ann@lab")
        monkeypatch.setattr(self.commands, "_connect", self._connect)
        self.made = FakeMaster()

    async def _standing(self, _host: Host) -> FakeMaster | None:
        self.taken.append("standing")
        return self.shared

    async def _connect(self) -> Connection:
        self.taken.append("connect")
        if isinstance(self.direct, Exception):
            raise self.direct
        return self.direct

    async def _logged_in(self, host: Host, *, typing: bool) -> FakeMaster:
        self.taken.append(f"log in to {host.name} {typing}")
        return self.made

    def _log_in_now(self, host: Host, *, typing: bool) -> FakeMaster:
        self.taken.append(f"log in now {typing}")
        return self.made


@pytest.fixture
def ways(monkeypatch: pytest.MonkeyPatch) -> Ways:
    return Ways(monkeypatch)


async def test_an_open_connection_is_used_again_until_it_is_closed(ways: Ways) -> None:
    first = ways.direct = Connection()
    assert await ways.commands._open_connection() is first
    assert await ways.commands._open_connection() is first
    assert ways.taken == ["standing", "connect"]
    first.open = False
    second = ways.direct = Connection()
    assert await ways.commands._open_connection() is second
    assert len(ways.taken) == 4
    assert not ways.commands.is_needed


async def test_a_connection_that_the_user_has_open_is_taken_first(ways: Ways) -> None:
    ways.shared = FakeMaster()
    assert await ways.commands._open_connection() is ways.shared
    ways.shared = None
    assert await ways.commands._open_connection() is not None
    assert ways.taken == ["standing"]


async def test_what_only_ssh_understands_is_left_to_ssh(ways: Ways) -> None:
    ways.direct = ValueError("a key of another kind")
    assert await ways.commands._open_connection() is ways.made
    assert ways.taken == ["standing", "connect", "log in to lab False"]


@pytest.mark.parametrize(
    ("error", "typed"),
    [(Refused("no key"), True), (LoginLost("lab"), True), (Unreachable("no route"), False)],
)
async def test_a_login_is_typed_where_the_server_refuses_the_keys(ways: Ways, error: Unreachable, typed: bool) -> None:
    ways.direct = error
    await ways.commands.log_in()
    assert ("log in to lab True" in ways.taken) is typed
    assert (ways.commands._master is ways.made) is typed


async def test_without_ssh_a_refusal_stays_one(ways: Ways, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ssh.shutil, "which", lambda _: None)
    ways.direct = Refused("no key")
    with pytest.raises(Refused):
        await ways.commands.log_in()


async def test_a_login_is_needed_after_a_refusal_until_it_was_typed(ways: Ways) -> None:
    ways.commands._refused = True
    assert ways.commands.is_needed
    ways.commands.ask_at_terminal()
    assert ways.taken == ["log in now True"]
    assert not ways.commands.is_needed
    assert await ways.commands._open_connection() is ways.made


async def test_closing_closes_every_connection_once(ways: Ways) -> None:
    master, connection = FakeMaster(), Connection()
    held: Any = ways.commands
    held._master, held._connection = master, connection
    for _ in range(2):
        await ways.commands.close()
    assert (master.closed, connection.open, connection.waited) == (1, False, True)


async def test_a_command_over_the_shared_connection_is_whole_or_an_error(ways: Ways) -> None:
    ways.shared = FakeMaster(Printed("all\n", "", 0))
    assert await ways.commands.run(("squeue", "-h"), seconds=5) == Printed("all\n", "", 0)
    assert ways.shared.lines[0].startswith("env TZ=UTC squeue -h && echo ")
    assert (await ways.commands.run(("sbatch",), seconds=5, reading=False)).stdout == "all\n"
    assert ways.shared.lines[1] == "sbatch"
    ways.shared.printed = Printed("", "refused", 1)
    assert (await ways.commands.run(("squeue",), seconds=5)).code == 1


async def test_a_shared_connection_that_is_lost_is_closed_and_another_way_looked_for(ways: Ways) -> None:
    lost = ways.shared = FakeMaster(AnswerLost("lost"))
    with pytest.raises(AnswerLost):
        await ways.commands.run(("squeue",), seconds=5)
    assert lost.closed == 1
    ways.shared = FakeMaster(Printed("again", "", 0))
    assert (await ways.commands.run(("squeue",), seconds=5)).stdout == "again"


async def test_a_node_that_does_not_answer_in_time_is_unreachable_until_the_command_began(
    ways: Ways, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def forever(*_: object, **__: object) -> None:
        await asyncio.Event().wait()

    ways.shared = FakeMaster()
    monkeypatch.setattr(FakeMaster, "run", forever)
    with pytest.raises(AnswerLost, match=r"squeue on ann@lab has not answered within 0\.01 s"):
        await ways.commands.run(("squeue",), seconds=0.01)
    monkeypatch.setattr(ways.commands, "_open_connection", forever)
    with pytest.raises(Unreachable) as caught:
        await ways.commands.run(("squeue",), seconds=0.01)
    assert type(caught.value) is Unreachable


async def test_a_shell_opens_over_the_shared_connection(ways: Ways) -> None:
    ways.shared = FakeMaster()
    assert await ways.commands.open_shell(("srun", "a b"), ShellRequest(job=7)) == "shell of srun 'a b'"


def test_an_answer_without_its_last_line_is_not_whole() -> None:
    assert _whole(Printed("x\n~e~\n", "", 0), "~e~", "squeue").stdout == "x\n"
    assert _whole(Printed("x", "", 0), "", "squeue").stdout == "x"
    assert _whole(Printed("x", "", 1), "~e~", "squeue").stdout == "x"
    with pytest.raises(Garbled, match="its end did not come through"):
        _whole(Printed("x\n", "", 0), "~e~", "squeue")
    assert remote_line(("a b", "c")) == "'a b' c"
    assert remote_line(("a",), utc=True, end="~") == "env TZ=UTC a && echo '~'"


def test_the_options_of_a_host_are_its_user_port_and_existing_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".ssh").mkdir()
    (tmp_path / "key").touch()
    assert _options(Host("lab"))["config"] in (None, ["/etc/ssh/ssh_config"])
    assert not {"username", "port", "client_keys"} & _options(Host("lab")).keys()
    (tmp_path / ".ssh" / "config").write_text(
        f"Host lab\n  IdentityFile {tmp_path}/key\n  IdentityFile {tmp_path}/no\n"
    )
    found = _options(Host("lab", "ann", 2222))
    assert (found["username"], found["port"]) == ("ann", 2222)
    assert (found["client_keys"], found["ignore_encrypted"]) == ([f"{tmp_path}/key"], True)
    assert str(tmp_path / ".ssh" / "config") in found["config"]


@pytest.mark.parametrize(
    ("error", "typed", "kind", "said"),
    [
        (
            asyncssh.PermissionDenied("no key fits"),
            False,
            Refused,
            "lab refuses the keys of this machine and its agent",
        ),
        (asyncssh.PermissionDenied("no key fits"), True, LoginLost, "lab"),
        (OSError("no route"), False, Unreachable, "ann@lab cannot be reached over SSH: no route"),
    ],
)
async def test_a_refusal_of_the_keys_after_a_typed_login_means_that_the_login_is_lost(
    monkeypatch: pytest.MonkeyPatch, error: Exception, typed: bool, kind: type[Exception], said: str
) -> None:
    async def hop(_host: Host, _hops: object) -> None:
        raise error

    commands = SshCommands("ssh://ann@lab")
    monkeypatch.setattr(commands, "_jumps", list)
    monkeypatch.setattr(commands, "_hop", hop)
    commands._typed = typed
    with pytest.raises(kind, match=said) as caught:
        await commands._connect()
    assert type(caught.value) is kind
    assert commands._refused is isinstance(error, asyncssh.PermissionDenied)


async def test_jump_hosts_are_passed_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[tuple[str, list[str]]] = []

    async def hop(host: Host, hops: list[str]) -> str:
        made.append((host.name, list(hops)))
        return host.name

    commands = SshCommands("ssh://lab")
    monkeypatch.setattr(commands, "_jumps", lambda: [Host("one"), Host("two")])
    monkeypatch.setattr(commands, "_hop", hop)
    found: Any = await commands._connect()
    assert found == "lab"
    assert made == [("one", []), ("two", ["one"]), ("lab", ["one", "two"])]


class Stream:
    """Output of a remote program, in pieces."""

    def __init__(self, *pieces: bytes) -> None:
        self.pieces = list(pieces)

    async def read(self, _size: int) -> bytes:
        return self.pieces.pop(0) if self.pieces else b""


class Input:
    def __init__(self, *, closed: bool = False) -> None:
        self.written, self.closed = b"", closed

    def write(self, data: bytes) -> None:
        if self.closed:
            raise BrokenPipeError
        self.written += data

    async def drain(self) -> None: ...

    def write_eof(self) -> None:
        self.written += b"|"


class Process:
    """A remote program that prints and ends."""

    def __init__(self, code: int | None, *out: bytes, closed: bool = False) -> None:
        self.stdout, self.stderr, self.stdin = Stream(*out), Stream(b"wrong"), Input(closed=closed)
        self.returncode, self.exit_status, self.exit_signal = code, code, None
        self.did: list[str] = []

    async def wait_closed(self) -> None: ...

    def kill(self) -> None:
        self.did.append("kill")

    def close(self) -> None:
        self.did.append("close")


@pytest.mark.parametrize(("code", "told"), [(0, 0), (7, 7), (None, 255)])
async def test_a_remote_program_has_its_input_output_and_exit_code(code: int | None, told: int) -> None:
    process: Any = Process(code, b"ou", b"t")
    assert await ssh._talk(process, b"typed", "squeue") == Printed("out", "wrong", told)
    assert process.stdin.written == b"typed|"
    gone: Any = Process(code, closed=True)
    assert (await ssh._talk(gone, b"typed", "squeue")).code == told


@pytest.mark.parametrize(
    ("status", "signal", "did"),
    [(None, None, ["kill", "close"]), (0, None, ["close"]), (None, ("TERM", False, "", ""), ["close"])],
)
def test_a_remote_program_is_killed_if_it_still_runs_and_its_channel_is_closed(
    status: int | None, signal: Any, did: list[str]
) -> None:
    process: Any = Process(None)
    process.exit_status, process.exit_signal = status, signal
    ssh._end(process)
    assert process.did == did


async def test_the_channel_of_every_command_is_closed(ways: Ways) -> None:
    process = Process(0)

    class Open(Connection):
        async def create_process(self, line: str, encoding: None) -> Process:
            process.stdout = Stream(f"all\n{line.rpartition('echo ')[2].strip(chr(39))}\n".encode())
            return process

    ways.direct = Open()
    assert (await ways.commands.run(("squeue",), seconds=5)).stdout == "all\n"
    assert process.did == ["close"]
