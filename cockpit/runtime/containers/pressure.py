"""Watch the memory of nodes with best-effort workers, which must give way when other jobs need their memory.

A node is short of memory when the working sets of its replicas together reach `FULL_PERCENT` of it. File cache that the
kernel can drop does not count, as with the kubelet. No task runs while there is no best-effort worker.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, NamedTuple

from cockpit.runtime.containers.measuring import working_mib

if TYPE_CHECKING:
    from collections.abc import Callable

    from cockpit.engine.effects import StartReplica
    from cockpit.engine.ports import Observer
    from cockpit.model.ids import NodeName, ReplicaId
    from cockpit.runtime.containers.shim.attempt import Attempt
    from cockpit.runtime.tasks import Tasks

LOOK_SECONDS: Final = 2.0
"""Interval between two looks at the memory of nodes."""
FULL_PERCENT: Final = 95
"""Percentage of a node's memory from which on it is short of memory."""


class RunningReplica(NamedTuple):
    """A replica, its node, and whether it is a best-effort worker."""

    attempt: Attempt
    node: NodeName
    best_effort: bool


class Pressure:
    """The memory watch of one executor. `memory_of` returns a node's MiB. `every`: seconds between two checks."""

    def __init__(
        self, tasks: Tasks, observer: Observer, memory_of: Callable[[NodeName], int], every: float = LOOK_SECONDS
    ) -> None:
        self._tasks, self._observer, self._memory_of, self._every = tasks, observer, memory_of, every
        self._replicas: dict[ReplicaId, RunningReplica] = {}
        self._watching: asyncio.Task[None] | None = None

    def follow(self, effect: StartReplica, attempt: Attempt) -> None:
        """Watch a replica whose container is being made or was adopted."""
        spec = effect.spec
        best_effort = spec.is_best_effort and effect.replica.rank >= spec.first_worker
        self._replicas[effect.replica] = RunningReplica(attempt, effect.allocation.node, best_effort)
        if best_effort and self._watching is None:
            self._watching = self._tasks.start(self._watch(), "memory of nodes")

    def leave(self, replica: ReplicaId) -> None:
        """Stop watching a replica, which has ended."""
        self._replicas.pop(replica, None)

    def close(self) -> None:
        if self._watching is not None:
            self._watching.cancel()

    async def _watch(self) -> None:
        while any(each.best_effort for each in self._replicas.values()):
            await asyncio.sleep(self._every)
            for node in await asyncio.to_thread(self.short, list(self._replicas.values())):
                self._observer.node_pressed(node)
        self._watching = None

    def short(self, replicas: list[RunningReplica]) -> list[NodeName]:
        """Return the nodes with best-effort workers that are short of memory. Blocks."""
        shared = {each.node for each in replicas if each.best_effort}
        used = dict.fromkeys(shared, 0)
        # All replicas of the node count, since a job that may keep its memory can fill it too.
        for each in replicas:
            if each.node in shared:
                used[each.node] += working_mib(each.attempt)
        return [node for node in sorted(shared) if 100 * used[node] >= FULL_PERCENT * self._memory_of(node)]
