"""An engine for a cluster that another scheduler runs, or for a saved snapshot of one.

It plans, explains and predicts with the embedded scheduler, and starts nothing.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from cockpit.engine.access import Actor
from cockpit.errors import RequestRefused
from cockpit.model.ids import UserName, job_words
from cockpit.model.job import Submitter
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.runtime.engine import Engine
from cockpit.runtime.host import Host, Settings
from cockpit.runtime.memory_journal import MemoryJournal
from cockpit.runtime.pass_runner import run_pass

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn

    from cockpit.engine.effects import Effect, KeepContainer, StartReplica
    from cockpit.engine.machine import Machine
    from cockpit.model.ids import ReplicaId
    from cockpit.model.job import Job
    from cockpit.model.staging import StagedCopy
    from cockpit.runtime.clock import Timekeeper
    from cockpit.runtime.containers.entering import EnteredShell, Terminal

NOWHERE = Path("/nonexistent")
SETTINGS = Settings()


class NoContainers:
    """A `runtime.host.ContainerRuntime` that runs nothing."""

    async def start(self, effect: Effect) -> None:
        """Do nothing. It is never called, since the plan is not carried out."""

    stage = check = signal = freeze = thaw = write_workers_file = keep = remove = start

    async def adopt(self, expected: Sequence[StartReplica], kept: Sequence[KeepContainer]) -> None:
        """Do nothing: the other scheduler owns the running jobs."""

    async def enter(
        self, replica: ReplicaId, command: Sequence[str], *, terminal: Terminal | None, label: str
    ) -> EnteredShell:
        del command, terminal, label
        refuse(f"Job {job_words(replica.job)} cannot be entered from here.")

    async def used(self, replica: ReplicaId) -> None:
        """Return None: usage is not measured."""

    async def copies(self) -> list[StagedCopy]:
        return []

    async def remove_copy(self, key: str) -> bool:
        del key
        return False

    def staging(self, replica: ReplicaId) -> None:
        """Return None: nothing is copied."""


def refuse(message: str) -> NoReturn:
    """Raise the refusal of an operation that this kind of cluster does not support."""
    raise RequestRefused(Refusal(RefusalKind.UNAVAILABLE, message))


async def offline_engine(machine: Machine, ended: Sequence[Job], clock: Timekeeper, cluster: str) -> Engine:
    """Make an engine over the machine's state. `ended`: the jobs that only accounting has, oldest first."""
    journal = MemoryJournal(ended_kept=max(1, len(ended)))
    await journal.record_ended(ended)
    host = Host(machine, journal, lambda _: NoContainers(), clock, SETTINGS)
    return Engine(host=host, state_folder=NOWHERE, socket=NOWHERE, system=True, cluster=cluster)


async def look(engine: Engine) -> None:
    """Run one scheduling pass over the current state; reasons, queue positions and predictions come from its plan."""
    host = engine.host
    policy = replace(host.settings.policy, backfill=host.machine.state.cluster.backfill)
    host.plan = await run_pass(host.machine.snapshot(host.clock.now()), host.plan, policy)


def read_only_actor(name: str) -> Actor:
    """Return an actor of this name who may see everything that the cluster has reported."""
    return Actor(Submitter(UserName(name), 0, 0, (), ""), admin=True)
