"""A copy, in the embedded engine, of a cluster that another scheduler runs: it answers `explain`, `predict`, nodes,
rules and queues.

The engine plans the copy and starts nothing. Building it costs time in proportion to the number of jobs:

1. It is kept until something that it is made of has changed.
2. A large one is built in a thread, so that a screen is drawn meanwhile.
3. A large one is kept for a while although something has changed: on a busy cluster something always has, and building
   one copy after the other would keep a processor busy.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from cockpit.backends.inprocess import InProcessBackend
from cockpit.engine.access import may_see
from cockpit.engine.machine import Machine
from cockpit.engine.views.rows import node_rows
from cockpit.runtime.offline_engine import look, offline_engine, read_only_actor
from cockpit.runtime.pass_runner import yield_to_event_loop

if TYPE_CHECKING:
    from cockpit.engine.state import ClusterState
    from cockpit.model.ids import Millis
    from cockpit.model.view import NodeRow
    from cockpit.runtime.clock import Timekeeper
    from cockpit.runtime.engine import Engine
    from cockpit.sched.snapshot import Snapshot


LARGE = 1_000
"""Number of jobs from which on a copy is built in a thread; that of a smaller one takes less than a frame."""
REST = 5
"""How many times as long as building a large copy took it is kept at least."""


class Lists(Protocol):
    """Everything that was read of a cluster. It must not change while a copy is built of it in a thread."""

    @property
    def at(self) -> Millis:
        """When it was put together."""
        ...

    @property
    def size(self) -> int:
        """The number of jobs."""
        ...


L = TypeVar("L", bound=Lists)
T = TypeVar("T")


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
        self._nodes: tuple[Engine, list[NodeRow]] | None = None
        """The rows of the nodes, and the engine of which they are."""
        self._building = asyncio.Lock()
        self._kept_until = 0.0
        """Until when the copy is kept although something has changed, as the event loop counts time."""

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

    async def nodes(self, lists: L) -> list[NodeRow]:
        """Return the rows of all nodes, which are made once for each copy."""
        engine = await self._fresh(lists)
        if self._nodes is None or self._nodes[0] is not engine:
            machine, actor = engine.host.machine, self._actor
            rows = await _in_thread(lists, lambda: node_rows(machine, lambda job: may_see(actor, job), lists.at))
            self._nodes = engine, rows
        return self._nodes[1]

    async def snapshot(self, lists: L) -> Snapshot:
        """Return the scheduler's snapshot of the cluster."""
        return (await self._fresh(lists)).host.machine.peek(lists.at)

    async def _fresh(self, lists: L) -> Engine:
        # One at a time: those who come meanwhile get the same copy.
        async with self._building:
            now = asyncio.get_running_loop().time
            if self._made is None or (now() >= self._kept_until and not self._is_same(self._made[0], lists)):
                began = now()
                machine = await _in_thread(lists, lambda: Machine(self._state(lists)))
                self._made = lists, await offline_engine(machine, (), self._clock, self.name)
                self._planned = False
                self._kept_until = now() + kept_seconds(lists, now() - began)
            return self._made[1]


def kept_seconds(lists: Lists, took: float) -> float:
    """Return how long what was computed of the lists is kept although something has changed. `took`: the seconds that
    it took."""
    return REST * took if lists.size >= LARGE else 0.0


async def _in_thread(lists: Lists, work: Callable[[], T]) -> T:
    """Return the result of the work, which is done in a thread where the lists are long."""
    if lists.size < LARGE:
        return work()
    with yield_to_event_loop():
        return await asyncio.to_thread(work)
