"""The recorded clusters, opened as a person opens them."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from cockpit.backends.slurm.backend import SlurmBackend
from cockpit.backends.slurm.opening import open_recorded

VERSIONS = ("22.05", "24.11")


@pytest.fixture(params=VERSIONS)
async def recorded(request: pytest.FixtureRequest) -> AsyncIterator[SlurmBackend]:
    backend, _ = await open_recorded(request.param)
    yield backend
    await backend.close()
