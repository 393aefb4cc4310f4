"""The engine process: recover what was, adopt what runs, then serve until told to stop."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import TYPE_CHECKING, Protocol

from cockpit import __version__
from cockpit.engine import decide, reactions
from cockpit.engine.effects import KeepContainer, RecordEnded
from cockpit.engine.ports import Executor
from cockpit.model import events
from cockpit.model.job import OCCUPYING
from cockpit.runtime.feed import JobFeed
from cockpit.runtime.host import Act, Host
from cockpit.runtime.server import Server

if TYPE_CHECKING:
    import socket as sockets
    from collections.abc import Sequence
    from pathlib import Path

    from cockpit.engine.effects import StartReplica
    from cockpit.model.ids import ReplicaId
    from cockpit.model.node import Node


class EnteredShell(Protocol):
    """What entering a container gives: descriptors that the caller must close."""

    terminal_fd: int | None
    pipe_fds: tuple[int, int, int] | None
    control_fd: int
    remounted: bool


class ContainerRuntime(Executor, Protocol):
    """An executor whose containers can be entered."""

    async def enter(
        self, replica: ReplicaId, command: tuple[str, ...], *, terminal: tuple[int, int, str] | None
    ) -> EnteredShell:
        """Raises `RequestRefused` or `RuntimeMissing` when it cannot."""
        ...


class Engine:
    """Everything one engine process has; operations read it."""

    def __init__(
        self,
        *,
        host: Host,
        executor: ContainerRuntime,
        state_folder: Path,
        socket: Path,
        system: bool,
        cluster: str,
        containers: str,
    ) -> None:
        self.host = host
        self.executor = executor
        self.state_folder = state_folder
        self.logs = state_folder / "logs"
        self.socket = socket
        self.system = system
        self.cluster = cluster
        self.containers = containers
        self.version = __version__
        self.feed = JobFeed(host)
        self.started_at = host.clock.now()
        self.stopping = asyncio.Event()

    async def run(self, listener: sockets.socket, nodes: Sequence[Node]) -> None:
        """Serve on `listener` until SIGTERM, SIGINT or the `stop` operation. Jobs go on after it."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stopping.set)
        server = Server(self)
        await self._begin(nodes)
        await server.start(listener)
        await self.stopping.wait()
        await server.stop()
        await self._end()

    async def _begin(self, nodes: Sequence[Node]) -> None:
        own = Act(actor="engine", origin="engine")
        started = events.EngineStarted(self.version, os.getpid())
        await self.host.act(lambda machine, _: [started, *decide.nodes_changed(machine, nodes)], own)
        await recover(self.host)
        await self.host.start()

    async def _end(self) -> None:
        await self.host.act(
            lambda _machine, _now: [events.EngineStopped(self.version)], Act(actor="engine", origin="engine")
        )
        await self.host.stop()


async def recover(host: Host) -> None:
    """Meet the world as it is after an engine's absence: adopt what runs, repeat the effects that may be missing."""
    jobs = list(host.machine.state.jobs.values())
    expected: list[StartReplica] = []
    kept: list[KeepContainer] = []
    for job in jobs:
        if job.state in OCCUPYING and job.attempt is not None:
            live = {each.rank for each in job.attempt.replicas if each.ended_at is None}
            expected += [start for start in reactions.starts_of(job) if start.replica.rank in live]
        elif job.kept:
            kept += [each for each in reactions.containers_after_end(job) if isinstance(each, KeepContainer)]
    await host.executor.adopt(expected, kept)
    for job in jobs:
        if job.ending is not None:
            host.run_effects(tuple(reactions.signals_of(job)))
        if job.ended:
            host.run_effects((RecordEnded(job.id),))
