"""Users who open as many connections to the machine-wide engine as they can keep nobody else from being answered."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.e2e.system_engine import SystemEngine, system_engine

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.real, pytest.mark.usefixtures("host_mounts")]
FLOODING = [str(uid) for uid in range(60_001, 60_006)]
"""Together they may have more connections than the engine has; these users need no name."""


@pytest.fixture
def engine(everybodys_python: str, people: None) -> Iterator[SystemEngine]:
    with system_engine(everybodys_python, "") as engine:
        yield engine


@pytest.mark.req("TR-09")
def test_other_users_are_answered_while_connections_flood_the_engine(engine: SystemEngine) -> None:
    socket = engine.bob.row("engine", "status")["socket"]
    program = Path(__file__).with_name("flood.py")
    flood = engine.root.start_program(
        "python3", program, socket, *FLOODING, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert flood.stdout is not None
    assert flood.stdout.readline() == b"refused\n"
    job = engine.bob.submit("exit 3", name="beside")
    assert engine.ann.rows("nodes")
    assert engine.bob.wait(job) == 3
    assert flood.poll() is None, "it lasted until here"
    flood.communicate()
    assert flood.returncode == 0
