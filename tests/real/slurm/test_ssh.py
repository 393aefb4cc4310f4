"""A login node reached over OpenSSH's own server."""

from __future__ import annotations

import asyncio
import os
import select
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest

from cockpit.backends.slurm.backend import SlurmBackend
from cockpit.backends.slurm.reading import Reading
from cockpit.backends.slurm.wire.answers import Answers
from cockpit.backends.slurm.wire.calls import Garbled
from cockpit.backends.slurm.wire.openssh import Host, Master
from cockpit.backends.slurm.wire.ssh import SshCommands, remote_line
from cockpit.errors import SpecErrors, Unreachable
from cockpit.model.asking import ShellRequest
from cockpit.model.ids import JobId
from cockpit.model.job import JobState
from cockpit.runtime.clock import SystemClock
from tests.hostile import HOSTILE
from tests.real.slurm.conftest import HASTE, eventually
from tests.real.slurm.login_node import LoginNode
from tests.real.slurm.real_cluster import ADA

if TYPE_CHECKING:
    from tests.real.slurm.real_cluster import RealCluster

pytestmark = [pytest.mark.real, pytest.mark.real_slurm]


@pytest.fixture(scope="module")
def login(cluster: RealCluster) -> Iterator[LoginNode]:
    if shutil.which("sshd") is None:
        pytest.skip("OpenSSH's server is not installed")
    folder = cluster.folder / "login"
    folder.mkdir()
    node = LoginNode(folder, cluster.env)
    yield node
    node.stop()


@pytest.fixture
def home(login: LoginNode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the login node is known."""
    login.known_by(tmp_path, (login.folder / "host.pub").read_text())
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    return tmp_path


@pytest.fixture
async def backend(login: LoginNode, home: Path) -> AsyncIterator[SlurmBackend]:
    commands, clock = SshCommands(login.address), SystemClock()
    reading = Reading(Answers(commands, clock.now, Random(1)), clock.now, HASTE)
    made = SlurmBackend("cockpit", commands, reading, clock, ADA)
    yield made
    await made.close()


@pytest.mark.req("SL-01", "TR-07")
async def test_the_same_cluster_over_one_connection(
    emptied: RealCluster, backend: SlurmBackend, login: LoginNode
) -> None:
    before = login.accepted
    job = JobId(emptied.submit(ADA, "-pdebug", "-Jfar", run="echo far away; sleep 300"))
    rows = await eventually(backend.jobs, lambda rows: any(row.state is JobState.RUNNING for row in rows))
    assert [(row.id, row.name) for row in rows] == [(job, "far")]
    assert len(await backend.nodes()) == 4
    shell = await backend.open_shell(ShellRequest(job=job, command=("echo", "a b; id"), terminal=True, rows=30))
    assert b"a b; id" in read_all(shell.terminal_fd)
    assert shell.exit_code() == 0
    await backend.cancel(job)
    ended = await backend.wait(job, timeout_seconds=60)
    assert ended is not None
    assert ended.state is JobState.STOPPED
    assert login.accepted == before + 2, "one for everything, one for the shell"


@pytest.mark.req("TR-04", "SL-01")
async def test_a_lost_connection_is_opened_again(emptied: RealCluster, backend: SlurmBackend, login: LoginNode) -> None:
    assert await backend.jobs() == []
    before = login.accepted
    login.restart()
    job = emptied.submit(ADA, "-H", run="true")

    async def listed() -> list[int]:
        try:
            return [row.id for row in await backend.jobs()]
        except Unreachable:
            return []

    assert await eventually(listed, bool) == [job]
    assert login.accepted == before + 1


@pytest.mark.req("TR-07")
@pytest.mark.parametrize("known", ["", "another"])
def test_an_unknown_and_a_changed_host_key_are_refused_with_the_fingerprint(
    login: LoginNode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, known: str
) -> None:
    if known:
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / "other")], check=True)
        login.known_by(tmp_path, (tmp_path / "other.pub").read_text())
    monkeypatch.setenv("HOME", str(tmp_path))
    shown = subprocess.run(
        ["ssh-keygen", "-lf", str(login.folder / "host.pub")], capture_output=True, text=True, check=True
    )
    with pytest.raises(Unreachable) as refused:
        asyncio.run(SshCommands(login.address).run(("id",), seconds=20))
    assert "host key" in str(refused.value)
    assert shown.stdout.split()[1] in str(refused.value)
    person = login.address.removeprefix("ssh://").partition(":")[0]
    assert f"Connect once with `ssh -p {login.port} {person}`" in str(refused.value)


@pytest.mark.req("TR-06")
async def test_no_argument_is_expanded_by_the_remote_shell(home: Path, login: LoginNode) -> None:
    commands = SshCommands(login.address)
    words = [each.replace("\0", "") for what, each in HOSTILE.items() if "surrogate" not in what]
    printed = await commands.run(("printf", "%s\\001", *words, "$(id)", "`id`", "'; id; '", "-n", ""), seconds=20)
    assert printed.stdout.split("\x01")[:-1] == [*words, "$(id)", "`id`", "'; id; '", "-n", ""]
    assert remote_line(("a b", "$x"), utc=True) == "env TZ=UTC 'a b' '$x'"
    await commands.close()


@pytest.mark.req("TR-04", "SL-01")
@pytest.mark.parametrize("through_ssh", [False, True])
async def test_an_answer_truncated_by_a_login_node_is_not_accepted(
    home: Path, login: LoginNode, *, through_ssh: bool
) -> None:
    authorized = login.folder / "authorized"
    usual = authorized.read_text()
    commands = SshCommands(login.address)
    if through_ssh:
        with (home / ".ssh" / "config").open("a") as config:
            config.write(f"  ControlPath {home}/to\n  UserKnownHostsFile {home}/.ssh/known_hosts\n")
        config_of = ("-F", str(home / ".ssh" / "config"))
    try:
        authorized.write_text(f'command="sh -c \\"$SSH_ORIGINAL_COMMAND\\" | head -n 2" {usual}')
        if through_ssh:
            there = ("-p", str(login.port), f"{ADA}@127.0.0.1")
            await quietly("ssh", *config_of, "-fNM", *there)
            commands._master = Master(Host("127.0.0.1", ADA, login.port), home)
        with pytest.raises(Garbled, match="The answer of printf is not whole"):
            await commands.run(("printf", "a\nb\nc\n"), seconds=20)
        assert (await commands.run(("printf", "a\n"), seconds=20)).stdout == "a\n"
        with pytest.raises(Garbled, match="The answer of false is not whole"):
            await commands.run(("false",), seconds=20)  # whose exit code is lost there, too
        acted = await commands.run(("printf", "a\nb\nc\n"), seconds=20, reading=False)
        assert acted.stdout == "a\nb\n"
    finally:
        authorized.write_text(usual)
        if through_ssh:
            await quietly("ssh", *config_of, "-O", "exit", *there)
        else:
            await commands.close()


@pytest.mark.parametrize(
    "address", ["ssh://", "http://login", "ssh://login/path", "ssh://me:secret@login", "ssh://login:x"]
)
def test_an_invalid_ssh_address_is_reported(address: str) -> None:
    with pytest.raises(SpecErrors, match="is not an SSH address; write ssh://user@login"):
        SshCommands(address)


async def quietly(*argv: str) -> None:
    process = await asyncio.create_subprocess_exec(*argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    assert await process.wait() == 0


def read_all(terminal: int | None) -> bytes:
    """Until the other side is gone."""
    assert terminal is not None
    said = b""
    while select.select([terminal], [], [], 30)[0]:
        try:
            piece = os.read(terminal, 4096)
        except OSError:
            break
        if not piece:
            break
        said += piece
    return said
