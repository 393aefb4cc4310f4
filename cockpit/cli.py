"""The entry point of the `cockpit` command: chooses the cluster and opens the terminal UI or runs a verb.

It is the composition root: the only module that knows both the backends and the user interfaces. Heavy modules are
imported inside the functions that need them, because a verb should answer within a tenth of a second.
"""

from __future__ import annotations

import atexit
import gc
import os
import signal
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NoReturn

from cockpit.clusters.choosing import (
    address_of,
    advice_when_unreachable,
    chosen,
    configured,
    is_read_in_this_process,
    openable,
    own_places,
    settings_of,
    settled,
    slurm_configured_by,
    system_meant,
)
from cockpit.clusters.opening import beside, connect, live, opened, opened_for_commands, running
from cockpit.config.cluster_names import DEMO, SYSTEM
from cockpit.late import LazyModule

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from cockpit.backends.base import Backend
    from cockpit.backends.local.control import LocalEngineControl
    from cockpit.config.filters import SavedFilters
    from cockpit.config.places import EnginePaths
    from cockpit.config.site import Site
    from cockpit.headless.play_script import Script
    from cockpit.model.spec import JobSpec
    from cockpit.model.view import EngineStatus, HoldRow
    from cockpit.runtime.findings import Finding
    from cockpit.tui.opening import AppSettings, Session
    from cockpit.tui.start_options import StartOptions

TAB_SECONDS = 2
"""Longest time that completion may take after the user pressed Tab."""


def command() -> NoReturn:
    """Run the installed `cockpit` command and end the process."""
    # A command ends before garbage collection pays: importing alone would start dozens of collections.
    gc.disable()
    code = main()
    # Ending without Python's own clean-up saves the time to free tens of thousands of rows one by one.
    atexit._run_exitfuncs()  # noqa: SLF001 - as multiprocessing does before the same end; nothing public does it
    sys.stderr.flush()
    os._exit(code)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `cockpit` with these arguments (None: the process's) and return the exit code."""
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

    def connect_any(cluster: str | None, *, typing: bool = True) -> Backend:
        """Open the chosen cluster; `typing`: a login node may ask for a password at the terminal.

        The demo and recordings have a clock of their own, by which times are then printed.
        """
        name = chosen(cluster)
        if is_read_in_this_process(name):
            backend, streams.now = opened_for_commands(name, typing=typing)
            return backend
        if address_of(name) != DEMO:
            return connect(cluster)
        from cockpit.backends.demo.backend import BlockingDemo

        demo = BlockingDemo.open()
        streams.now = demo.now
        return demo

    def reach(cluster: str | None) -> Backend | None:
        """Open the cluster for completion, without starting an engine; SIGALRM ends the process after `TAB_SECONDS`."""
        # The default action of SIGALRM ends the process, also in the middle of a call that hangs. A late answer to Tab
        # is worth nothing.
        signal.alarm(TAB_SECONDS)
        name = chosen(cluster)
        is_in_this_process = is_read_in_this_process(name) or address_of(name) == DEMO
        return connect_any(cluster, typing=False) if is_in_this_process else running(cluster)

    # Functions instead of what they return: a verb uses few of them, and each imports what it needs.
    services = Services(
        connect=connect_any,
        engine=Engines,
        findings=findings,
        read_jobs=read_jobs,
        site=site,
        use_cluster=use_cluster,
        play=play,
        serve=serve,
        reach=reach,
        clusters=openable,
        journal=journal,
        advice=advice_when_unreachable,
        saved=lambda cluster: lambda table: saved_filters(cluster).of(table),
    )
    return run(words, services, streams)


def _to_open(words: list[str]) -> StartOptions | None:
    """Return the options of the terminal UI, or None to run a verb.

    The UI opens for a command line without a verb, and for `demo`, when input and output are a terminal.
    """
    # In a pipe or a script the screens cannot be used.
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return None
    from cockpit.tui.start_options import parse_start_options

    return parse_start_options(words)


def _open_the_cockpit(options: StartOptions) -> int:
    from cockpit.errors import CockpitError
    from cockpit.present.safe import safe_lines

    try:
        name = DEMO if options.demo else chosen(str(options.flags.get("cluster") or ""))
        return _open(name, options)
    except CockpitError as error:
        from cockpit.headless.exitcodes import exit_code_of

        print(f"cockpit: {safe_lines(str(error))}", file=sys.stderr)  # noqa: T201 - the one place above all faces
        return exit_code_of(error)


def _open(name: str, options: StartOptions) -> int:
    if address_of(name) == DEMO:
        return _open_the_demo(options)
    from cockpit.tui.opening import run_cockpit

    # Choosing another cluster in the UI ends this application and opens a new one, with the same options.
    return run_cockpit(lambda: _session_on(name), os.environ, _look(options), lambda other: _open(other, options))


async def _session_on(name: str) -> Session:
    from cockpit.config.places import user_name
    from cockpit.runtime.clock import SystemClock
    from cockpit.tui.opening import Session

    # Clusters without an engine of cockpit's are read by this process. The embedded engine is another process, to which
    # the backend connects with its first operation, so that the screens appear at once.
    if is_read_in_this_process(name):
        backend, now = await opened(name, typing=True)
    else:
        backend, now = live(name), SystemClock().now
    others = beside(backend, now, settled(name))

    async def close() -> None:
        # The other clusters first: they are shown beside this one.
        await others.close()
        await backend.close()

    return Session(
        backend=backend,
        now=now,
        user=backend.user or user_name(),
        read_jobs=read_jobs,
        close=close,
        filters=saved_filters(name),
        clusters=openable(),
        cluster=settled(name),
        every=others,
        login=backend.login,
    )


def _open_the_demo(options: StartOptions) -> int:
    from cockpit.headless.arguments import parse
    from cockpit.tui.opening import run_cockpit

    # By the verb's own parser, so that `cockpit demo` takes the same options with and without a terminal.
    _, chosen = parse(options.demo or [DEMO])
    fixture, seed, speed = chosen.fixture, chosen.seed, chosen.speed
    return run_cockpit(
        lambda: _demo_session(fixture, seed, speed=speed),
        os.environ,
        _look(options),
        lambda other: _open(other, options),
    )


def _look(options: StartOptions) -> AppSettings:
    from cockpit.config.loading import load_settings
    from cockpit.tui.opening import AppSettings

    places = own_places()
    settings = load_settings(flags=options.flags, env=os.environ, files=places.config_files)
    return AppSettings(settings=settings, folder=places.config)


async def _demo_session(fixture: str, seed: int, *, speed: float, going: bool = True) -> Session:
    """Open a demo session; with `going` False its clock advances only while a script waits."""
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
        clusters=openable(),
        cluster=DEMO,
        every=demo,
        pace=demo.pace,
        # In a play script, time passes only where the script waits: each run shows the same.
        elapse=asyncio.sleep if going else demo.elapse,
    )


def play(script: Script, folder: Path) -> None:
    """Run the terminal UI by a script. Raises `ExpectationFailed` when the screen is not as the script expects."""
    from cockpit.tui.play import play as perform

    # The cluster that the script names, or else the user's default one; `-c` has replaced the script's already.
    cluster = script.cluster
    name = chosen(cluster.name if cluster is not None else None)
    if address_of(name) != DEMO:
        perform(lambda: _session_on(name), script, folder)
        return
    from cockpit.backends.demo.backend import DEFAULT_FIXTURE, DEFAULT_SEED
    from cockpit.backends.demo.pace import DEFAULT_SPEED

    fixture, seed = (cluster.fixture, cluster.seed) if cluster is not None else (DEFAULT_FIXTURE, DEFAULT_SEED)
    perform(lambda: _demo_session(fixture, seed, speed=DEFAULT_SPEED, going=False), script, folder)


def serve(flags: Mapping[str, str | None], forced: bool) -> int:
    """Run the SSH server with the settings of these flags until a signal ends it; return the exit code.

    `forced`: become the program of the session that sshd opened for this process.
    """
    from pathlib import Path

    from cockpit.config.loading import load_settings
    from cockpit.config.places import system_paths
    from cockpit.config.settings import split_address
    from cockpit.serve.limits import Bounds
    from cockpit.serve.running import ServeOptions, run_server

    settings = load_settings(flags=flags, env=os.environ, files=own_places().config_files)
    if forced:
        from cockpit.serve.forced import run_forced

        return run_forced(settings.serve_access, os.environ)
    host, port = split_address(settings.serve_listen)
    # Root serves the machine, so that its key is the machine's.
    places = configured(system_paths() if os.geteuid() == 0 else own_places())
    options = ServeOptions(
        host=host,
        port=port,
        authorized_keys=Path(settings.serve_authorized_keys) if settings.serve_authorized_keys else None,
        host_key=Path(settings.serve_host_key or f"{places.state}/serve/ssh_host_ed25519_key"),
        access=settings.serve_access,
        bounds=Bounds(
            sessions=settings.serve_sessions,
            sessions_per_user=settings.serve_sessions_per_user,
            idle_seconds=settings.serve_idle_seconds,
            drain_seconds=settings.serve_drain_seconds,
        ),
        web=split_address(settings.serve_web) if settings.serve_web else None,
        certificate=Path(settings.serve_tls_certificate) if settings.serve_tls_certificate else None,
        certificate_key=Path(settings.serve_tls_key) if settings.serve_tls_key else None,
    )
    return run_server(options)


def read_jobs(source: str, text: str, folder: str) -> list[JobSpec]:
    """Read the jobs of a file, with this user's defaults for missing fields. Raises `SpecErrors`."""
    from cockpit.formats.job.file import Defaults
    from cockpit.formats.job.file import read_jobs as read
    from cockpit.runtime.clock import SystemClock

    settings = settings_of(own_places())
    defaults = Defaults(
        time_limit_seconds=settings.time_limit_seconds,
        grace_seconds=settings.grace_seconds,
        home_folder=os.environ.get("HOME", ""),
        now=SystemClock().now(),
    )
    return read(source, text, folder, defaults=defaults)


def site(system: bool) -> Site:
    """Return the files of this user's embedded cluster, or (`system`) of the machine-wide one."""
    from cockpit.config.places import system_paths
    from cockpit.config.site import Site

    return Site(system_paths() if system else own_places())


def use_cluster(name: str) -> Path:
    """Make this cluster the default; return the file that was written."""
    return site(system=False).use_cluster(chosen(name))


def saved_filters(cluster: str | None) -> SavedFilters:
    """Return the filters that were saved for a cluster; the demo saves none."""
    from cockpit.config.filters import FILE, SavedFilters

    name = chosen(cluster)
    # The demo is for trying out; its filters must not appear among the user's own.
    if name == DEMO:
        return SavedFilters()
    return SavedFilters(own_places().config / FILE, settled(name))


def findings() -> Sequence[Finding]:
    """Return the findings of `cockpit doctor` about this machine and the engine that commands talk to."""
    from cockpit.backends.local.journal_check import brief_findings
    from cockpit.config.places import system_paths
    from cockpit.runtime.doctor import findings as look

    system = system_meant()
    places = configured(system_paths() if system else own_places())
    of_machine = look(
        socket=places.socket,
        state_folder=places.state_folder,
        env=os.environ,
        system=system,
        slurm=slurm_configured_by(),
    )
    return [*of_machine, *brief_findings(places.state_folder), *_engine_findings(places, system=system)]


def _engine_findings(places: EnginePaths, *, system: bool) -> Iterator[Finding]:
    """Yield a finding for each problem that a running engine reports, such as an address that does not answer it."""
    from cockpit.backends.local.control import LocalEngineControl
    from cockpit.errors import CockpitError
    from cockpit.runtime.findings import note

    # Whatever is wrong with the engine must not hide what was found on the machine.
    try:
        trouble = LocalEngineControl(places, system=system).status().trouble
    except CockpitError as error:
        trouble = (str(error),)
    yield from (note("engine", sentence, "See `cockpit engine status`.") for sentence in trouble)


def journal(cluster: str | None) -> Sequence[Finding]:
    """Return the findings of `cockpit doctor --journal` in the store of the cluster's engine."""
    from cockpit.backends.local.journal_check import journal_findings
    from cockpit.config.places import system_paths

    system = settled(chosen(cluster)) == SYSTEM
    return journal_findings(configured(system_paths() if system else own_places()).state_folder)


class Engines:
    """Controls the engine for `cockpit engine …`.

    That is the machine-wide engine where it runs or `--system` asks for it, else this user's own.
    """

    def status(self) -> EngineStatus:
        """Return the state of the engine that commands talk to; never starts one."""
        return _control(system=system_meant()).status()

    def start(self, *, system: bool) -> EngineStatus:
        """Start the engine unless it runs."""
        return _control(system=system).start()

    def take_over(self) -> None:
        """Start the engine that commands talk to if it was stopped and left containers."""
        _control(system=system_meant()).take_over()

    def holds(self) -> list[HoldRow]:
        """Return the held containers of the engine that commands talk to; never starts one."""
        return _control(system=system_meant()).holds()

    def stop(self, *, jobs: bool, holds: bool) -> None:
        """Stop the engine that commands talk to."""
        _control(system=system_meant()).stop(jobs=jobs, holds=holds)

    def restart(self) -> EngineStatus:
        """Restart the engine without ending a job."""
        return _control(system=system_meant()).restart()

    def unit(self) -> str:
        """Return the text of the machine-wide engine's systemd unit."""
        from cockpit.backends.local.unit import unit_text

        return unit_text()

    def install_unit(self) -> Path:
        """Write the systemd unit; nothing is started."""
        from cockpit.backends.local.unit import install_unit

        return install_unit()


def _control(*, system: bool) -> LocalEngineControl:
    from cockpit.backends.local.control import LocalEngineControl
    from cockpit.config.places import system_paths

    return LocalEngineControl(configured(system_paths() if system else own_places()), system=system)


def _import_msgspec() -> None:
    """Import msgspec without modules that it imports but that cockpit does not need: a tenth of a command's time.

    msgspec does without typing_extensions where Python's own typing has the names; it uses textwrap only for
    descriptions in schemas; and uuid asks platform, which compiles many patterns, only for the system's name.
    """
    stand_ins: dict[str, Any] = {
        "typing_extensions": None,  # the import system's mark for a missing module
        "textwrap": LazyModule("textwrap"),
        "platform": SimpleNamespace(system=lambda: os.uname().sysname, __spec__=None),
    }
    # A module that is imported already costs nothing more, and must not be replaced.
    absent = {name: module for name, module in stand_ins.items() if name not in sys.modules}
    if "msgspec" in sys.modules:
        return
    sys.modules.update(absent)
    try:
        import msgspec  # noqa: F401 - for those who import it later
    finally:
        # So that a later import of these names gets the real modules.
        for name in absent:
            del sys.modules[name]


if __name__ == "__main__":
    command()
