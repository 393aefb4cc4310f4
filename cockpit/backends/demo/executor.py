"""Simulates the containers of the demo: replicas start and end at virtual times by their scripts, without processes."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from cockpit.backends.demo.loads import use_of
from cockpit.engine.effects import SignalKind
from cockpit.errors import RequestRefused
from cockpit.model.attempt import ExitStatus
from cockpit.model.ids import Millis, ReplicaId
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.runtime.tasks import Tasks

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping, Sequence

    from cockpit.backends.demo.sandbox import Sandboxes
    from cockpit.backends.demo.scripts import Script, Scripts
    from cockpit.engine.effects import (
        CheckNodes,
        FreezeReplica,
        KeepContainer,
        RemoveContainer,
        SignalReplica,
        StageReplica,
        StartReplica,
        ThawReplica,
        WriteWorkersFile,
    )
    from cockpit.engine.ports import Observer
    from cockpit.model.ids import NodeName
    from cockpit.model.jobdetail import ReplicaUse
    from cockpit.model.node import Node
    from cockpit.model.staging import StagedCopy
    from cockpit.runtime.clock import Timekeeper
    from cockpit.runtime.containers.entering import EnteredShell, Terminal

LIMITS = "none, this is a demo"
TERMINATED, KILLED = ExitStatus(signal=15), ExitStatus(signal=9)


class ScriptedExecutor:
    """Implements `runtime.host.ContainerRuntime` for the demo. `rooms` makes the sandboxes in which shells run."""

    def __init__(
        self, observer: Observer, clock: Timekeeper, scripts: Scripts, rooms: Sandboxes, nodes: Mapping[NodeName, Node]
    ) -> None:
        self._observer = observer
        self._nodes = nodes
        self._clock = clock
        self._scripts = scripts
        self._sandboxes = rooms
        self._tasks = Tasks()
        self._containers: dict[ReplicaId, StartReplica] = {}
        """Simulated containers: running and held ones."""
        self._ends_at: dict[ReplicaId, Millis | None] = {}
        """End of each running replica; None: it runs until it gets a signal."""
        self._remaining_ms: dict[ReplicaId, int | None] = {}
        """Remaining run time of suspended replicas, in milliseconds."""
        self._began_at: dict[ReplicaId, Millis] = {}
        """Start of each running replica."""
        self._running: dict[ReplicaId, tuple[Script, asyncio.Task[None]]] = {}

    async def stage(self, effect: StageReplica) -> None:
        """Report the replica as staged at once: there is nothing to copy."""
        self._observer.replica_staged(effect.replica)

    def staging(self, replica: ReplicaId) -> None:
        """Do nothing: no copy is ever under way."""

    async def copies(self) -> list[StagedCopy]:
        return []

    async def remove_copy(self, key: str) -> bool:
        """Return False: there are no copies."""
        del key
        return False

    async def start(self, effect: StartReplica) -> None:
        if effect.replica not in self._containers:
            self._containers[effect.replica] = effect
            script = self._scripts.of(effect.spec)
            self._follow(effect.replica, script, self._run(effect.replica, script))

    async def signal(self, effect: SignalReplica) -> None:
        if effect.replica not in self._running:
            return
        script, task = self._running[effect.replica]
        if effect.force is SignalKind.KILL:
            task.cancel()
            self._end(effect.replica, KILLED)
        # An early signal, and SIGTERM to a script that ignores it, change nothing: the engine has to kill such a
        # replica after its grace period.
        elif effect.force is SignalKind.TERM and script.winds_down_ms is not None:
            task.cancel()
            self._follow(effect.replica, script, self._end_after(effect.replica, script.winds_down_ms))

    async def check(self, effect: CheckNodes) -> None:
        """Report that the nodes are healthy."""
        self._observer.precheck_passed(effect.replica, "")

    async def freeze(self, effect: FreezeReplica) -> None:
        """Suspend the replica: note the rest of its run time and stop its timer."""
        if effect.replica in self._running and effect.replica not in self._remaining_ms:
            _, task = self._running[effect.replica]
            ends_at = self._ends_at.get(effect.replica)
            # A replica that is frozen before its command runs has no end yet, and stays until a signal ends it.
            self._remaining_ms[effect.replica] = None if ends_at is None else max(0, ends_at - self._clock.now())
            task.cancel()

    async def thaw(self, effect: ThawReplica) -> None:
        if effect.replica in self._remaining_ms:
            script, _ = self._running[effect.replica]
            self._follow(
                effect.replica, script, self._run_to_end(effect.replica, script, self._remaining_ms.pop(effect.replica))
            )

    async def write_workers_file(self, effect: WriteWorkersFile) -> None:
        """Do nothing: a simulated worker does not read the list of workers."""

    async def keep(self, effect: KeepContainer) -> None:
        """Do nothing: the sandbox of a held container is made when a user opens a shell."""

    async def remove(self, effect: RemoveContainer) -> None:
        if self._containers.pop(effect.replica, None) is not None:
            self._sandboxes.remove(effect.replica)

    async def adopt(self, expected: Sequence[StartReplica], kept: Sequence[KeepContainer]) -> None:
        """Start the expected replicas again; nothing outlives the process of a demo."""
        del kept
        for effect in expected:
            await self.start(effect)

    async def enter(
        self, replica: ReplicaId, command: Sequence[str], *, terminal: Terminal | None, label: str
    ) -> EnteredShell:
        if replica not in self._containers:
            raise RequestRefused(Refusal(RefusalKind.CONFLICT, f"{replica} has no container to enter"))
        # A container without a running replica exists only in a debug hold.
        kept = replica not in self._running
        return self._sandboxes.enter(self._containers[replica], command, terminal=terminal, label=label, kept=kept)

    async def used(self, replica: ReplicaId) -> ReplicaUse | None:
        """Return simulated figures of the replica's use."""
        return self._use(replica)

    async def close(self) -> None:
        """Stop all timers and end every shell."""
        await self._tasks.cancel_all()
        self._sandboxes.close()

    def _follow(self, replica: ReplicaId, script: Script, timer: Coroutine[Any, Any, None]) -> None:
        self._running[replica] = (script, self._tasks.start(timer, str(replica)))

    async def _run(self, replica: ReplicaId, script: Script) -> None:
        await self._pass(script.begins_ms)
        self._began_at[replica] = self._clock.now()
        self._observer.replica_started(replica, LIMITS)
        await self._run_to_end(replica, script, self._limit_to_first_worker(replica, script.runs_of(replica.rank)))

    def _limit_to_first_worker(self, replica: ReplicaId, runs_ms: int | None) -> int | None:
        """Limit the run time of a worker that joins a running elastic job: it ends with the job's first worker."""
        eldest = self._ends_at.get(ReplicaId(replica.job, replica.attempt, 0))
        if eldest is None or self._containers[replica].spec.elastic is None or runs_ms is None:
            return runs_ms
        return min(runs_ms, max(0, eldest - self._clock.now()))

    async def _run_to_end(self, replica: ReplicaId, script: Script, runs_ms: int | None) -> None:
        self._ends_at[replica] = None if runs_ms is None else Millis(self._clock.now() + runs_ms)
        if runs_ms is None:
            await asyncio.get_running_loop().create_future()
        else:
            await self._pass(runs_ms)
            self._end(replica, script.exit)

    async def _end_after(self, replica: ReplicaId, milliseconds: int) -> None:
        await self._pass(milliseconds)
        self._end(replica, TERMINATED)

    def _end(self, replica: ReplicaId, status: ExitStatus) -> None:
        # First, since the figures come from what is removed next.
        use = self._use(replica)
        del self._running[replica]
        self._ends_at.pop(replica, None)
        self._remaining_ms.pop(replica, None)
        self._began_at.pop(replica, None)
        self._observer.replica_ended(replica, status, None if use is None else use.total)

    def _use(self, replica: ReplicaId) -> ReplicaUse | None:
        began, start = self._began_at.get(replica), self._containers.get(replica)
        if began is None or start is None:
            return None
        return use_of(start, self._nodes.get(start.allocation.node), began, self._clock.now())

    async def _pass(self, milliseconds: int) -> None:
        await self._clock.wait_until(Millis(self._clock.now() + milliseconds))
