"""Promises of a fleet, over random fleets and jobs: gangs are whole or absent, and what is reserved is had."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cockpit.engine.access import Actor
from cockpit.engine.submission.submit import submit
from cockpit.model import events
from cockpit.model.fleet import Member
from cockpit.model.job import OCCUPYING
from cockpit.model.refusal import Refusal
from tests.builders import ANN, SECOND, a_node, a_spec
from tests.engine.fleet_driver import COUNTING, RESERVING, FleetDriver

if TYPE_CHECKING:
    from cockpit.model.spec import JobSpec


class World(NamedTuple):
    """A fleet and what comes to it: jobs of its own, jobs of members, ends, time."""

    modes: list[bool]
    """Per member, whether it reserves."""
    nodes: list[list[int]]
    """Per member, cards on each node."""
    steps: list[tuple[str, int, int, int]]
    """What, and three numbers that say more."""


@st.composite
def worlds(draw: st.DrawFn, *, reserving: bool = False) -> World:
    count = draw(st.integers(1, 3))
    modes = [reserving or draw(st.booleans()) for _ in range(count)]
    nodes = [draw(st.lists(st.sampled_from([2, 4, 8]), min_size=1, max_size=3)) for _ in range(count)]
    numbers = st.integers(0, 7)
    step = st.tuples(
        st.sampled_from(["fleet", "fleet", "divided", "own", "end", "own end", "time"]), numbers, numbers, numbers
    )
    return World(modes, nodes, draw(st.lists(step, min_size=1, max_size=14)))


class Story:
    """Tells a world; what must hold holds after every step."""

    def __init__(self, world: World) -> None:
        can = [RESERVING if each else COUNTING for each in world.modes]
        names = [f"c{at}" for at in range(len(can))]
        nodes = {
            name: [a_node(f"n{at}", cpus=16, cards=cards) for at, cards in enumerate(cards_of)]
            for name, cards_of in zip(names, world.nodes, strict=True)
        }
        self.driver = FleetDriver([Member(name=name, **each) for name, each in zip(names, can, strict=True)], nodes)
        self._names = names
        self._count = 0

    def tell(self, step: tuple[str, int, int, int]) -> None:
        kind, one, two, three = step
        self._count += 1
        match kind:
            case "fleet" | "divided":
                self._submit(self._spec(1 + one % 3, 1 + two, divide_over_clusters=kind == "divided"), "")
            case "own":
                self._submit(self._spec(1, 1 + two), self._names[one % len(self._names)])
            case "end":
                running = [job.id for job in self.driver.machine.state.jobs.values() if self.driver.running(job.id)]
                if running:
                    self._end(running[one % len(running)], three)
            case "own end":
                self._end_own(self._names[one % len(self._names)])
            case _:
                self.driver.after((5 + 5 * one) * SECOND)
        self.driver.settle()

    def _spec(self, nodes: int, cards: int, **fields: object) -> JobSpec:
        return a_spec(f"job-{self._count}", nodes=nodes, card_milli=1000 * cards, cpus=1, **fields)

    def _submit(self, spec: JobSpec, member: str) -> None:
        where = self.driver.members[member] if member else self.driver
        decided = submit(where.machine, [spec], Actor(ANN, admin=False), now=where.now)
        if not isinstance(decided, Refusal):
            where.act(decided)

    def _end(self, job: int, code: int) -> None:
        if all(each.ended_at is None for each in self.driver.job(job).attempt.replicas):
            self.driver.end(job, code=code % 2)

    def _end_own(self, name: str) -> None:
        member = self.driver.members[name]
        own = [job for job in member.machine.occupied if member.job(job).part is None]
        if own:
            member.ended(own[0], code=0)


def check(driver: FleetDriver) -> None:
    """All replicas of a job run, or none; a member runs nothing of the fleet's that the fleet does not know."""
    for job in driver.machine.state.jobs.values():
        if job.state in OCCUPYING:
            begun = driver.running(job.id)
            assert begun in (0, job.spec.nodes)
            assert bool(begun) == (not job.attempt.awaits)
    for name, member in driver.members.items():
        for job, placement in member.machine.occupied.items():
            part = member.job(job).part
            if part is not None:
                known = driver.job(part.job).attempt
                assert driver.job(part.job).state in OCCUPYING
                assert known.number == part.attempt
                assert [f"{name}/{each.node}" for each in placement] == [
                    known.placement[rank].node for rank in part.ranks
                ]


@settings(deadline=None, max_examples=60)
@given(worlds())
@pytest.mark.req("FL-04", "FL-05", "FL-08")
def test_gangs_start_completely_or_not_at_all_in_all_their_clusters(world: World) -> None:
    story = Story(world)
    for step in world.steps:
        story.tell(step)
        check(story.driver)
    divided = {job.id for job in story.driver.machine.state.jobs.values() if job.spec.divide_over_clusters}
    for placed in story.driver.bodies(events.JobPlaced):
        assert len(set(placed.members)) == 1 or placed.job in divided


@settings(deadline=None, max_examples=60)
@given(worlds(reserving=True))
@pytest.mark.req("FL-06")
def test_a_member_places_a_reserved_job_exactly_as_reserved(world: World) -> None:
    story = Story(world)
    for step in world.steps:
        story.tell(step)
        driver = story.driver
        assert all(not job.attempt.awaits for job in driver.machine.state.jobs.values() if job.attempt is not None)
    assert story.driver.bodies(events.BindingGivenUp) == []
    decided = {(each.job, each.attempt): each.placement for each in story.driver.bodies(events.JobPlaced)}
    for found in story.driver.bodies(events.MemberPlaced):
        there = decided[found.job, found.attempt]
        assert [there[part.rank] for part in found.placement] == list(found.placement)
