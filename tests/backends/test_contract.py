from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cockpit.backends.local.backend import LocalBackend
from tests.backends.conftest import OwnEngine, end, own_engine
from tests.backends.contract import BackendContract

if TYPE_CHECKING:
    from cockpit.backends.base import Backend
    from cockpit.backends.local.live import LiveBackend

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def shared_engine() -> Iterator[OwnEngine]:
    """One for all tests: they leave held jobs behind, which disturb nobody."""
    with (
        tempfile.TemporaryDirectory(prefix="cockpit-", dir="/var/tmp") as folder,
        pytest.MonkeyPatch.context() as env,
    ):
        engine = own_engine(env.setenv, Path(folder))
        yield engine
        end(engine)


@asynccontextmanager
async def blocking(request: pytest.FixtureRequest) -> AsyncIterator[LocalBackend]:
    backend = LocalBackend(request.getfixturevalue("shared_engine").way.reach)
    yield backend
    await backend.close()


@asynccontextmanager
async def live(request: pytest.FixtureRequest) -> AsyncIterator[LiveBackend]:
    backend = request.getfixturevalue("shared_engine").live()
    yield backend
    await backend.close()


BACKENDS: dict[str, Callable[[pytest.FixtureRequest], AbstractAsyncContextManager[Backend]]] = {
    "local": blocking,
    "live": live,
}


@pytest.fixture(params=list(BACKENDS))
async def backend(request: pytest.FixtureRequest) -> AsyncIterator[Backend]:
    async with BACKENDS[request.param](request) as made:
        yield made


class TestContract(BackendContract):
    """Of every backend in `BACKENDS`."""
