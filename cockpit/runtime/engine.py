"""Everything one engine process has; operations read it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

from cockpit import __version__
from cockpit.engine.ports import Executor
from cockpit.runtime.feed import JobFeed

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from cockpit.model.ids import ReplicaId
    from cockpit.runtime.containers.entering import EnteredShell, Terminal
    from cockpit.runtime.host import Host


class ContainerRuntime(Executor, Protocol):
    """An executor whose containers can be entered."""

    async def enter(
        self, replica: ReplicaId, command: Sequence[str], *, terminal: Terminal | None, label: str
    ) -> EnteredShell:
        """Raises `RequestRefused` where there is nothing to enter."""
        ...


class Engine:
    """The host with its surroundings."""

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
