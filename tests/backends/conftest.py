"""A real engine of the tests' own, and connections to it."""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

from cockpit.backends.local.control import LocalEngineControl
from cockpit.backends.local.live import LiveBackend
from cockpit.backends.local.reconnector import Patience
from cockpit.backends.local.start import EngineDialer
from cockpit.config.places import paths
from cockpit.runtime.clock import SystemClock

SHIPPED = Path(__file__).parents[2] / "fixtures/clusters"

HASTE = Patience(ping=0.05, silence=0.2, read=2.0, act=10.0, first_retry=0.02, longest_retry=0.1)
FOLDERS = {
    "HOME": "home",
    "XDG_RUNTIME_DIR": "run",
    "XDG_STATE_HOME": "state",
    "XDG_CONFIG_HOME": "config",
}


class OwnEngine:
    """An engine in folders of its own; it starts when somebody connects."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.places = paths(os.geteuid(), os.environ)
        self.control = LocalEngineControl(self.places, system=False)
        self.way = EngineDialer(self.places)

    @property
    def pid(self) -> int:
        pid = self.control.status().pid
        assert pid is not None
        return pid

    def live(self, patience: Patience = HASTE) -> LiveBackend:
        return LiveBackend(self.way, SystemClock().now, Random(7), patience)

    def signal(self, number: signal.Signals) -> None:
        os.kill(self.holder(), number)

    def kill(self) -> None:
        """For one whose jobs are too many to be stopped one by one."""
        self.signal(signal.SIGKILL)

    def holder(self) -> int:
        """Without asking it: it may be stopped."""
        return int((self.places.state_folder / "engine.lock").read_text())


def own_engine(set_variable: object, folder: Path) -> OwnEngine:
    """In `folder`, for this process and those it starts."""
    for variable, name in FOLDERS.items():
        (folder / name).mkdir(mode=0o700)
        set_variable(variable, str(folder / name))  # type: ignore[operator] # MonkeyPatch.setenv
    return OwnEngine(folder)


def end(engine: OwnEngine) -> None:
    with suppress(FileNotFoundError, ProcessLookupError):
        engine.signal(signal.SIGCONT)
    engine.control.stop(jobs=True)


@pytest.fixture(scope="session")
def young_campus(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The campus demo a few minutes after its first job: a quarter of the CPU time to open, and as many jobs."""
    young = tmp_path_factory.mktemp("young") / "campus.toml"
    hour = "lived_hours = 1.0"
    campus = (SHIPPED / "campus.toml").read_text()
    assert hour in campus
    young.write_text(campus.replace(hour, "lived_hours = 0.05"))
    return str(young)


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Iterator[OwnEngine]:
    with tempfile.TemporaryDirectory(prefix="cockpit-", dir="/var/tmp") as path:
        started = own_engine(monkeypatch.setenv, Path(path))
        started.control.start()  # on a busy machine it takes longer than a question's patience in haste
        yield started
        end(started)


@pytest.fixture
async def live(engine: OwnEngine) -> AsyncIterator[LiveBackend]:
    backend = engine.live()
    yield backend
    await backend.close()
