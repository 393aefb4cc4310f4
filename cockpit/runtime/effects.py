"""Carry out effects: one replica's effects in their order, those of different replicas concurrently."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

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
from cockpit.model import events

if TYPE_CHECKING:
    from cockpit.engine.ports import Executor
    from cockpit.model.ids import ReplicaId
    from cockpit.runtime.tasks import Tasks


ReplicaEffect = (
    StageReplica
    | StartReplica
    | CheckNodes
    | SignalReplica
    | FreezeReplica
    | ThawReplica
    | WriteWorkersFile
    | KeepContainer
    | RemoveContainer
)

_QUICK = (SignalReplica, FreezeReplica, ThawReplica, WriteWorkersFile)
"""Effects that never wait for a free slot, since starts may occupy all slots for minutes (prologs)."""
AT_ONCE = 16
"""Most effects carried out at the same time; more would only make every start slower."""


class EffectRunner:
    """Hands effects to the executor, in order for each replica."""

    def __init__(self, executor: Executor, tasks: Tasks) -> None:
        self._executor = executor
        self._tasks = tasks
        self._last: dict[ReplicaId, asyncio.Task[Any]] = {}
        self._slots = asyncio.Semaphore(AT_ONCE)

    def run(self, effect: ReplicaEffect) -> None:
        """Start the effect, after the earlier ones of the same replica."""
        before = self._last.get(effect.replica)
        task = self._tasks.start(self._carry_out_after(before, effect), f"{type(effect).__name__} {effect.replica}")
        self._last[effect.replica] = task
        task.add_done_callback(lambda done: self._forget(effect.replica, done))

    async def settled(self, replica: ReplicaId, seconds: float) -> None:
        """Wait until the replica's pending effects have been carried out, at most `seconds`."""
        if (last := self._last.get(replica)) is not None:
            await asyncio.wait([last], timeout=seconds)

    async def _carry_out_after(self, before: asyncio.Task[Any] | None, effect: ReplicaEffect) -> None:
        # A chain by replica: each effect waits for the task of the one before it.
        if before is not None:
            await asyncio.wait([before])  # not `await before`: an error of the earlier effect must not stop this one
        if isinstance(effect, _QUICK):
            await self._carry_out(effect)
            return
        # Waiting for the effect before comes first, so that no slot is taken by a task that only waits.
        async with self._slots:
            await self._carry_out(effect)

    async def _carry_out(self, effect: ReplicaEffect) -> None:
        match effect:
            case StageReplica():
                await self._executor.stage(effect)
            case StartReplica():
                await self._executor.start(effect)
            case CheckNodes():
                await self._executor.check(effect)
            case SignalReplica():
                await self._executor.signal(effect)
            case FreezeReplica():
                await self._executor.freeze(effect)
            case ThawReplica():
                await self._executor.thaw(effect)
            case WriteWorkersFile():
                await self._executor.write_workers_file(effect)
            case KeepContainer():
                await self._executor.keep(effect)
            case RemoveContainer():
                await self._executor.remove(effect)

    def _forget(self, replica: ReplicaId, done: asyncio.Task[Any]) -> None:
        # By now a later effect may be the last one.
        if self._last.get(replica) is done:
            del self._last[replica]


MOVES_CONTAINERS = (
    events.JobPlaced,
    events.PrecheckPassed,
    events.ReplicaStaged,
    events.PrologFailed,
    events.JobEnded,
    events.JobRequeued,
    events.BindingGivenUp,
    events.RemotePartChanged,
    events.HoldEnded,
    events.WorkersAdded,
    events.WorkersLeft,
    events.WorkerReplaced,
)
"""Events that must be on the disk before a container is made or removed. Otherwise a power cut could lose them, and the
container would be made and run a second time."""
RECONSIDERED_AFTER = (
    events.JobSubmitted,
    events.JobHeld,
    events.JobReleased,
    events.JobEdited,
    events.DependencyMet,
    events.AgeBegan,
    events.PrioritySet,
    events.TimeLimitSet,
    events.JobEnded,
    events.EndingBegan,
    events.JobRequeued,
    events.WorkersLeft,
    events.NodeUnblocked,
    events.BindingGivenUp,
    events.OthersHeld,
    events.JobSuspended,
    events.JobResumed,
    events.HoldExtended,
    events.HoldEnded,
    events.PrologFailed,
    events.PrecheckFailed,
    events.NodeExcluded,
    events.NodeReadmitted,
    events.NodesChanged,
    events.NodeDrained,
    events.NodeResumed,
    events.PricesChanged,
    events.ClusterConfigured,
    events.AccountsChanged,
    events.ReservationMade,
    events.ReservationEnded,
    events.QuotaApplied,
    events.QuotaRemoved,
    events.UsageDecayed,
)
"""Events after which a scheduling pass runs: they add to the queue, change queued jobs or their order, or free
resources. No other event can let a job start, since each pass places every job that fits."""
