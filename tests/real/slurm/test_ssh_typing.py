"""Servers that want more than a key: what `ssh` holds open already is used, and what must be typed is asked for."""

from __future__ import annotations

import asyncio
import os
import pty
import pwd
import select
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from cockpit.backends.slurm.wire.ssh import SshCommands
from cockpit.errors import Unreachable
from cockpit.model.asking import ShellRequest
from cockpit.model.ids import JobId
from tests.programs import needs_tmux
from tests.real.slurm.login_node import LoginNode
from tests.real.slurm.real_cluster import RealCluster
from tests.real.slurm.test_ssh import read_all
from tests.tui.tmux import PROMPT, Tmux

pytestmark = [pytest.mark.real, pytest.mark.real_slurm]
ME = pwd.getpwuid(os.geteuid()).pw_name
GUEST, SECRET = f"guest{os.getpid()}", "correct horse"
PAM = Path(f"/etc/pam.d/cockpit-sshd-{os.getpid()}")
"""sshd asks PAM by the name that it was started under: this server has rules of its own."""
LOG_IN = """
import asyncio, sys
from cockpit.backends.slurm.wire.ssh import SshCommands

async def main():
    commands = SshCommands(sys.argv[1])
    await commands.log_in()
    for number in range(3):
        print("came in as", (await commands.run(("id", "-un"), seconds=60)).stdout.strip(), number)
    await commands.close()

asyncio.run(main())
"""


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LoginNode]:
    """Keys let in whoever runs the tests; a guest needs a password, which only PAM asks for."""
    if shutil.which("sshd") is None or os.geteuid() != 0:
        pytest.skip("OpenSSH's server is not installed, or not root runs the tests")
    PAM.write_text("auth required pam_unix.so\naccount required pam_permit.so\nsession required pam_permit.so\n")
    hashed = subprocess.run(["openssl", "passwd", "-6", SECRET], capture_output=True, text=True, check=True).stdout
    made = ["useradd", "--no-create-home", "--home-dir=/", "--shell=/bin/sh", f"--password={hashed.strip()}", GUEST]
    subprocess.run(made, check=True, capture_output=True)
    env = {"SLURM_CONF": "/nonexistent", "PATH": os.environ["PATH"]}
    made_node = LoginNode(tmp_path_factory.mktemp("login"), env, pam=PAM.name)
    yield made_node
    made_node.stop()
    subprocess.run(["userdel", GUEST], check=False, capture_output=True)
    PAM.unlink()


@pytest.fixture
def home(node: LoginNode, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A person who knows the server, and has no key. ssh itself takes its home from the password file. The folder has a
    short name, because a socket will be in it."""
    tmp_path = Path(tempfile.mkdtemp(prefix="ssh-"))
    ssh = tmp_path / ".ssh"
    ssh.mkdir(mode=0o700)
    (ssh / "known_hosts").write_text(f"[127.0.0.1]:{node.port} {(node.folder / 'host.pub').read_text()}")
    wrapper = tmp_path / "bin" / "ssh"
    wrapper.parent.mkdir()
    wrapper.write_text(f'#!/bin/sh\nexec /usr/bin/ssh -F {ssh}/config -o UserKnownHostsFile={ssh}/known_hosts "$@"\n')
    wrapper.chmod(0o755)
    (ssh / "config").touch()
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", f"{wrapper.parent}:{os.environ['PATH']}")
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    yield ssh
    shutil.rmtree(tmp_path)


def who(address: str) -> str:
    async def ask() -> str:
        commands = SshCommands(address)
        try:
            return (await commands.run(("id", "-un"), seconds=60)).stdout.strip()
        finally:
            await commands.close()

    return asyncio.run(ask())


def at_terminal(address: str, typed: dict[str, str]) -> str:
    """All that the terminal shows of logging in; each prompt gets what is typed for it, once."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(sys.executable, [sys.executable, "-c", LOG_IN, address])
    shown, waiting = "", dict(typed)
    while select.select([terminal], [], [], 60)[0]:
        try:
            piece = os.read(terminal, 4096)
        except OSError:
            break
        shown += piece.decode()
        for prompt in [each for each in waiting if each in shown]:
            os.write(terminal, f"{waiting.pop(prompt)}\n".encode())
    os.waitpid(pid, 0)
    os.close(terminal)
    return shown


@pytest.mark.req("TR-07", "SL-01")
def test_a_missing_key_is_ignored(node: LoginNode, home: Path) -> None:
    """On the way over a jump host too."""
    keys = f"  IdentityFile ~/.ssh/gone\n  IdentityFile {node.folder}/own\n"
    (home / "config").write_text(
        f"Host lab\n  HostName 127.0.0.1\n  Port {node.port}\n  User {ME}\n{keys}"
        f"Host inner\n  HostName 127.0.0.1\n  Port {node.port}\n  User {ME}\n  ProxyJump lab\n{keys}"
    )
    assert who("ssh://lab") == ME
    assert who("ssh://inner") == ME


@pytest.fixture
def held_open(node: LoginNode, home: Path) -> Iterator[str]:
    """The name of a host that ssh has a connection to, by a key that is used nowhere else."""
    host = f"Host lab\n  HostName 127.0.0.1\n  Port {node.port}\n  User {ME}\n"
    (home / "config").write_text(host + f"  ControlPath {home}/%C\n")
    key, before = str(node.folder / "own"), node.accepted
    subprocess.run(["ssh", "-M", "-N", "-f", "-i", key, "lab"], check=True, stderr=subprocess.DEVNULL)
    node.wait_for_login(before + 1)
    yield "lab"
    subprocess.run(["ssh", "-O", "exit", "lab"], check=False, capture_output=True)


@pytest.mark.req("TR-07", "SL-01")
async def test_a_connection_that_ssh_holds_open_is_used(node: LoginNode, held_open: str) -> None:
    """Without a key that would let in anybody, as after a one-time password."""
    before, commands = node.accepted, SshCommands(f"ssh://{held_open}")
    assert (await commands.run(("id", "-un"), seconds=60)).stdout.strip() == ME
    assert (await commands.run(("printf", "%s", "$(id) 'a b'"), seconds=60)).stdout == "$(id) 'a b'"
    assert (await commands.run(("cat",), seconds=60, stdin=b"typed")).stdout == "typed"
    assert (await commands.run(("sh", "-c", "exit 3"), seconds=60)).code == 3
    request = ShellRequest(job=JobId(1), terminal=True, rows=30, columns=90)
    shell = await commands.open_shell(("sh", "-c", "stty size; exit 4"), request)
    assert b"30 90" in read_all(shell.terminal_fd)
    assert shell.exit_code() == 4
    assert node.accepted == before, "nothing logged in again"
    node.restart()
    for said in ("The connection to lab was lost", "refuses the keys"):
        with pytest.raises(Unreachable, match=said):
            await commands.run(("true",), seconds=60)
    await commands.close()


@pytest.mark.req("TR-07", "SL-01")
def test_a_password_is_asked_for_once(node: LoginNode, home: Path) -> None:
    """The server asks through PAM (keyboard-interactive), as it would for a one-time password."""
    del home
    shown = at_terminal(f"ssh://{GUEST}@127.0.0.1:{node.port}", {"assword:": SECRET})
    assert [f"came in as {GUEST} {number}" in shown for number in range(3)] == [True] * 3, shown
    assert shown.count("assword:") == 1


@pytest.mark.req("TR-07")
def test_a_wrong_password_ends_it_with_its_reason(node: LoginNode, home: Path) -> None:
    (home / "config").write_text("Host *\n  NumberOfPasswordPrompts 1\n")
    shown = at_terminal(f"ssh://{GUEST}@127.0.0.1:{node.port}", {"assword:": "wrong"})
    assert "Permission denied" in shown
    assert "cannot be reached over SSH" in shown


@pytest.mark.req("TR-07")
def test_the_passphrase_of_a_key_is_asked_for(node: LoginNode, home: Path) -> None:
    locked = home / "locked"
    shutil.copy(node.folder / "own", locked)
    subprocess.run(["ssh-keygen", "-q", "-p", "-P", "", "-N", SECRET, "-f", str(locked)], check=True)
    (home / "config").write_text(f"Host 127.0.0.1\n  IdentityFile {locked}\n")
    address = f"ssh://{ME}@127.0.0.1:{node.port}"
    with pytest.raises(Unreachable, match="open the cockpit at a terminal"):
        who(address)
    shown = at_terminal(address, {"passphrase": SECRET})
    assert f"came in as {ME} 2" in shown
    assert shown.count("passphrase") == 1


@pytest.mark.req("TR-07")
def test_an_unknown_host_gets_no_password(node: LoginNode, home: Path) -> None:
    (home / "known_hosts").unlink()
    (home / "config").write_text("Host *\n  StrictHostKeyChecking yes\n")
    shown = at_terminal(f"ssh://{GUEST}@127.0.0.1:{node.port}", {"assword:": SECRET})
    assert "host key" in shown
    assert "assword:" not in shown


@pytest.fixture
def slurm_node(cluster: RealCluster, node: LoginNode, home: Path, tmp_path: Path) -> Iterator[LoginNode]:
    """A login node of a real cluster that asks the guest for the password."""
    del node  # has made the guest
    made = LoginNode(tmp_path, cluster.env, pam=PAM.name)
    with (home / "known_hosts").open("a") as known:
        known.write(f"[127.0.0.1]:{made.port} {(made.folder / 'host.pub').read_text()}")
    yield made
    made.stop()


@pytest.fixture
def terminal(home: Path) -> Iterator[Tmux]:
    """With nothing of whoever runs the tests: their configuration and their engine are elsewhere."""
    own = {name: str(home / name.lower()) for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR")}
    (home / "xdg_runtime_dir").mkdir(mode=0o700)
    folder = home / "tmux.d"
    folder.mkdir()
    opened = Tmux(folder, {**own, "HOME": os.environ["HOME"], "PATH": os.environ["PATH"]}, columns=200)
    yield opened
    opened.close()


@pytest.mark.req("TR-04", "TR-07")
@needs_tmux
def test_a_lost_login_is_typed_again_in_the_open_cockpit(slurm_node: LoginNode, terminal: Tmux) -> None:
    terminal.type(f"{shlex.quote(sys.executable)} -m cockpit.cli -c ssh://{GUEST}@127.0.0.1:{slurm_node.port}").press(
        "Enter"
    )
    terminal.sees("assword:").type(SECRET).press("Enter").sees("? help").misses("connecting")
    terminal.press("F7").sees("No login is needed")
    slurm_node.restart()
    terminal.sees("Press F7 to log in to")
    for answer, key in (("", "C-c"), (SECRET, "Enter")):
        terminal.press("F7").until(lambda screen: screen.rstrip().endswith("assword:"), "is asked again")
        terminal.type(answer).press(key).sees("? help")
    terminal.misses("Press F7 to log in").press("q").sees(PROMPT)
