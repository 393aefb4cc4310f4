"""Ways in that OpenSSH's own client goes: names of ~/.ssh/config, an agent, jump hosts; and what may be wrong with one.
No cluster is needed: whoever runs the tests reaches this machine."""

from __future__ import annotations

import asyncio
import os
import pwd
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from cockpit.backends.slurm.wire import calls
from cockpit.backends.slurm.wire.ssh import SshCommands
from cockpit.errors import Unreachable
from tests.real.slurm.login_node import LoginNode

pytestmark = [pytest.mark.real, pytest.mark.real_slurm]
ME = pwd.getpwuid(os.geteuid()).pw_name


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[LoginNode, LoginNode]]:
    """Two servers that know the same key: one to jump over, one to arrive at."""
    if shutil.which("sshd") is None or os.geteuid() != 0:
        pytest.skip("OpenSSH's server is not installed, or not root runs the tests")
    env = {"SLURM_CONF": "/nonexistent", "PATH": os.environ["PATH"]}
    first = LoginNode(tmp_path_factory.mktemp("jump"), env)
    second = LoginNode(tmp_path_factory.mktemp("login"), env)
    shutil.copy(first.folder / "own.pub", second.folder / "authorized")
    yield first, second
    first.stop()
    second.stop()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / ".ssh").mkdir(mode=0o700)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    return tmp_path / ".ssh"


def know(home: Path, *nodes: LoginNode, names: tuple[str, ...] = ()) -> None:
    lines = [f"[127.0.0.1]:{node.port} {(node.folder / 'host.pub').read_text()}" for node in nodes]
    lines += [f"{name} {(nodes[-1].folder / 'host.pub').read_text()}" for name in names]
    (home / "known_hosts").write_text("".join(lines))


def who(address: str) -> str:
    """What a command says over there."""

    async def ask() -> str:
        commands = SshCommands(address)
        try:
            return (await commands.run(("id", "-un"), seconds=60)).stdout.strip()
        finally:
            await commands.close()

    return asyncio.run(ask())


@pytest.mark.req("TR-07", "SL-01")
def test_a_name_of_the_config_file_is_a_host(nodes: tuple[LoginNode, LoginNode], home: Path) -> None:
    jump, _ = nodes
    know(home, jump)
    key = jump.folder / "own"
    host = f"Host lab\n  HostName 127.0.0.1\n  Port {jump.port}\n  User {ME}\n  IdentityFile {key}\n"
    (home / "config").write_text(host)
    assert who("ssh://lab") == ME


@pytest.mark.req("TR-07")
def test_the_agent_has_the_key(nodes: tuple[LoginNode, LoginNode], home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jump, _ = nodes
    know(home, jump)
    address = f"ssh://{ME}@127.0.0.1:{jump.port}"
    with pytest.raises(Unreachable, match="refuses the keys of this machine and its agent"):
        who(address)
    said = subprocess.run(["ssh-agent", "-s"], capture_output=True, text=True, check=True).stdout
    socket, pid = (re.search(rf"{name}=([^;]+)", said) for name in ("SSH_AUTH_SOCK", "SSH_AGENT_PID"))
    assert socket is not None
    assert pid is not None
    monkeypatch.setenv("SSH_AUTH_SOCK", socket[1])
    try:
        subprocess.run(["ssh-add", "-q", str(jump.folder / "own")], check=True, capture_output=True)
        assert who(address) == ME
    finally:
        os.kill(int(pid[1]), 15)


@pytest.mark.req("TR-07")
def test_the_host_is_behind_a_jump_host(nodes: tuple[LoginNode, LoginNode], home: Path) -> None:
    jump, login = nodes
    know(home, jump, login)
    key = jump.folder / "own"
    (home / "config").write_text(
        f"Host inner\n  HostName 127.0.0.1\n  Port {login.port}\n  User {ME}\n  IdentityFile {key}\n"
        f"  ProxyJump {ME}@127.0.0.1:{jump.port}\nHost 127.0.0.1\n  IdentityFile {key}\n"
    )
    before = jump.accepted, login.accepted
    assert who("ssh://inner") == ME
    assert (jump.accepted, login.accepted) == (before[0] + 1, before[1] + 1)


@pytest.mark.req("TR-07")
@pytest.mark.parametrize("known", ["nothing", "another key"])
def test_behind_a_name_too_a_foreign_key_is_refused_with_its_fingerprint(
    nodes: tuple[LoginNode, LoginNode], home: Path, known: str
) -> None:
    jump, login = nodes
    if known == "another key":
        line = f"[127.0.0.1]:{jump.port} {(login.folder / 'host.pub').read_text()}"
        (home / "known_hosts").write_text(line)
    host = f"Host lab\n  HostName 127.0.0.1\n  Port {jump.port}\n  User {ME}\n  IdentityFile {jump.folder}/own\n"
    (home / "config").write_text(host)
    before = jump.accepted
    with pytest.raises(
        Unreachable, match="The host key of lab is unknown or differs from the one in known_hosts"
    ) as refused:
        who("ssh://lab")
    assert jump.fingerprint in str(refused.value)
    assert jump.accepted == before, "nobody logged in"


@pytest.mark.req("TR-04", "SL-04")
async def test_remote_errors_are_reported_and_cleared(
    nodes: tuple[LoginNode, LoginNode], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jump, _ = nodes
    know(home, jump)
    (home / "config").write_text(f"Host 127.0.0.1\n  IdentityFile {jump.folder}/own\n")
    commands = SshCommands(f"ssh://{ME}@127.0.0.1:{jump.port}")
    assert (await commands.run(("true",), seconds=60)).code == 0
    with pytest.raises(Unreachable, match=r"sleep on .* has not answered within 0\.5 s"):
        async with asyncio.timeout(15):  # the answer is not waited for any longer, nor is the end of the program
            await commands.run(("sleep", "20"), seconds=0.5)
    line = await commands.run(("head", "-c", "10000000", "/dev/zero"), seconds=60)
    assert len(line.stdout) == 10_000_000
    garbage = await commands.run(("head", "-c", "5000", "/dev/urandom"), seconds=60)
    assert garbage.code == 0
    monkeypatch.setattr(calls, "MOST_BYTES", 1 << 20)
    with pytest.raises(Unreachable, match="prints without end"):
        await commands.run(("cat", "/dev/zero"), seconds=60)
    for _ in range(3):  # it flaps
        jump.restart()
        with pytest.raises(Unreachable, match=r"The connection to .* was lost"):
            await commands.run(("true",), seconds=60)
        assert (await commands.run(("echo", "again"), seconds=60)).stdout == "again\n"
    await commands.close()
