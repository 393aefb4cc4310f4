"""Real engines, real containers, real commands."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.e2e.cockpit_user import CockpitUser

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
    before = Path("/proc/self/mountinfo").read_text()
    yield
    assert Path("/proc/self/mountinfo").read_text() == before


def process_list() -> str:
    return subprocess.run(["ps", "-eo", "pid,args"], capture_output=True, text=True, check=True).stdout
