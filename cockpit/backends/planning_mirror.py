"""A copy, in the embedded engine, of a cluster that another scheduler runs: it answers `explain`, `predict`, nodes,
rules and queues.

The engine plans the copy and starts nothing. Building it costs time in proportion to the number of jobs, so it is kept
until something that it is made of has changed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from cockpit.backends.inprocess import InProcessBackend
from cockpit.runtime.offline_engine import look, offline_engine, read_only_actor

if TYPE_CHECKING:
    from cockpit.engine.state import ClusterState
    from cockpit.model.ids import Millis
    from cockpit.runtime.clock import Timekeeper
    from cockpit.runtime.engine import Engine
    from cockpit.sched.snapshot import Snapshot


class Lists(Protocol):
    """Everything that was read of a cluster."""

    @property
    def at(self) -> Millis:
        """When it was put together."""
        ...


L = TypeVar("L", bound=Lists)


class PlanningMirror(Generic[L]):
    """Keeps the copy of the cluster and makes it anew when its lists have changed."""

    def __init__(
        self,
        clock: Timekeeper,
        name: str,
        user: str,
        state: Callable[[L], ClusterState],
        is_same: Callable[[L, L], bool],
    ) -> None:
        """`user`: the user as whose job a spec is predicted. `state`: returns the scheduler's state of the lists;
        `is_same`: whether two lists differ in their time at most."""
        self._clock, self.name, self._actor = clock, name, read_only_actor(user or "root")
        self._state, self._is_same = state, is_same
        self._made: tuple[L, Engine] | None = None
        """The engine, and the lists that its state is made of."""
        self._planned = False
        """Whether the engine has planned its queue."""

    async def look_at(self, lists: L) -> InProcessBackend:
        """Return a backend with the cluster's nodes, rules, accounts and jobs, without a plan of the queue."""
        return InProcessBackend(await self._fresh(lists), self._actor)

    async def judge(self, lists: L) -> InProcessBackend:
        """Return a backend whose engine has planned the queue."""
        engine = await self._fresh(lists)
        if not self._planned:
            await look(engine)
            self._planned = True
        return InProcessBackend(engine, self._actor)

    async def snapshot(self, lists: L) -> Snapshot:
        """Return the scheduler's snapshot of the cluster."""
        return (await self._fresh(lists)).host.machine.peek(lists.at)

    async def _fresh(self, lists: L) -> Engine:
        if self._made is None or not self._is_same(self._made[0], lists):
            self._made = lists, await offline_engine(self._state(lists), (), self._clock, self.name)
            self._planned = False
        return self._made[1]
