"""Watches the memory of nodes that have best-effort workers: what these use belongs to whoever asked for it.

A node runs short when its replicas together work with nearly all of its memory. What they have merely read, and the
kernel can drop, does not count, as for the kubelet. Nothing runs while no best-effort worker does.
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
FULL_PERCENT: Final = 95
"""Of a node's memory."""


class Tenant(NamedTuple):
    attempt: Attempt
    node: NodeName
    best_effort: bool


class Pressure:
    """Of one executor. `memory_of`: MiB of a node; `every`: seconds between two looks."""

    def __init__(
        self, tasks: Tasks, observer: Observer, memory_of: Callable[[NodeName], int], every: float = LOOK_SECONDS
    ) -> None:
        self._tasks, self._observer, self._memory_of, self._every = tasks, observer, memory_of, every
        self._tenants: dict[ReplicaId, Tenant] = {}
        self._watching: asyncio.Task[None] | None = None

    def follow(self, effect: StartReplica, attempt: Attempt) -> None:
        """Its container is being made, or was found again."""
        spec = effect.spec
        best_effort = spec.is_best_effort and effect.replica.rank >= spec.first_worker
        self._tenants[effect.replica] = Tenant(attempt, effect.allocation.node, best_effort)
        if best_effort and self._watching is None:
            self._watching = self._tasks.start(self._watch(), "memory of nodes")

    def leave(self, replica: ReplicaId) -> None:
        """It has ended."""
        self._tenants.pop(replica, None)

    def close(self) -> None:
        if self._watching is not None:
            self._watching.cancel()

    async def _watch(self) -> None:
        while any(each.best_effort for each in self._tenants.values()):
            await asyncio.sleep(self._every)
            for node in await asyncio.to_thread(self.short, list(self._tenants.values())):
                self._observer.node_pressed(node)
        self._watching = None

    def short(self, tenants: list[Tenant]) -> list[NodeName]:
        """Of the nodes with best-effort workers those that run short. Blocks."""
        shared = {each.node for each in tenants if each.best_effort}
        used = dict.fromkeys(shared, 0)
        for each in tenants:
            if each.node in shared:
                used[each.node] += working_mib(each.attempt)
        return [node for node in sorted(shared) if 100 * used[node] >= FULL_PERCENT * self._memory_of(node)]
