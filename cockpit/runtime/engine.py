"""Everything one engine process has; operations read it."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

from cockpit import __version__
from cockpit.engine.sharing import catalogued_projects
from cockpit.runtime.feed import JobFeed
from cockpit.runtime.peers import Site
from cockpit.runtime.requests import Requests
from cockpit.sched.forecast.moves import BoundHistory

if TYPE_CHECKING:
    from pathlib import Path

    from cockpit.model.view import Overview
    from cockpit.runtime.host import Host
    from cockpit.sched.forecast.predict import StartPredictor


class Engine:
    """The host with its surroundings."""

    def __init__(
        self,
        *,
        host: Host,
        state_folder: Path,
        socket: Path,
        system: bool,
        cluster: str,
        cluster_file: Path | None = None,
        admin_group: str = "",
    ) -> None:
        self.host = host
        self.state_folder = state_folder
        self.logs = state_folder / "logs"
        self.socket = socket
        self.system = system
        self.cluster = cluster
        self.cluster_file = cluster_file
        """Read at every start; None: this engine has none."""
        self.admin_group = admin_group
        self.containers = ""
        """How containers are made here, once that has been tried."""
        self.plain = False
        """They are none: jobs run as plain processes."""
        self.glance: tuple[int, Overview] | None = None
        """Figures of everything, and the event up to which they count."""
        self.troubles: tuple[str, ...] = ()
        """What was wrong when it began, a sentence each."""
        self.version = __version__
        self.feed = JobFeed(host)
        self.requests = Requests(host.journal)
        self.started_at = host.clock.now()
        self.foresight: StartPredictor | None = None
        """What the last question about starts was answered from."""
        self.bounds = BoundHistory()
        """How the latest starts have moved from one such answer to the next."""
        self.foretelling = asyncio.Lock()
        """One such question at a time."""
        self.one_future = threading.Lock()
        """Held by the thread that answers one: it goes on where the asker has gone."""
        self.stopping = asyncio.Event()

    @property
    def site(self) -> Site:
        """By what it is told who asks."""
        state = self.host.machine.state
        return Site(self.system, state.cluster, self.admin_group, catalogued_projects(state))
