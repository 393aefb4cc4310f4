"""A copy of the cluster in the embedded engine, which answers `explain`, `predict`, nodes and queues.

The engine plans the copy and starts nothing. It is kept until an object of which it is made has changed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.backends.inprocess import InProcessBackend
from cockpit.backends.kubernetes.mapping.planning import ClusterLists, state
from cockpit.runtime.offline_engine import look, offline_engine, read_only_actor

if TYPE_CHECKING:
    from cockpit.runtime.clock import Timekeeper
    from cockpit.runtime.engine import Engine


class PlanningMirror:
    """Keeps the copy of the cluster and makes it anew when something has changed."""

    def __init__(self, clock: Timekeeper, name: str, user: str) -> None:
        """`user`: the user as whose job a spec is predicted."""
        self._clock, self._name, self._actor = clock, name, read_only_actor(user or "-")
        self._version: object = None
        self._engine: Engine | None = None
        self._planned = False

    async def look_at(self, lists: ClusterLists, version: object) -> InProcessBackend:
        """Return a backend with the cluster's nodes and jobs, without a plan. `version`: equal for equal lists."""
        return InProcessBackend(await self._fresh(lists, version), self._actor)

    async def judge(self, lists: ClusterLists, version: object) -> InProcessBackend:
        """Return a backend whose engine has planned the queue."""
        engine = await self._fresh(lists, version)
        if not self._planned:
            await look(engine)
            self._planned = True
        return InProcessBackend(engine, self._actor)

    async def _fresh(self, lists: ClusterLists, version: object) -> Engine:
        if self._engine is None or version != self._version:
            self._engine = await offline_engine(state(lists), (), self._clock, self._name)
            self._version, self._planned = version, False
        return self._engine
