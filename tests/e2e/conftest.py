"""Real engines, real containers, real commands, real users."""

from __future__ import annotations

import os
import pwd
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.e2e.cockpit_user import CockpitUser
from tests.e2e.people import ANN, BOB, CAROL, LAB
from tests.environments import environment_for_everybody
from tests.mounts import mounts

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def folder() -> Iterator[Path]:
    """Short enough for a socket's path, and on a real disk."""
    with tempfile.TemporaryDirectory(prefix="cockpit-", dir="/var/tmp") as path:
        Path(path).chmod(0o755)
        yield Path(path)


@pytest.fixture
def user(folder: Path) -> Iterator[CockpitUser]:
    """Whoever runs the tests, with an engine that starts with the first command."""
    somebody = CockpitUser(folder)
    yield somebody
    somebody.leave()


@pytest.fixture(scope="session")
def host_mounts() -> Iterator[None]:
    """Nothing is ever mounted in the host's mount namespace."""
    before = mounts()
    yield
    assert mounts() == before


@pytest.fixture(scope="session")
def everybodys_python(people: None) -> Iterator[str]:
    """A Python with cockpit that every user of this machine can run."""
    with tempfile.TemporaryDirectory(prefix="cockpit-env-", dir=_quick_disk()) as path:
        Path(path).chmod(0o755)
        yield str(environment_for_everybody(Path(path) / "venv"))


@pytest.fixture(scope="session")
def people() -> Iterator[None]:
    """Ann, bob and carol, ordinary users of this machine, with homes of their own."""
    if os.geteuid() != 0:
        pytest.skip("only root can make users")
    _remove_people()
    _admin("groupadd", LAB)
    for name, groups in ((ANN, LAB), (BOB, ""), (CAROL, "")):
        _admin("useradd", "--create-home", "--shell", "/bin/bash", "--groups", groups, name)
        Path(pwd.getpwnam(name).pw_dir).chmod(0o700)
    yield
    _remove_people()


@pytest.fixture
def ann(folder: Path, everybodys_python: str, people: None) -> Iterator[CockpitUser]:
    """An ordinary user with an engine of her own, which starts with the first command."""
    somebody = CockpitUser(folder, python=everybodys_python, user=ANN)
    yield somebody
    somebody.leave()


def _quick_disk() -> str:
    """Where a thousand small files cost nothing, if programs may run there."""
    memory = "/dev/shm"
    runs = Path(memory).is_dir() and not os.statvfs(memory).f_flag & os.ST_NOEXEC
    return memory if runs else "/var/tmp"


def _admin(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True, timeout=30)


def _remove_people() -> None:
    """Also those of a run that was killed."""
    for words in (*(("userdel", "--remove", name) for name in (ANN, BOB, CAROL)), ("groupdel", LAB)):
        subprocess.run(words, check=False, capture_output=True, timeout=30)
