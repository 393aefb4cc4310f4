"""One server for most tests: each session of it is a process of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.serve.served import ME, ServedCockpit, served_cockpit

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="session")
def served() -> Iterator[ServedCockpit]:
    """With the keys `read`, `own` and `admin` of these levels, and one held job."""
    with served_cockpit() as server:
        for level in ("read", "own", "admin"):
            server.key(level, f'user="{ME}",access="{level}"')
        server.start()
        server.user.ok("submit", str(server.user.job("true", hold=True, name="waiting")))
        yield server


@pytest.fixture
def own(served: ServedCockpit) -> Path:
    return served.folder / "own"


@pytest.fixture(scope="module")
def fuzzed() -> Iterator[ServedCockpit]:
    """For a client that connects more often than the rate lets others of its address connect as well."""
    with served_cockpit() as server:
        server.key("own", f'user="{ME}"')
        server.start()
        yield server


@pytest.fixture
def fresh() -> Iterator[ServedCockpit]:
    """A server of one test's own."""
    with served_cockpit() as server:
        yield server
