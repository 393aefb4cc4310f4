"""Opens the backend of a cluster by its name. The demo is opened elsewhere, by the callers that offer it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from cockpit.clusters.choosing import (
    KUBE,
    NAMESPACES,
    RECORDED,
    REST,
    SNAPSHOT,
    SSH,
    address_of,
    chosen,
    configured,
    is_read_in_this_process,
    members,
    own_places,
    settings_of,
    system_runs,
)
from cockpit.config.cluster_names import DEMO, EVERY_CLUSTER, OWN, SYSTEM

if TYPE_CHECKING:
    from collections.abc import Callable

    from cockpit.backends.base import Backend, LiveBackend
    from cockpit.backends.fleet.member import Opened
    from cockpit.backends.local.channel import Channel
    from cockpit.backends.slurm.wire.answers import PollIntervals
    from cockpit.clusters.several import Watching
    from cockpit.config.members import Member
    from cockpit.formats.snapshotfile import Snapshot
    from cockpit.model.ids import Millis


def connect(cluster: str | None) -> Backend:
    """Connect to an embedded engine; without a name to the machine-wide one if it runs, else to the user's own.

    The user's own engine is started when it does not run.
    """
    from cockpit.backends.local.backend import LocalBackend

    name = address_of(chosen(cluster))
    way = {OWN: _to_own, SYSTEM: _to_system, "": _to_any}[name]
    # `_act_patience` is a function, since the settings are read only if no answer comes at once.
    return LocalBackend(way, lambda: _again(name), _act_patience)


def _act_patience() -> float:
    return float(settings_of(own_places()).act_patience_seconds)


def running(cluster: str | None) -> Backend | None:
    """Connect to an embedded engine if it runs already; None otherwise."""
    from cockpit.backends.local.backend import LocalBackend

    ways = {OWN: _to_own_if_it_runs, SYSTEM: _to_system_if_it_runs, "": _to_any_that_runs}
    channel = ways[address_of(chosen(cluster))]()
    return None if channel is None else LocalBackend(lambda: channel)


def live(cluster: str | None) -> LiveBackend:
    """Return a backend of an embedded engine that reconnects by itself; it connects with the first operation."""
    from random import Random

    from cockpit.backends.local.live import LiveBackend as LiveEngine
    from cockpit.backends.local.reconnector import Patience
    from cockpit.backends.local.start import EngineDialer
    from cockpit.config.places import system_paths
    from cockpit.runtime.clock import SystemClock

    name = address_of(chosen(cluster))
    if name == SYSTEM or (not name and system_runs()):
        way = EngineDialer(system_paths(), system=True)
    else:
        way = EngineDialer(configured(own_places()))
    patience = Patience(act=_act_patience())
    return LiveEngine(way, SystemClock().now, Random(), patience)  # noqa: S311 - spreads retries over time


async def opened(name: str, *, typing: bool = False) -> tuple[LiveBackend, Callable[[], Millis]]:
    """Open a cluster that is read in this process; return its backend and its clock.

    `typing`: the user may be asked for a password or a code at the terminal.
    """
    address = address_of(name)
    if address == EVERY_CLUSTER:
        from cockpit.clusters.several import every_cluster
        from cockpit.runtime.clock import SystemClock

        return every_cluster(_member), SystemClock().now
    if address.startswith(SNAPSHOT):
        from cockpit.backends.snapshot.backend import open_snapshot
        from cockpit.config.places import user_name

        snapshot = await open_snapshot(_snapshot_in(address.removeprefix(SNAPSHOT)), user_name())
        return snapshot, snapshot.now
    if address.startswith(KUBE):
        from cockpit.backends.kubernetes.opening import open_context
        from cockpit.runtime.clock import SystemClock

        context, named = _context_of(address)
        member = members().get(name)
        namespaces = named or (member.namespaces if member is not None else ())
        seen = own_places().state_folder / "seen"
        return open_context(context, os.environ, seen, namespaces), SystemClock().now
    if address.startswith(RECORDED):
        from cockpit.backends.slurm.opening import open_recorded

        return await open_recorded(address.removeprefix(RECORDED))
    return await _slurm(address, members().get(name), typing=typing)


def _context_of(address: str) -> tuple[str, tuple[str, ...]]:
    """Return the context and the namespaces of `kube:CONTEXT` or `kube:CONTEXT?namespaces=A,B`.

    Raises `CockpitError` for what is no name of a namespace.
    """
    from cockpit.config.members import namespace_error
    from cockpit.errors import CockpitError

    context, asked, text = address.removeprefix(KUBE).partition(NAMESPACES)
    names = tuple(dict.fromkeys(filter(None, text.split(","))))
    if asked and not names:
        raise CockpitError(f"{address!r} names no namespace; write {KUBE}{context}{NAMESPACES}A,B.")
    for error in filter(None, map(namespace_error, names)):
        raise CockpitError(f"{address!r}: {error}.")
    return context, names


async def _slurm(address: str, member: Member | None, *, typing: bool) -> tuple[LiveBackend, Callable[[], Millis]]:
    """Open a real Slurm cluster, with the poll intervals of the settings."""
    from cockpit.backends.slurm import opening
    from cockpit.config.places import user_name
    from cockpit.runtime.clock import SystemClock

    places, intervals = own_places(), _poll_intervals(member)
    # Answers go to the runtime folder, which is emptied at logout or boot; what was seen of jobs stays on the disk.
    folders = opening.Folders(places.socket.parent / "slurm", places.state_folder / "seen")
    if address.startswith(REST):
        file = member.token_file if member is not None else ""
        return await opening.open_rest(address, user_name(), folders, intervals, file), SystemClock().now
    if address.startswith(SSH):
        # ssh asks at /dev/tty; without one it would fail in the middle of its questions.
        typing = typing and has_terminal()
        return await opening.open_over_ssh(address, folders, intervals, typing=typing), SystemClock().now
    return await opening.open_here(user_name(), folders, intervals), SystemClock().now


def _poll_intervals(member: Member | None) -> PollIntervals:
    """Return the poll intervals of a cluster in config.toml, else those of the settings."""
    from cockpit.backends.slurm.wire.answers import PollIntervals

    settings = settings_of(own_places())
    own = (member.ask_every_seconds, member.patience_seconds) if member is not None else (None, None)
    return PollIntervals.every(own[0] or settings.ask_every_seconds, own[1] or settings.patience_seconds)


async def _member(name: str) -> Opened:
    """Open one member of a fleet."""
    from cockpit.backends.fleet.member import Opened
    from cockpit.runtime.clock import SystemClock

    address = address_of(name)
    if address == DEMO:
        from cockpit.backends.demo.backend import open_demo

        # The demo has a clock of its own, which may be ahead.
        demo = await open_demo()
        return Opened(demo.backend, demo.now, demo.close)
    if is_read_in_this_process(name):
        backend, now = await opened(name)
        return Opened(backend, now, backend.close, still=address.startswith((RECORDED, SNAPSHOT)))
    backend = live(name)
    return Opened(backend, SystemClock().now, backend.close)


def beside(backend: LiveBackend, now: Callable[[], Millis], name: str) -> Watching:
    """Watch all clusters that this user uses, for the view of clusters.

    `backend`, `now` and `name` are the cluster that is open already. No engine is started: if config.toml has no
    clusters and no engine runs here, the view lists the open cluster alone.
    """
    from cockpit.backends.fleet.member import Opened
    from cockpit.clusters.several import Watching, every_cluster
    from cockpit.model.capabilities import Ability
    from cockpit.runtime.clock import SystemClock

    real_now = SystemClock().now
    has_them = backend.capabilities.has(Ability.CLUSTERS)
    # Ages of a recording or a snapshot are counted from its own present.
    still = address_of(name).startswith((RECORDED, SNAPSHOT))

    async def as_it_is_open() -> Opened:
        return Opened(backend, now, _stays_open, still)

    def all_clusters() -> Backend:
        return backend if has_them else every_cluster(_member, {name: as_it_is_open})

    return Watching(all_clusters, lambda: now() - real_now())


async def _stays_open() -> None:
    """Do nothing: only the session that opened a cluster closes it."""


def opened_for_commands(name: str, *, typing: bool) -> tuple[Backend, Callable[[], Millis]]:
    """Open a cluster that is read in this process, as a backend whose calls block; return it and its clock."""
    import asyncio

    from cockpit.backends.blocking import Blocking

    # One event loop for all calls: the backend's tasks and locks belong to the loop that opened it.
    runner = asyncio.Runner()
    backend, now = runner.run(opened(name, typing=typing))
    return Blocking(runner, backend), now


def has_terminal() -> bool:
    """Whether the process has a terminal, even if its input and output are redirected."""
    try:
        # O_NOCTTY: testing must not make a terminal the controlling one.
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return False
    return True


def _snapshot_in(file: str) -> Snapshot:
    """Read a snapshot file. Raises `SpecErrors`."""
    from pathlib import Path

    from cockpit.errors import SpecErrors, why_unreadable
    from cockpit.formats.snapshotfile import read_snapshot

    try:
        return read_snapshot(Path(file).read_text(encoding="utf-8"), file)
    except (OSError, UnicodeDecodeError) as error:
        raise SpecErrors([f"{file}: {why_unreadable(error)}"]) from None


def _again(name: str) -> Channel:
    """Reconnect to the engine after its connection was lost."""
    from cockpit.backends.local.start import EngineDialer, reconnect
    from cockpit.config.places import system_paths

    # Either engine where none was named: the machine-wide one may just be restarting.
    ways = [EngineDialer(system_paths(), system=True)] if name != OWN else []
    return reconnect([*ways, *([EngineDialer(configured(own_places()))] if name != SYSTEM else [])])


def _to_any() -> Channel:
    return _to_system_if_it_runs() or _to_own()


def _to_any_that_runs() -> Channel | None:
    return _to_system_if_it_runs() or _to_own_if_it_runs()


def _to_own() -> Channel:
    from cockpit.backends.local.start import start

    return _to_own_if_it_runs() or start(configured(own_places()))


def _to_own_if_it_runs() -> Channel | None:
    from cockpit.backends.local.start import connect as connect_to

    return connect_to(own_places())


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
