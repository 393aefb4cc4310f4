"""Composition root: reads where clusters are, builds a backend, hands it to a face. What is heavy is imported late."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cockpit.backends.base import Backend
    from cockpit.backends.local.channel import Channel
    from cockpit.backends.local.control import LocalEngineControl
    from cockpit.backends.local.live import LiveBackend
    from cockpit.config import EnginePaths, Settings
    from cockpit.model.spec import JobSpec
    from cockpit.model.view import EngineStatus
    from cockpit.runtime.findings import Finding

OWN, SYSTEM = "local", "system"
"""Names of the embedded clusters: this user's engine, and the machine-wide one."""


def main(arguments: Sequence[str] | None = None) -> int:
    """`cockpit …`: the exit code is the process's."""
    from cockpit.headless.main import run
    from cockpit.headless.services import Services
    from cockpit.headless.streams import Streams
    from cockpit.runtime.clock import SystemClock

    services = Services(connect=connect, engine=Engines, findings=findings, read_jobs=read_jobs)
    streams = Streams.of_process(SystemClock().now)
    return run(sys.argv[1:] if arguments is None else list(arguments), services, streams)


def connect(cluster: str | None) -> Backend:
    """The cluster of this name; without one the machine-wide engine where it runs, else this user's own."""
    from cockpit.backends.local.backend import LocalBackend

    return LocalBackend({OWN: _to_own, SYSTEM: _to_system, "": _to_any}[_cluster_name(cluster)])


def live(cluster: str | None) -> LiveBackend:
    """The same cluster for a face that stays open; it connects with the first question."""
    from random import Random

    from cockpit.backends.local.live import LiveBackend
    from cockpit.backends.local.way import Way
    from cockpit.config.places import system_paths
    from cockpit.runtime.clock import SystemClock

    name = _cluster_name(cluster)
    if name == SYSTEM or (not name and _system_runs()):
        way = Way(system_paths(), owner=0, starts=False)
    else:
        way = Way(_configured(_own_places()), owner=os.geteuid(), starts=True)
    return LiveBackend(way, SystemClock().now, Random())  # noqa: S311 - spreads retries over time


def read_jobs(source: str, text: str, folder: str) -> list[JobSpec]:
    """The jobs of a file, with this user's defaults for what it leaves out. Raises `SpecErrors`."""
    from cockpit.formats.jobfile import Defaults
    from cockpit.formats.jobfile import read_jobs as read

    settings = _settings(_own_places())
    defaults = Defaults(
        time_limit_seconds=settings.time_limit_seconds,
        grace_seconds=settings.grace_seconds,
        home_folder=os.environ.get("HOME", ""),
    )
    return read(source, text, folder, defaults=defaults)


def findings() -> Sequence[Finding]:
    """What `cockpit doctor` finds."""
    from cockpit.runtime.doctor import findings as look

    places = _configured(_own_places())
    return look(socket=places.socket, state_folder=places.state_folder, env=os.environ)


class Engines:
    """`cockpit engine …`: the machine-wide engine where it runs or `--system` asks for it, else this user's own."""

    def status(self) -> EngineStatus:
        """Of the engine that commands talk to; never starts one."""
        return _control(system=_system_runs()).status()

    def start(self, *, system: bool) -> EngineStatus:
        """Start it unless it runs."""
        return _control(system=system).start()

    def stop(self, *, jobs: bool) -> None:
        """Stop the engine that commands talk to."""
        _control(system=_system_runs()).stop(jobs=jobs)

    def restart(self) -> EngineStatus:
        """Stop and start it; no job ends."""
        return _control(system=_system_runs()).restart()


def _cluster_name(cluster: str | None) -> str:
    """Empty: whichever there is."""
    from cockpit.errors import CockpitError

    name = cluster or os.environ.get("COCKPIT_CLUSTER") or _settings(_own_places()).cluster
    if name not in {OWN, SYSTEM, ""}:
        raise CockpitError(f"There is no cluster {name!r}. This cockpit knows {OWN!r} and {SYSTEM!r}; see -c.")
    return name


def _to_any() -> Channel:
    return _to_system_if_it_runs() or _to_own()


def _to_own() -> Channel:
    from cockpit.backends.local.start import connect as connect_to
    from cockpit.backends.local.start import start

    places = _own_places()
    return connect_to(places, owner=os.geteuid()) or start(_configured(places))


def _to_system() -> Channel:
    from cockpit.errors import Unreachable

    channel = _to_system_if_it_runs()
    if channel is None:
        raise Unreachable("No machine-wide engine runs here; root starts it with `cockpit engine start --system`.")
    return channel


def _to_system_if_it_runs() -> Channel | None:
    from cockpit.backends.local.start import connect as connect_to
    from cockpit.config.places import system_paths

    return connect_to(system_paths(), owner=0)


def _system_runs() -> bool:
    channel = _to_system_if_it_runs()
    if channel is None:
        return False
    channel.close()
    return True


def _control(*, system: bool) -> LocalEngineControl:
    from cockpit.backends.local.control import LocalEngineControl
    from cockpit.config.places import system_paths

    return LocalEngineControl(_configured(system_paths() if system else _own_places()), system=system)


def _own_places() -> EnginePaths:
    from cockpit.config.places import paths

    return paths(os.geteuid(), os.environ)


def _settings(places: EnginePaths) -> Settings:
    from cockpit.config.loading import load_settings

    return load_settings(env=os.environ, files=places.config_files)


def _configured(places: EnginePaths) -> EnginePaths:
    return places.with_state_folder(_settings(places).state_folder)


if __name__ == "__main__":
    sys.exit(main())
