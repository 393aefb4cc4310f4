from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cockpit.backends.demo.backend import DemoCluster, open_demo
from cockpit.backends.demo.fixture import read_fixture
from cockpit.backends.demo.simulated_users import actor_of
from cockpit.backends.fleet.backend import FleetBackend
from cockpit.backends.fleet.member import Opened
from cockpit.backends.inprocess import InProcessBackend
from cockpit.backends.local.backend import LocalBackend
from cockpit.backends.slurm.opening import open_recorded
from cockpit.backends.snapshot.backend import open_snapshot
from tests.backends.conftest import OwnEngine, end, own_engine
from tests.backends.contract import BackendContract

if TYPE_CHECKING:
    from cockpit.backends.base import Backend
    from cockpit.backends.local.live import LiveBackend


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


@asynccontextmanager
async def simulated(request: pytest.FixtureRequest) -> AsyncIterator[DemoCluster]:
    cluster = await open_demo(
        request.getfixturevalue("young_campus"), folder=request.getfixturevalue("tmp_path") / "demo"
    )
    yield cluster
    await cluster.close()


@asynccontextmanager
async def demo(request: pytest.FixtureRequest) -> AsyncIterator[Backend]:
    async with simulated(request) as cluster:
        yield cluster.backend


@asynccontextmanager
async def in_process(request: pytest.FixtureRequest) -> AsyncIterator[Backend]:
    """The demo's engine for an administrator: the demo's own user is none."""
    async with simulated(request) as cluster:
        fixture = read_fixture(request.getfixturevalue("young_campus"))
        yield InProcessBackend(cluster.backend._engine, actor_of(fixture, cluster.person, admin=True))


@asynccontextmanager
async def snapshot(request: pytest.FixtureRequest) -> AsyncIterator[Backend]:
    async with simulated(request) as cluster:
        yield await open_snapshot(await cluster.backend.snapshot(), cluster.person)


@asynccontextmanager
async def fleet(request: pytest.FixtureRequest) -> AsyncIterator[Backend]:
    async with simulated(request) as cluster:

        async def opened() -> Opened:
            return Opened(cluster.backend, cluster.now, cluster.close)

        merged = FleetBackend("all", [("lab", "demo", opened)], cluster.now)
        yield merged
        await merged.close()


@asynccontextmanager
async def recorded_slurm(request: pytest.FixtureRequest) -> AsyncIterator[Backend]:
    del request
    backend, _ = await open_recorded("22.05")
    yield backend
    await backend.close()


BACKENDS: dict[str, Callable[[pytest.FixtureRequest], AbstractAsyncContextManager[Backend]]] = {
    "local": blocking,
    "live": live,
    "in_process": in_process,
    "demo": demo,
    "snapshot": snapshot,
    "fleet": fleet,
    "recorded_slurm": recorded_slurm,
}
REAL = frozenset({"local", "live"})
"""Those that need a real engine."""


@pytest.fixture(params=[pytest.param(name, marks=[pytest.mark.real] if name in REAL else []) for name in BACKENDS])
async def backend(request: pytest.FixtureRequest) -> AsyncIterator[Backend]:
    async with BACKENDS[request.param](request) as made:
        yield made


class TestContract(BackendContract):
    """Of every backend in `BACKENDS`."""
