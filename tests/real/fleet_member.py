"""A fleet of one real cluster behind a link that is cut: what the tests of Slurm and Kubernetes share."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from cockpit.backends.fleet.link import BackendLink
from cockpit.engine import decide
from cockpit.engine.access import Actor
from cockpit.engine.fleet.reports import fleet_rules
from cockpit.engine.machine import Machine
from cockpit.engine.state import ClusterState
from cockpit.engine.submission.submit import submit
from cockpit.model import events
from cockpit.model.fleet import Member
from cockpit.runtime.clock import SystemClock
from cockpit.runtime.fleet.members import Members
from cockpit.runtime.host import Host, Settings
from cockpit.runtime.memory_journal import MemoryJournal
from tests.builders import ANN
from tests.runtime.remote_world import BY_TEST, FLEET_ID, CutLink

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from cockpit.backends.base import LiveBackend
    from cockpit.model.ids import JobId
    from cockpit.model.job import Job
    from cockpit.model.spec import JobSpec

PATIENCE_SECONDS = 240
"""On a busy machine a real cluster may take long for each step."""


class RealFleet:
    """The fleet's own engine, whose only member is a real cluster."""

    def __init__(self, name: str, backend: LiveBackend) -> None:
        async def opened() -> LiveBackend:
            return backend

        self.name, self.link, clock = name, CutLink(BackendLink(opened)), SystemClock()
        self.members = Members()
        self.members.join_over_link(name, self.link, FLEET_ID, clock)
        settings = Settings(check_invariants=True)
        self.host = Host(Machine(ClusterState()), MemoryJournal(), lambda _: self.members, clock, settings)

    async def begin(self) -> None:
        rules = fleet_rules([Member(name=self.name, over_link=True)], ())
        await self.host.act(lambda _machine, _now: [events.ClusterConfigured(rules)], BY_TEST)
        await self.host.start()
        await self.members.begin(self.host)
        await self.until(lambda: self.host.machine.state.nodes)

    async def submit(self, spec: JobSpec) -> JobId:
        known = set(self.host.machine.state.jobs)
        actor = Actor(ANN, admin=True)
        refused = await self.host.act(lambda machine, now: submit(machine, [spec], actor, now=now), BY_TEST)
        (job,) = self.host.machine.state.jobs.keys() - known or {refused}
        return job

    async def cancel(self, job: JobId) -> None:
        await self.host.act(lambda _machine, now: decide.cancel(self.job(job), now, 0), BY_TEST)

    def job(self, job: JobId) -> Job:
        return self.host.machine.state.jobs[job]

    def cut_first(self, operation: str, loss: str) -> None:
        """The next call of this operation is lost."""
        cut: list[int] = []

        def rule(number: int, name: str) -> str:
            if name != operation or cut:
                return ""
            cut.append(number)
            return loss

        self.link.cut = rule

    async def until(self, holds: Callable[[], object]) -> None:
        """Until this holds, looking again whenever a round has ended."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not holds():  # noqa: ASYNC110 - a real cluster tells nothing of itself
                await asyncio.sleep(0.05)


@asynccontextmanager
async def fleet_of(name: str, backend: LiveBackend) -> AsyncIterator[RealFleet]:
    fleet = RealFleet(name, backend)
    await fleet.begin()
    try:
        yield fleet
    finally:
        await fleet.host.stop()
        await fleet.members.stop()
