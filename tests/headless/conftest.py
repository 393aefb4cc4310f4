"""A person, or a script, at the command line."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

import pytest

from cockpit.formats.job.file import Defaults, read_jobs
from cockpit.headless.exitcodes import ExitCode
from cockpit.headless.main import run
from cockpit.headless.play_script import ExpectationFailed, Script
from cockpit.headless.services import Services
from cockpit.headless.streams import Streams
from cockpit.model.ids import Millis, NodeName
from cockpit.model.node import Node
from cockpit.model.spec import JobSpec
from cockpit.model.view import EngineStatus, HoldRow
from tests.doubles.memory_backend import MemoryBackend
from tests.doubles.samples import NOW, small_cluster


class _Stream(BytesIO):
    def __init__(self, data: bytes = b"", *, terminal: bool = False) -> None:
        super().__init__(data)
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal


class Done(NamedTuple):
    """What a command left behind."""

    code: int
    out: bytes
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.decode().splitlines()


class EngineDouble:
    """The engine's control, which only notes what it is asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[object, ...]] = []
        self.running = True
        self.held: Sequence[HoldRow] = ()

    def status(self) -> EngineStatus:
        return EngineStatus(
            self.running,
            77 if self.running else None,
            "/run/s",
            "/var/s",
            "0.1.0",
            "1.0",
            False,
            NOW,
            5,
            "root overlay",
        )

    def start(self, *, system: bool) -> EngineStatus:
        self.asked.append(("start", system))
        return self.status()

    def take_over(self) -> None:
        """No containers are left."""

    def holds(self) -> Sequence[HoldRow]:
        return self.held

    def stop(self, *, jobs: bool, holds: bool) -> None:
        self.asked.append(("stop", jobs, holds))

    def restart(self) -> EngineStatus:
        self.asked.append(("restart",))
        return self.status()

    def unit(self) -> str:
        return "[Unit]\n"

    def install_unit(self) -> Path:
        self.asked.append(("install_unit",))
        return Path("/u/cockpit-cluster-engine.service")


class SiteDouble:
    """A cluster.toml that is only remembered."""

    cluster_file = Path("/c/cluster.toml")

    def __init__(self) -> None:
        self.text: str | None = None

    def machine(self) -> Node:
        return Node(name=NodeName("box"), cpus=8, memory_mib=16_384)

    def cluster_text(self) -> str | None:
        return self.text

    def write_cluster(self, text: str) -> Path | None:
        before, self.text = self.text, text
        return Path("/c/cluster.toml.before") if before is not None else None


class Desk:
    """Runs commands against one cluster."""

    def __init__(self) -> None:
        self.backend: MemoryBackend = small_cluster()
        self.engine = EngineDouble()
        self.findings: Sequence[object] = ()
        self.connected: list[str | None] = []
        self.read_jobs: Callable[[str, str, str], list[JobSpec]] = self._read_jobs
        self.played: list[tuple[Script, Path]] = []
        self.unmet = ""
        self.saved: dict[str, dict[str, str]] = {}
        self.clock = [NOW]
        self.site = SiteDouble()
        self.used: list[str] = []
        self.served: list[dict[str, str]] = []
        self.reached: MemoryBackend | None = None
        self.reaches: list[str | None] = []
        self.names: dict[str, str] = {}
        self.advice = ""
        self.expects_defect = False

    def __call__(self, *argv: str, stdin: bytes = b"", terminal: bool = False, columns: int = 120) -> Done:
        out, err = _Stream(terminal=terminal), _Stream(terminal=terminal)
        streams = Streams(
            stdin=_Stream(stdin, terminal=terminal),
            stdout=out,
            stderr=err,
            now=lambda: Millis(self.clock[0]),
            zone=UTC,
            columns=columns,
        )
        code = run(argv, self.services(), streams)
        shown = err.getvalue().decode()
        assert code != ExitCode.INTERNAL or self.expects_defect, shown
        return Done(code, out.getvalue(), shown)

    def services(self) -> Services:
        """The services of its commands."""
        return Services(
            connect=self._connect,
            engine=lambda: self.engine,
            findings=lambda: self.findings,
            read_jobs=self._spec_reader,
            site=self._site,
            use_cluster=self._use,
            play=self._play,
            serve=self._serve,
            reach=self._reach,
            clusters=lambda: self.names,
            advice=lambda _: self.advice,
            saved=lambda _: lambda table: self.saved.get(table, {}),
        )

    def _connect(self, cluster: str | None) -> MemoryBackend:
        self.connected.append(cluster)
        return self.backend

    def _reach(self, cluster: str | None) -> MemoryBackend | None:
        self.reaches.append(cluster)
        return self.reached

    def _site(self, system: bool) -> SiteDouble:
        assert not system
        return self.site

    def _serve(self, settings: Mapping[str, str | None], forced: bool) -> int:
        assert not forced
        self.served.append({name: value for name, value in settings.items() if value is not None})
        return 0

    def _use(self, name: str) -> Path:
        self.used.append(name)
        return Path("/c/config.toml")

    def _spec_reader(self, source: str, text: str, folder: str) -> list[JobSpec]:
        return self.read_jobs(source, text, folder)

    def _play(self, script: Script, folder: Path) -> None:
        self.played.append((script, folder))
        if self.unmet:
            raise ExpectationFailed(self.unmet)

    def _read_jobs(self, _source: str, text: str, folder: str) -> list[JobSpec]:
        """One job for each line: its name."""
        return [JobSpec(name=name, command="true", output=folder) for name in text.split()]


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.fixture
def reading(desk: Desk) -> Desk:
    """It reads job files as they are."""
    desk.read_jobs = partial(read_jobs, defaults=Defaults())
    return desk
