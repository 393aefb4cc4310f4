"""An engine over a cluster that somebody else schedules, or that is only remembered: it plans, explains and foretells
by the embedded core, and starts nothing.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from cockpit.engine.access import Actor
from cockpit.engine.machine import Machine
from cockpit.errors import RequestRefused
from cockpit.model.ids import UserName, job_words
from cockpit.model.job import Submitter
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.runtime.engine import Engine
from cockpit.runtime.host import Host, Settings
from cockpit.runtime.memory_journal import MemoryJournal
from cockpit.runtime.pass_runner import planned

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn

    from cockpit.engine.effects import Effect, KeepContainer, StartReplica
    from cockpit.engine.state import ClusterState
    from cockpit.model.ids import ReplicaId
    from cockpit.model.job import Job
    from cockpit.model.staging import StagedCopy
    from cockpit.runtime.clock import Timekeeper
    from cockpit.runtime.containers.entering import EnteredShell, Terminal

NOWHERE = Path("/nonexistent")
SETTINGS = Settings()


class NoContainers:
    """Implements `runtime.host.ContainerRuntime` where nothing is ever run."""

    async def start(self, effect: Effect) -> None:
        """Never asked for: nobody acts on the plan."""

    stage = check = signal = freeze = thaw = tell = keep = remove = start

    async def adopt(self, expected: Sequence[StartReplica], kept: Sequence[KeepContainer]) -> None:
        """What runs there is not ours."""

    async def enter(
        self, replica: ReplicaId, command: Sequence[str], *, terminal: Terminal | None, label: str
    ) -> EnteredShell:
        del command, terminal, label
        refuse(f"Job {job_words(replica.job)} cannot be entered from here.")

    async def used(self, replica: ReplicaId) -> None:
        """Nobody measures here."""

    async def copies(self) -> list[StagedCopy]:
        return []

    async def remove_copy(self, key: str) -> bool:
        del key
        return False

    def staging(self, replica: ReplicaId) -> None:
        """Nothing is copied here."""


def refuse(message: str) -> NoReturn:
    """What a cluster says that cannot do it."""
    raise RequestRefused(Refusal(RefusalKind.UNAVAILABLE, message))


async def offline_engine(state: ClusterState, ended: Sequence[Job], clock: Timekeeper, cluster: str) -> Engine:
    """`ended`: jobs that accounting alone remembers, the oldest first."""
    journal = MemoryJournal(ended_kept=max(1, len(ended)))
    await journal.record_ended(ended)
    host = Host(Machine(state), journal, lambda _: NoContainers(), clock, SETTINGS)
    return Engine(host=host, state_folder=NOWHERE, socket=NOWHERE, system=True, cluster=cluster)


async def look(engine: Engine) -> None:
    """Judge the queue as the cluster stands: where reasons, places and forecasts come from."""
    host = engine.host
    policy = replace(host.settings.policy, backfill=host.machine.state.cluster.backfill)
    host.plan = await planned(host.machine.snapshot(host.clock.now()), host.plan, policy)


def read_only_actor(name: str) -> Actor:
    """Sees everything that the cluster has told."""
    return Actor(Submitter(UserName(name), 0, 0, (), ""), admin=True)
