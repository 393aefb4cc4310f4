"""The parts of one engine process, in one object that every operation gets."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

from cockpit import __version__
from cockpit.engine.sharing import catalogued_projects
from cockpit.runtime.feed import JobFeed
from cockpit.runtime.peers import Site
from cockpit.runtime.requests import Requests
from cockpit.runtime.troubles import Outages
from cockpit.sched.forecast.likely_moves import LikelyHistory
from cockpit.sched.forecast.moves import BoundHistory

if TYPE_CHECKING:
    from pathlib import Path

    from cockpit.model.view import Overview
    from cockpit.runtime.fleet.members import Members
    from cockpit.runtime.host import Host
    from cockpit.sched.forecast.predict import StartPredictor


class Engine:
    """The host together with its folders, its socket, its row feed and the state of predictions."""

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
        """The `cluster.toml` that is read at every start; None: this engine has none."""
        self.admin_group = admin_group
        self.members: Members | None = None
        """The members of the fleet that this engine is; None: it is no fleet."""
        self.containers = ""
        """How containers are made on this machine, for `engine status`; empty until the engine has tried."""
        self.plain = False
        """Whether this machine forbids containers, so that jobs run as plain processes."""
        self.glance: tuple[int, Overview] | None = None
        """The cached figures of the header for an administrator, with the sequence number of their last event."""
        self.troubles: tuple[str, ...] = ()
        """Problems noticed at the start, one sentence each."""
        self.outages = Outages()
        """The outside services that do not answer now."""
        self.version = __version__
        self.feed = JobFeed(host)
        self.requests = Requests(host.journal)
        self.searching = asyncio.Semaphore(1)
        """Held by the search of a log that runs."""
        self.started_at = host.clock.now()
        self.predictor: StartPredictor | None = None
        """The predictor of the last prediction; it serves again while nothing has changed."""
        self.bounds = BoundHistory()
        self.likely_starts = LikelyHistory()
        """The promised latest start of each queued job, and how it has moved from one prediction to the next."""
        self.prediction_lock = asyncio.Lock()
        """Held by the request whose prediction is being made: one at a time."""
        self.predictor_lock = threading.Lock()
        """Held by the thread that computes one: the thread continues when its request is cancelled."""
        self.begun = asyncio.Event()
        """Set once the nodes are known and the running containers adopted: what watches the outside waits for it."""
        self.stopping = asyncio.Event()

    @property
    def site(self) -> Site:
        """The facts from which a connecting process's user, rights and projects are derived."""
        state = self.host.machine.state
        return Site(self.system, state.cluster, self.admin_group, catalogued_projects(state))
