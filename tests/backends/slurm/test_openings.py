"""As which user a cluster is opened, and by which identity its files are named."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest

from cockpit.backends.slurm import opening
from cockpit.backends.slurm.opening import Folders, RepeatedLogin, _whoami, open_here, open_over_ssh, open_rest
from cockpit.backends.slurm.wire import ssh
from cockpit.backends.slurm.wire.calls import Printed
from cockpit.backends.slurm.wire.local import LocalCommands
from cockpit.errors import Unreachable

pytestmark = pytest.mark.req("SL-01")
FOLDERS = Folders(Path("/a"), Path("/h"))


class Opened(NamedTuple):
    commands: Any
    user: str
    whose: str
    login: Any


@pytest.fixture(autouse=True)
def opens(monkeypatch: pytest.MonkeyPatch) -> None:
    """Return what would be opened, without asking the cluster."""

    async def opened(
        commands: Any, _clock: Any, user: str, folders: Folders, whose: str, _intervals: Any, login: Any = None
    ) -> Opened:
        assert folders is FOLDERS
        return Opened(commands, user, whose, login)

    monkeypatch.setattr(opening, "opened", opened)


async def test_this_machines_cluster_is_known_by_its_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_CONF", "/etc/other.conf")
    found: Any = await open_here("ann", FOLDERS)
    assert (found.user, found.whose) == ("ann", "here /etc/other.conf")
    assert isinstance(found.commands, LocalCommands)
    monkeypatch.delenv("SLURM_CONF")
    assert (await open_here("ann", FOLDERS)).whose == "here "


@pytest.mark.parametrize(
    ("address", "user", "files"),
    [
        ("slurmrestd+unix:///run/s.sock", "ann", True),
        ("slurmrestd+http://bob@host:1", "bob", False),
        ("slurmrestd+http://host:1", "ann", False),
    ],
)
async def test_a_slurmrestd_is_asked_as_the_user_of_the_socket_or_of_the_address(
    address: str, user: str, files: bool
) -> None:
    found: Any = await open_rest(address, "ann", FOLDERS)
    assert (found.user, found.whose) == (user, f"{address} {user}")
    assert (found.commands._files is not None) is files


async def test_a_token_is_read_from_its_file_or_over_http_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLURM_JWT", "of-env")
    (tmp_path / "token").write_text("of-file\n")
    for address, file, token in (
        ("slurmrestd+unix:///run/s.sock", "", ""),
        ("slurmrestd+unix:///run/s.sock", str(tmp_path / "token"), "of-file"),
        ("slurmrestd+http://host:1", "", "of-env"),
        ("slurmrestd+http://host:1", str(tmp_path / "token"), "of-file"),
    ):
        found: Any = await open_rest(address, "ann", FOLDERS, None, file)
        assert found.commands._token() == token


class LoginNode:
    """A login node that says who the user is there."""

    def __init__(self, address: str) -> None:
        self.user = address.partition("//")[2].rpartition("@")[0]
        self.typed, self.asked = 0, 0
        self.away = "away" in address

    async def log_in(self) -> None:
        self.typed += 1

    async def run(self, argv: tuple[str, ...], *, seconds: float) -> Printed:
        assert argv == ("id", "-un")
        self.asked += 1
        if self.away:
            raise Unreachable("away")
        return Printed("remote\n", "", 0)


@pytest.mark.parametrize(
    ("address", "user", "asked"), [("ssh://lab", "remote", 1), ("ssh://ann@lab", "ann", 0), ("ssh://away", "", 1)]
)
@pytest.mark.parametrize("typing", [False, True])
async def test_a_login_node_is_asked_for_the_user_that_the_address_does_not_name(
    monkeypatch: pytest.MonkeyPatch, address: str, user: str, asked: int, typing: bool
) -> None:
    monkeypatch.setattr(ssh, "SshCommands", LoginNode)
    found: Any = await open_over_ssh(address, FOLDERS, typing=typing)
    assert (found.user, found.whose, found.commands.asked) == (user, address, asked)
    assert found.commands.typed == typing
    assert found.login is (found.commands if typing else None)


async def test_a_user_whose_name_is_unknown_has_none() -> None:
    node: Any = LoginNode("ssh://away")
    assert await _whoami(node) == ""


def test_after_a_typed_login_commands_run_again_at_once() -> None:
    done: list[str] = []

    class Login:
        is_needed = True

        def ask_at_terminal(self) -> None:
            done.append("asked")

    class Answers:
        def forget(self) -> None:
            done.append("forgot")

    answers: Any = Answers()
    repeated = RepeatedLogin(Login(), answers)
    assert repeated.is_needed
    repeated.ask_at_terminal()
    assert done == ["asked", "forgot"]
