"""The cluster as the embedded core sees it: what `explain`, `predict` and what is only looked at are answered from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cockpit.backends.inprocess import InProcessBackend
from cockpit.backends.slurm.mapping.cluster import Everything, state
from cockpit.model.job import Job
from cockpit.runtime.offline_engine import look, offline_engine, read_only_actor

if TYPE_CHECKING:
    from cockpit.runtime.clock import Timekeeper
    from cockpit.runtime.engine import Engine
    from cockpit.sched.snapshot import Snapshot


class PlanningMirror:
    """Built anew where something was read anew."""

    def __init__(self, clock: Timekeeper, name: str, asker: str) -> None:
        """`asker`: whose job a spec would be that is foretold."""
        self._clock, self.name, self._actor = clock, name, read_only_actor(asker or "root")
        self._of: tuple[object, ...] = ()
        self._engine: Engine | None = None
        self._looked = False

    async def look_at(self, everything: Everything) -> InProcessBackend:
        """The cluster's nodes, rules, accounts and jobs, unjudged."""
        return InProcessBackend(await self._fresh(everything), self._actor)

    async def judge(self, everything: Everything) -> InProcessBackend:
        """The same once the core has planned the queue, in the order of the cluster's own priorities."""
        engine = await self._fresh(everything)
        if not self._looked:
            await look(engine)
            self._looked = True
        return InProcessBackend(engine, self._actor)

    async def snapshot(self, everything: Everything) -> Snapshot:
        """What the core sees of it."""
        return (await self._fresh(everything)).host.machine.peek(everything.at)

    async def recounted(self, everything: Everything) -> InProcessBackend:
        """With priorities as the core counts them, to try other weights."""
        engine = await offline_engine(state(everything, as_ranked=False), (), self._clock, self.name)
        return InProcessBackend(engine, self._actor)

    async def _fresh(self, everything: Everything) -> Engine:
        made_of = everything[1:]
        if self._engine is None or any(one is not other for one, other in zip(made_of, self._of, strict=True)):
            self._engine = await offline_engine(state(everything, as_ranked=True), (), self._clock, self.name)
            self._of, self._looked = made_of, False
        return self._engine


async def with_ended(everything: Everything, ended: Sequence[Job], clock: Timekeeper, name: str) -> InProcessBackend:
    """A cluster that also remembers these."""
    engine = await offline_engine(state(everything, as_ranked=True), ended, clock, name)
    return InProcessBackend(engine, read_only_actor("cockpit"))
