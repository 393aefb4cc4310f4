"""Simulates the users of a fixture: they submit, cancel, hold and release jobs through the backend's operations."""

from __future__ import annotations

import contextlib
from itertools import count
from typing import TYPE_CHECKING, TypeVar

from cockpit.backends.demo.fixture import GIB, HOURS, User, WeightedSize
from cockpit.backends.demo.scripts import HOUR_MS
from cockpit.engine.access import Actor
from cockpit.errors import RequestRefused
from cockpit.model.ids import JobId, Millis, UserName
from cockpit.model.job import Submitter
from cockpit.model.mounts import Algorithm
from cockpit.model.resilience import Elastic, ReclaimSignal
from cockpit.model.spec import WHOLE_CARD, DebugHold, HoldCards, JobSpec, Mode, NodeSpec

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from random import Random

    from cockpit.backends.base import Backend
    from cockpit.backends.demo.fixture import Fixture, Template
    from cockpit.runtime.clock import Timekeeper
    from cockpit.runtime.tasks import Tasks

Chosen = TypeVar("Chosen", User, WeightedSize)

SATURDAY = 5
FIRST_GID = 3000
STOPS_WITHIN = (0.02, 0.6)
"""Time from submission until a user cancels a job, as shares of its time limit: from, to."""
RELEASES_WITHIN_HOURS = (0.5, 3.0)


def actor_of(fixture: Fixture, name: str, *, admin: bool = False) -> Actor:
    """Return a user of the fixture with the ids that the kernel would report."""
    user = next(each for each in fixture.users if each.name == name)
    groups = sorted({each.group for each in fixture.users})
    gid = FIRST_GID + groups.index(user.group)
    return Actor(Submitter(UserName(name), user.uid, gid, (gid,), f"/home/{name}"), admin=admin)


class SimulatedUsers:
    """The users' actions, drawn from one random generator.

    From `opening` on, the fixture's `person` is not simulated any more: that is the user in front of the screen.
    """

    def __init__(
        self,
        fixture: Fixture,
        chance: Random,
        *,
        opening: Millis,
        clock: Timekeeper,
        seats: dict[str, Backend],
        queued: Callable[[], int],
        tasks: Tasks,
    ) -> None:
        self._fixture = fixture
        self._templates = {template.name: template for template in fixture.templates}
        self._chance = chance
        self._opening = opening
        self._clock = clock
        self._seats = seats
        self._queued = queued
        self._tasks = tasks
        self._numbers = count(1)

    async def begin(self) -> None:
        """Fill the queue, and start to submit jobs."""
        for _ in range(self._fixture.arrivals.backlog):
            await self._submit()
        self._tasks.start(self._submit_jobs(), "the crowd")

    def rate(self, at: Millis) -> float:
        """Return the submissions per hour at this time of day and week, for an empty queue."""
        arrivals, opens = self._fixture.arrivals, self._fixture.opens_at
        hours = (at - self._opening) / HOUR_MS + opens.hour + opens.minute / 60
        weekday = (opens.weekday() + int(hours // HOURS)) % 7
        return (
            arrivals.per_hour * arrivals.by_hour[int(hours % HOURS)] * (arrivals.weekend if weekday >= SATURDAY else 1)
        )

    async def _submit_jobs(self) -> None:
        """Submit jobs as a Poisson process of varying rate, by thinning (Lewis and Shedler 1979).

        Arrivals are drawn at the highest rate, and each is kept with the probability of the present rate over it.
        """
        highest = self._fixture.arrivals.per_hour * max(self._fixture.arrivals.by_hour)
        at = self._clock.now()
        while True:
            at = Millis(at + 1 + int(self._chance.expovariate(highest) * HOUR_MS))
            await self._clock.wait_until(at)
            # `highest` is the rate of the busiest hour, with an empty queue and without the factor of the weekend.
            if self._chance.random() * highest < self.rate(at) * self._eagerness():
                await self._submit()

    def _eagerness(self) -> float:
        """Return the factor, from 1 down to 0, by which users submit less when the queue is long."""
        return max(0.0, 1 - self._queued() / self._fixture.arrivals.patience)

    async def _submit(self) -> None:
        """Let a random user submit jobs of one of their templates, and plan what happens to the jobs later."""
        user = _choose(self._chance, self._fixture.users)
        (name,) = self._chance.choices(list(user.templates), list(user.templates.values()))
        template = self._templates[name]
        held = self._chance.random() < user.holds
        # All is drawn before the check below, so that the sequence of random numbers does not depend on who may act.
        specs = [self._spec(user, template, held=held) for _ in range(self._chance.randint(*template.at_once))]
        if not self._may_act(user):
            return
        seat = self._seats[user.name]
        try:
            jobs = await seat.submit(specs)
        except RequestRefused:  # the rules were changed meanwhile
            return
        for job, spec in zip(jobs, specs, strict=True):
            if held:
                self._later(self._chance.uniform(*RELEASES_WITHIN_HOURS), user, job, seat.release)
            if self._chance.random() < user.stops:
                hours = spec.time_limit_seconds / 3600 * self._chance.uniform(*STOPS_WITHIN)
                self._later(hours, user, job, seat.cancel)

    def _later(self, hours: float, user: User, job: JobId, act: Callable[[JobId], Awaitable[None]]) -> None:
        self._tasks.start(
            self._act_at(Millis(self._clock.now() + int(hours * HOUR_MS)), user, job, act), f"{user.name}"
        )

    async def _act_at(self, at: Millis, user: User, job: JobId, act: Callable[[JobId], Awaitable[None]]) -> None:
        await self._clock.wait_until(at)
        if self._may_act(user):
            with contextlib.suppress(RequestRefused):  # the job has ended or was released meanwhile
                await act(job)

    def _may_act(self, user: User) -> bool:
        return user.name != self._fixture.person or self._clock.now() < self._opening

    def _spec(self, user: User, template: Template, *, held: bool) -> JobSpec:
        """Return the spec of a job with a random size and time limit of the template."""
        size = _choose(self._chance, template.sizes)
        home = f"/home/{user.name}/{template.name}"
        return JobSpec(
            name=f"{template.name}-{next(self._numbers)}",
            command=template.command,
            output=f"{home}/outputs",
            algorithm=Algorithm(path=home),
            nodes=size.nodes,
            mode=_mode(size, template),
            elastic=_elastic(size),
            specs=(_node_spec(size, template),),
            pool=template.pool,
            partitions=template.partitions,
            qos=template.qos,
            divide_over_clusters=template.divide_over_clusters,
            terminal=template.terminal,
            debug_hold=DebugHold(cards=HoldCards.KEEP if template.keeps_cards else HoldCards.FREE),
            time_limit_seconds=int(self._chance.choice(template.limits_hours) * 3600),
            hold=held,
            project=user.group,
        )


def _mode(size: WeightedSize, template: Template) -> Mode | None:
    """Return the mode of a job; only jobs of several nodes in one cluster need one."""
    needs = size.nodes > 1 and size.elastic is None and not template.divide_over_clusters
    return Mode.PYTORCH if needs else None


def _elastic(size: WeightedSize) -> Elastic | None:
    if size.elastic is None:
        return None
    least, most = size.elastic
    return Elastic(workers=size.nodes, min_workers=least, max_workers=most, reclaim_signal=ReclaimSignal.SIGTERM)


def _node_spec(size: WeightedSize, template: Template) -> NodeSpec:
    return NodeSpec(
        cpus=size.cpus,
        memory_mib=size.memory_gib * GIB,
        card_milli=round(size.cards * WHOLE_CARD),
        card_models=template.card_models,
    )


def _choose(chance: Random, among: tuple[Chosen, ...]) -> Chosen:
    return chance.choices(among, [each.weight for each in among])[0]
