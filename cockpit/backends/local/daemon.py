"""The embedded engine as a process: `python -m cockpit.backends.local.daemon [--system]`. Builds it from this user's
settings and this machine, and serves until told to stop. What goes wrong is one sentence on stderr.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from cockpit.config import load_settings, paths, system_paths
from cockpit.engine.apply import apply
from cockpit.engine.machine import Machine
from cockpit.errors import CockpitError, StoreError
from cockpit.formats.clusterfile import cluster_nodes
from cockpit.runtime.clock import Deadline, SystemClock
from cockpit.runtime.containers.driver import Containers
from cockpit.runtime.containers.probe import probe_runtime
from cockpit.runtime.engine import Engine
from cockpit.runtime.host import Host, Settings
from cockpit.runtime.listening import listen
from cockpit.runtime.machine import probe_machine
from cockpit.sched.policy import Policy
from cockpit.store.journal import SqliteJournal
from cockpit.store.statefolder import StateFolder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cockpit.config import EnginePaths
    from cockpit.config import Settings as UserSettings
    from cockpit.model.node import Node

LOCK_SECONDS = 5.0
"""An engine that is just stopping gives its folder up within this."""


def main(arguments: Sequence[str]) -> int:
    """Run until stopped; 0, or 1 after a sentence on stderr."""
    system = "--system" in arguments
    os.chdir("/")
    try:
        places = system_paths() if system else paths(os.geteuid(), os.environ)
        settings = load_settings(env=os.environ, files=places.config_files)
        asyncio.run(_run(places.with_state_folder(settings.state_folder), settings, system=system))
    except CockpitError as error:
        print(f"cockpit engine: {error}", file=sys.stderr)  # noqa: T201 - stderr is the engine's log
        return 1
    return 0


async def _run(places: EnginePaths, settings: UserSettings, *, system: bool) -> None:
    folder = await _acquire(places.state_folder)
    journal = await SqliteJournal.open(folder.journal, folder.archive, clock=SystemClock(), apply=apply)
    try:
        state, _ = await journal.load()
        machine = Machine(state)
        executor = Containers(folder.path, machine, settings)
        host = Host(machine, journal, executor, SystemClock(state.at), _host_settings(settings))
        executor.tell(host)
        engine = Engine(
            host=host,
            executor=executor,
            state_folder=folder.path,
            socket=places.socket,
            system=system,
            cluster=os.uname().nodename,
            containers=await asyncio.to_thread(probe_runtime),
        )
        listener = listen(places.socket, system=system)
        await engine.run(listener, await asyncio.to_thread(_nodes, places.cluster_file))
        places.socket.unlink(missing_ok=True)
    finally:
        await journal.close()
        folder.release()


async def _acquire(path: Path) -> StateFolder:
    deadline = Deadline(LOCK_SECONDS)
    while True:
        try:
            return StateFolder.acquire(path)
        except StoreError:
            if deadline.over:
                raise
        await asyncio.sleep(0.05)


def _nodes(cluster_file: Path) -> tuple[Node, ...]:
    try:
        content = cluster_file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return cluster_nodes(probe_machine(), None)
    return cluster_nodes(probe_machine(), content, str(cluster_file))


def _host_settings(settings: UserSettings) -> Settings:
    return Settings(
        hold_seconds=settings.hold_window_seconds,
        keep_history_ms=settings.keep_history_seconds * 1000,
        check_invariants=settings.invariants,
        policy=Policy(fraction_fit=settings.fraction_fit),
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
