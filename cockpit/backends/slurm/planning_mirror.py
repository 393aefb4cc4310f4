"""A copy of the Slurm cluster in the embedded engine, which answers `explain`, `predict`, nodes, rules and accounts.

The engine plans the copy and starts nothing. Building it costs time in proportion to the number of jobs, so it is kept
until one of the lists that it is made of has changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cockpit.backends.inprocess import InProcessBackend
from cockpit.backends.slurm.mapping.cluster import ClusterLists, state
from cockpit.model.job import Job
from cockpit.runtime.offline_engine import look, offline_engine, read_only_actor

if TYPE_CHECKING:
    from cockpit.runtime.clock import Timekeeper
    from cockpit.runtime.engine import Engine
    from cockpit.sched.snapshot import Snapshot


class PlanningMirror:
    """Keeps the copy of the cluster and rebuilds it when a list was read again."""

    def __init__(self, clock: Timekeeper, name: str, user: str) -> None:
        """`user`: the user as whose job a spec is predicted."""
        self._clock, self.name, self._actor = clock, name, read_only_actor(user or "root")
        self._source: tuple[object, ...] = ()
        """The lists that the engine's state is made of."""
        self._engine: Engine | None = None
        self._planned = False
        """Whether the engine has planned its queue."""

    async def look_at(self, everything: ClusterLists) -> InProcessBackend:
        """Return a backend with the cluster's nodes, rules, accounts and jobs, without a plan of the queue."""
        return InProcessBackend(await self._fresh(everything), self._actor)

    async def judge(self, everything: ClusterLists) -> InProcessBackend:
        """Return a backend whose engine has planned the queue, in the order of Slurm's own priorities."""
        engine = await self._fresh(everything)
        if not self._planned:
            await look(engine)
            self._planned = True
        return InProcessBackend(engine, self._actor)

    async def snapshot(self, everything: ClusterLists) -> Snapshot:
        """Return the scheduler's snapshot of the cluster."""
        return (await self._fresh(everything)).host.machine.peek(everything.at)

    async def recounted(self, everything: ClusterLists) -> InProcessBackend:
        """Return a backend that computes priorities itself instead of using Slurm's, to try other weights."""
        engine = await offline_engine(state(everything, as_ranked=False), (), self._clock, self.name)
        return InProcessBackend(engine, self._actor)

    async def _fresh(self, everything: ClusterLists) -> Engine:
        source = everything[1:]  # without `at`, which is new each time
        # Identity suffices: `Reading` returns the same object as long as a command prints the same.
        if self._engine is None or any(one is not other for one, other in zip(source, self._source, strict=True)):
            self._engine = await offline_engine(state(everything, as_ranked=True), (), self._clock, self.name)
            self._source, self._planned = source, False
        return self._engine


async def with_ended(everything: ClusterLists, ended: Sequence[Job], clock: Timekeeper, name: str) -> InProcessBackend:
    """Return a backend of the cluster whose history also has these ended jobs."""
    engine = await offline_engine(state(everything, as_ranked=True), ended, clock, name)
    return InProcessBackend(engine, read_only_actor("cockpit"))
