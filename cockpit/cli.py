"""Composition root: reads where clusters are, builds a backend, hands it to a face. What is heavy is imported late."""

from __future__ import annotations

import atexit
import gc
import os
import sys
from functools import lru_cache
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NoReturn

from cockpit.late import Late

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from cockpit.backends.base import Backend
    from cockpit.backends.local.channel import Channel
    from cockpit.backends.local.control import LocalEngineControl
    from cockpit.backends.local.live import LiveBackend
    from cockpit.config.filters import SavedFilters
    from cockpit.config.places import EnginePaths
    from cockpit.config.settings import Settings
    from cockpit.config.site import Site
    from cockpit.formats.snapshotfile import Snapshot
    from cockpit.headless.play_script import Script
    from cockpit.headless.streams import Streams
    from cockpit.model.ids import Millis
    from cockpit.model.spec import JobSpec
    from cockpit.model.view import EngineStatus
    from cockpit.runtime.findings import Finding
    from cockpit.tui.opening import Look, Session
    from cockpit.tui.options import Options

OWN, SYSTEM = "local", "system"
"""Names of the embedded clusters: this user's engine, and the machine-wide one."""
DEMO = "demo"
"""Name of a cluster that is made up anew for each command."""


SLURM = "slurm"
"""Name of the Slurm cluster that this machine's commands speak to."""
SLURM_CONFS = ("/etc/slurm/slurm.conf", "/etc/slurm-llnl/slurm.conf", "/run/slurm/conf/slurm.conf")
"""Where Slurm's configuration is, as its packages or its own configless mode put it."""
PING_SECONDS = 2.0
RECORDED = "recorded:"
"""Before the version of a recorded Slurm cluster."""
SSH = "ssh://"
"""Before the login node of a Slurm cluster elsewhere."""
SNAPSHOT = "snapshot:"
"""Before the file that a snapshot is in."""


CLUSTERS = {
    OWN: "your own engine on this machine",
    SYSTEM: "this machine's engine",
    SLURM: "the Slurm cluster of this login node",
    DEMO: "made up, to look around",
}


def command() -> NoReturn:
    """The installed command. It ends before looking for garbage pays, loading alone would set off dozens of looks; and
    once all is written and put away it ends at once: taking ten thousand rows apart takes longer than leaving them to
    the kernel."""
    gc.disable()
    code = main()
    atexit._run_exitfuncs()  # noqa: SLF001 - as multiprocessing does before the same end; nothing public does it
    sys.stderr.flush()
    os._exit(code)


def main(arguments: Sequence[str] | None = None) -> int:
    """`cockpit …`: the exit code is the process's."""
    _import_msgspec()
    words = sys.argv[1:] if arguments is None else list(arguments)
    options = _to_open(words)
    if options is not None:
        return _open_the_cockpit(options)
    from cockpit.headless.main import run
    from cockpit.headless.services import Services
    from cockpit.headless.streams import Streams
    from cockpit.runtime.clock import SystemClock

    streams = Streams.of_process(SystemClock().now)

    def connect_any(cluster: str | None) -> Backend:
        """The demo has a time of its own, in which its moments are told, and so has a recording."""
        name = _cluster_name(cluster)
        if _needs_a_loop(name):
            return _on_a_loop(name, streams)
        if name != DEMO:
            return connect(cluster)
        from cockpit.backends.demo.blocking import BlockingDemo

        demo = BlockingDemo.open()
        streams.now = demo.now
        return demo

    services = Services(
        connect=connect_any,
        engine=Engines,
        findings=findings,
        read_jobs=read_jobs,
        site=site,
        use_cluster=use_cluster,
        play=play,
        saved=lambda cluster: lambda table: saved_filters(cluster).of(table),
    )
    return run(words, services, streams)


def connect(cluster: str | None) -> Backend:
    """The cluster of this name; without one the machine-wide engine where it runs, else this user's own."""
    from cockpit.backends.local.backend import LocalBackend

    return LocalBackend({OWN: _to_own, SYSTEM: _to_system, "": _to_any}[_cluster_name(cluster)])


def _to_open(words: list[str]) -> Options | None:
    """Without a verb, or for the demo, where a person sits in front of a terminal."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return None
    from cockpit.tui.options import face_options

    return face_options(words)


def _open_the_cockpit(options: Options) -> int:
    from cockpit.errors import CockpitError

    try:
        name = DEMO if options.demo else _cluster_name(str(options.flags.get("cluster") or ""))
        return _open(name, options)
    except CockpitError as error:
        print(f"cockpit: {error}", file=sys.stderr)  # noqa: T201 - the one place above all faces
        return 1


def _open(name: str, options: Options) -> int:
    if name == DEMO:
        return _open_the_demo(options)
    from cockpit.tui.opening import run_cockpit

    return run_cockpit(lambda: _session_on(name), os.environ, _look(options), lambda other: _open(other, options))


async def _session_on(name: str) -> Session:
    from cockpit.runtime.clock import SystemClock
    from cockpit.tui.opening import Session

    if _needs_a_loop(name):
        backend, now = await _opened(name)
    else:
        backend, now = live(name), SystemClock().now
    return Session(
        backend=backend,
        now=now,
        user=getattr(backend, "asker", "") or _user(),
        read_jobs=read_jobs,
        close=backend.close,
        filters=saved_filters(name),
        clusters=CLUSTERS,
        cluster=_settled(name),
    )


def _user() -> str:
    import pwd

    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())


def _needs_a_loop(name: str) -> bool:
    """It is read in this process."""
    return name == SLURM or name.startswith((RECORDED, SNAPSHOT, SSH))


async def _opened(name: str) -> tuple[Backend, Callable[[], Millis]]:
    """The cluster, and the time that its moments are told in."""
    from cockpit.runtime.clock import SystemClock

    if name.startswith(SNAPSHOT):
        from cockpit.backends.snapshot.backend import open_snapshot

        snapshot = await open_snapshot(_snapshot_in(name.removeprefix(SNAPSHOT)))
        return snapshot, snapshot.now
    from cockpit.backends.slurm import opening

    if name.startswith(RECORDED):
        return await opening.open_recorded(name.removeprefix(RECORDED))
    shelf = _own_places().socket.parent / "slurm"
    if name.startswith(SSH):
        return await opening.open_over_ssh(name, shelf), SystemClock().now
    return await opening.open_here(_user(), shelf), SystemClock().now


def _snapshot_in(file: str) -> Snapshot:
    from pathlib import Path

    from cockpit.errors import SpecErrors
    from cockpit.formats.snapshotfile import read_snapshot

    try:
        return read_snapshot(Path(file).read_text(encoding="utf-8"), file)
    except (OSError, UnicodeDecodeError) as error:
        raise SpecErrors([f"{file}: cannot be read: {getattr(error, 'strerror', None) or error}"]) from None


def _on_a_loop(name: str, streams: Streams) -> Backend:
    import asyncio

    from cockpit.backends.blocking import Blocking

    runner = asyncio.Runner()
    backend, streams.now = runner.run(_opened(name))
    return Blocking(runner, backend)


def _open_the_demo(options: Options) -> int:
    from cockpit.backends.demo.backend import leave_tidily
    from cockpit.headless.arguments import parse
    from cockpit.tui.opening import run_cockpit

    leave_tidily()
    _, chosen = parse(options.demo or [DEMO])
    fixture, seed, speed = chosen.fixture, chosen.seed, chosen.speed
    return run_cockpit(
        lambda: _demo_session(fixture, seed, speed=speed),
        os.environ,
        _look(options),
        lambda other: _open(other, options),
    )


def _look(options: Options) -> Look:
    from cockpit.config.loading import load_settings
    from cockpit.tui.opening import Look

    places = _own_places()
    settings = load_settings(flags=options.flags, env=os.environ, files=places.config_files)
    return Look(settings=settings, folder=places.config)


async def _demo_session(fixture: str, seed: int, *, speed: float, going: bool = True) -> Session:
    """With `going` False its time passes only while somebody waits for it."""
    import asyncio

    from cockpit.backends.demo.backend import open_demo
    from cockpit.tui.opening import Session

    demo = await open_demo(fixture, seed, speed=speed, going=going)
    return Session(
        backend=demo.backend,
        now=demo.now,
        user=demo.person,
        read_jobs=read_jobs,
        close=demo.close,
        clusters=CLUSTERS,
        cluster=DEMO,
        pace=demo.pace,
        elapse=asyncio.sleep if going else demo.elapse,
    )


def play(script: Script, folder: Path) -> None:
    """Run the cockpit by this script. Raises `Unmet` where the screen is not as it says."""
    from cockpit.tui.play import play as perform

    cluster = script.cluster
    name = _cluster_name(cluster.name if cluster is not None else None)
    if name != DEMO:
        perform(lambda: _session_on(name), script, folder)
        return
    from cockpit.backends.demo.backend import DEFAULT_FIXTURE, DEFAULT_SEED
    from cockpit.backends.demo.pace import DEFAULT_SPEED

    fixture, seed = (cluster.fixture, cluster.seed) if cluster is not None else (DEFAULT_FIXTURE, DEFAULT_SEED)
    perform(lambda: _demo_session(fixture, seed, speed=DEFAULT_SPEED, going=False), script, folder)


def live(cluster: str | None) -> LiveBackend:
    """The same cluster for a face that stays open; it connects with the first question."""
    from random import Random

    from cockpit.backends.local.live import LiveBackend
    from cockpit.backends.local.way import Way
    from cockpit.config.places import system_paths
    from cockpit.runtime.clock import SystemClock

    name = _cluster_name(cluster)
    if name == SYSTEM or (not name and _system_runs()):
        way = Way(system_paths(), system=True)
    else:
        way = Way(_configured(_own_places()))
    return LiveBackend(way, SystemClock().now, Random())  # noqa: S311 - spreads retries over time


def read_jobs(source: str, text: str, folder: str) -> list[JobSpec]:
    """The jobs of a file, with this user's defaults for what it leaves out. Raises `SpecErrors`."""
    from cockpit.formats.jobfile import Defaults
    from cockpit.formats.jobfile import read_jobs as read
    from cockpit.runtime.clock import SystemClock

    settings = _settings(_own_places())
    defaults = Defaults(
        time_limit_seconds=settings.time_limit_seconds,
        grace_seconds=settings.grace_seconds,
        home_folder=os.environ.get("HOME", ""),
        now=SystemClock().now(),
    )
    return read(source, text, folder, defaults=defaults)


def site(system: bool) -> Site:
    """The files of this user's cluster, or of the machine's."""
    from cockpit.config.places import system_paths
    from cockpit.config.site import Site

    return Site(system_paths() if system else _own_places())


def use_cluster(name: str) -> Path:
    """Let commands open this cluster from now on."""
    return site(system=False).use_cluster(_cluster_name(name))


def saved_filters(cluster: str | None) -> SavedFilters:
    """Those of the cluster of this name; a demo keeps none."""
    from cockpit.config.filters import FILE, SavedFilters

    name = _cluster_name(cluster)
    if name == DEMO:
        return SavedFilters()
    return SavedFilters(_own_places().config / FILE, _settled(name))


def findings() -> Sequence[Finding]:
    """What `cockpit doctor` finds, about the engine that commands talk to."""
    from cockpit.config.places import system_paths
    from cockpit.runtime.doctor import findings as look

    system = _system_meant()
    places = _configured(system_paths() if system else _own_places())
    return look(socket=places.socket, state_folder=places.state_folder, env=os.environ, system=system)


class Engines:
    """`cockpit engine …`: the machine-wide engine where it runs or `--system` asks for it, else this user's own."""

    def status(self) -> EngineStatus:
        """Of the engine that commands talk to; never starts one."""
        return _control(system=_system_meant()).status()

    def start(self, *, system: bool) -> EngineStatus:
        """Start it unless it runs."""
        return _control(system=system).start()

    def stop(self, *, jobs: bool) -> None:
        """Stop the engine that commands talk to."""
        _control(system=_system_meant()).stop(jobs=jobs)

    def restart(self) -> EngineStatus:
        """Stop and start it; no job ends."""
        return _control(system=_system_meant()).restart()

    def unit(self) -> str:
        """The machine-wide engine's unit for systemd."""
        from cockpit.backends.local.unit import unit_text

        return unit_text()

    def install_unit(self) -> Path:
        """Write it for systemd; nothing is started."""
        from cockpit.backends.local.unit import install_unit

        return install_unit()


def _cluster_name(cluster: str | None) -> str:
    """Empty: whichever there is."""
    from cockpit.errors import CockpitError

    name = cluster or os.environ.get("COCKPIT_CLUSTER") or _default_cluster() or _slurm_if_it_answers()
    if name not in {*CLUSTERS, ""} and not _needs_a_loop(name):
        known = f"{', '.join(map(repr, CLUSTERS))} '{SSH}USER@LOGIN', '{SNAPSHOT}FILE' and '{RECORDED}VERSION'"
        raise CockpitError(f"There is no cluster {name!r}. This cockpit knows {known}; see -c.")
    return name


def _slurm_if_it_answers() -> str:
    """On a login node its cluster is what one wants to see. Where Slurm has no configuration, nothing is run."""
    conf = next(filter(os.path.exists, (os.environ.get("SLURM_CONF", ""), *SLURM_CONFS)), "")
    return SLURM if conf and _slurm_answers(conf) else ""


@lru_cache
def _slurm_answers(_conf: str) -> bool:
    """Asked once: every command settles its cluster's name several times."""
    import subprocess

    try:
        ping = subprocess.run(("scontrol", "ping"), capture_output=True, timeout=PING_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return b"is UP" in ping.stdout


def _settled(name: str) -> str:
    """The one that an empty name means just now."""
    return name or (SYSTEM if _system_runs() else OWN)


def _system_meant() -> bool:
    """Whether commands talk to the machine-wide engine just now."""
    return _settled(_cluster_name(None)) == SYSTEM


def _default_cluster() -> str:
    """What config.toml says; where there is none, nothing need be loaded to read it."""
    places = _own_places()
    return _settings(places).cluster if places.configured else ""


def _to_any() -> Channel:
    return _to_system_if_it_runs() or _to_own()


def _to_own() -> Channel:
    from cockpit.backends.local.start import connect as connect_to
    from cockpit.backends.local.start import start

    places = _own_places()
    return connect_to(places) or start(_configured(places))


def _to_system() -> Channel:
    from cockpit.errors import Unreachable

    channel = _to_system_if_it_runs()
    if channel is None:
        raise Unreachable("No machine-wide engine runs here; root starts it with `cockpit engine start --system`.")
    return channel


def _to_system_if_it_runs() -> Channel | None:
    from cockpit.backends.local.start import connect as connect_to
    from cockpit.config.places import system_paths

    return connect_to(system_paths(), system=True)


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


def _import_msgspec() -> None:
    """Without what it needs for other things than ours: a tenth of a command's time.

    Of typing_extensions it takes what Python's own typing has too; textwrap is for documentation in schemas; uuid asks
    platform, with its many patterns, for the system's name alone.
    """
    stand_ins: dict[str, Any] = {
        "typing_extensions": None,  # as the import system marks what is not there
        "textwrap": Late("textwrap"),
        "platform": SimpleNamespace(system=lambda: os.uname().sysname, __spec__=None),
    }
    absent = {name: module for name, module in stand_ins.items() if name not in sys.modules}
    if "msgspec" in sys.modules:
        return
    sys.modules.update(absent)
    try:
        import msgspec  # noqa: F401 - for those who import it later
    finally:
        for name in absent:
            del sys.modules[name]


if __name__ == "__main__":
    command()
