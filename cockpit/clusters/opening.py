"""The backend that speaks to the cluster of a name. A made-up one is opened only by who was asked for it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from cockpit.clusters.choosing import (
    OWN,
    RECORDED,
    SNAPSHOT,
    SSH,
    SYSTEM,
    chosen,
    configured,
    own_places,
    system_runs,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from cockpit.backends.base import Backend
    from cockpit.backends.local.channel import Channel
    from cockpit.backends.local.live import LiveBackend
    from cockpit.formats.snapshotfile import Snapshot
    from cockpit.model.ids import Millis


def connect(cluster: str | None) -> Backend:
    """The embedded cluster of this name; without one the machine-wide engine where it runs, else this user's own."""
    from cockpit.backends.local.backend import LocalBackend

    return LocalBackend({OWN: _to_own, SYSTEM: _to_system, "": _to_any}[chosen(cluster)])


def live(cluster: str | None) -> LiveBackend:
    """The same cluster for a face that stays open; it connects with the first question."""
    from random import Random

    from cockpit.backends.local.live import LiveBackend
    from cockpit.backends.local.way import Way
    from cockpit.config.places import system_paths
    from cockpit.runtime.clock import SystemClock

    name = chosen(cluster)
    if name == SYSTEM or (not name and system_runs()):
        way = Way(system_paths(), system=True)
    else:
        way = Way(configured(own_places()))
    return LiveBackend(way, SystemClock().now, Random())  # noqa: S311 - spreads retries over time


async def opened(name: str) -> tuple[Backend, Callable[[], Millis]]:
    """A cluster that is read in this process, and the time that its moments are told in."""
    from cockpit.runtime.clock import SystemClock

    if name.startswith(SNAPSHOT):
        from cockpit.backends.snapshot.backend import open_snapshot

        snapshot = await open_snapshot(_snapshot_in(name.removeprefix(SNAPSHOT)))
        return snapshot, snapshot.now
    from cockpit.backends.slurm import opening

    if name.startswith(RECORDED):
        return await opening.open_recorded(name.removeprefix(RECORDED))
    places = own_places()
    folders = opening.Folders(places.socket.parent / "slurm", places.state_folder / "seen")
    if name.startswith(SSH):
        return await opening.open_over_ssh(name, folders), SystemClock().now
    return await opening.open_here(user_name(), folders), SystemClock().now


def opened_for_commands(name: str) -> tuple[Backend, Callable[[], Millis]]:
    """The same for who waits for each answer."""
    import asyncio

    from cockpit.backends.blocking import Blocking

    runner = asyncio.Runner()
    backend, now = runner.run(opened(name))
    return Blocking(runner, backend), now


def user_name() -> str:
    """Of whoever runs this; the number of a user without one."""
    import pwd

    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())


def _snapshot_in(file: str) -> Snapshot:
    from pathlib import Path

    from cockpit.errors import SpecErrors
    from cockpit.formats.snapshotfile import read_snapshot

    try:
        return read_snapshot(Path(file).read_text(encoding="utf-8"), file)
    except (OSError, UnicodeDecodeError) as error:
        raise SpecErrors([f"{file}: cannot be read: {getattr(error, 'strerror', None) or error}"]) from None


def _to_any() -> Channel:
    return _to_system_if_it_runs() or _to_own()


def _to_own() -> Channel:
    from cockpit.backends.local.start import connect as connect_to
    from cockpit.backends.local.start import start

    places = own_places()
    return connect_to(places) or start(configured(places))


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
