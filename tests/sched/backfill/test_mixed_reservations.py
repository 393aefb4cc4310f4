"""The reservation of a waiting gang with replicas of several kinds is that of a slow scheduler that is plainly
right."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cockpit.model.cluster import Backfill, BackfillKind, Reservation
from cockpit.model.ids import NodeName
from cockpit.model.spec import WorkerPool
from cockpit.sched.cycle import cycle
from cockpit.sched.plan import Plan
from cockpit.sched.policy import Policy
from tests.sched.random_worlds import act, histories, mixed_specs, some_nodes
from tests.sched.reference import Reference, holes
from tests.sched.world import World, node, wants

HOUR = 3600
quick = settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


def anew(world: World) -> Plan:
    """One pass that takes nothing over from the last."""
    return cycle(world.snapshot(), None, world.policy)


@pytest.mark.req("SC-04", "SC-06", "SC-14")
@quick
@given(some_nodes(), histories(jobs=mixed_specs()), st.booleans())
def test_what_starts_and_what_is_kept_for_the_first_that_waits(nodes, history, backfill) -> None:
    world = World(*nodes, policy=Policy(backfill=Backfill() if backfill else Backfill(kind=BackfillKind.OFF)))
    for step in history:
        act(world, step)
        expected, plan = Reference(world, backfill=backfill), anew(world)
        assert [(start.job, start.spec_index, start.placement) for start in plan.starts] == expected.starts
        kept = plan.reservation
        assert (kept and (kept.job, kept.reserved_at, kept.spec_index, kept.placement)) == expected.reservation
        world.run()


@pytest.mark.req("SC-04", "SC-06", "SC-14")
@quick
@given(some_nodes(), histories(jobs=mixed_specs()))
def test_what_is_kept_for_everybody(nodes, history) -> None:
    world = World(*nodes, policy=Policy(backfill=Backfill(kind=BackfillKind.CONSERVATIVE)))
    for step in history:
        act(world, step)
        plan = anew(world)
        planned = [(start.job, world.now, start.spec_index, start.placement) for start in plan.starts]
        planned += [(each.job, each.reserved_at, each.spec_index, each.placement) for each in plan.reservations]
        assert sorted(planned) == sorted(holes(world))
        world.run()


UNLIKE = {
    "worker_pools": (WorkerPool(replicas=1, spec=wants(2000)), WorkerPool(replicas=1, spec=wants(cpus=8))),
    "limit": HOUR,
}
"""Asks for two cards on one node, and for eight CPUs on another."""


def busy(*more, **policy) -> World:
    """g1 is free, and p1 taken for an hour."""
    world = World(node("g1", 2, cpus=4), node("p1", cpus=8), *more, policy=Policy(backfill=Backfill(**policy)))
    world.submit(wants(cpus=8), limit=HOUR)
    if more:
        world.submit(wants(2000), limit=5 * HOUR, pins=("g2",))
    world.run()
    return world


@pytest.mark.req("SC-06")
@pytest.mark.parametrize("kind", [BackfillKind.EASY, BackfillKind.CONSERVATIVE])
def test_a_node_of_its_idle_kind_is_kept_for_when_the_other_has_room(kind: BackfillKind) -> None:
    world = busy(kind=kind)
    unlike = world.submit(wants(2000), **UNLIKE)
    long = world.submit(wants(1000), limit=2 * HOUR)
    short = world.submit(wants(1000), limit=HOUR)
    plan = world.cycle()
    kept = plan.reservations[0]
    assert (kept.job, kept.reserved_at, [part.node for part in kept.placement]) == (unlike, 1000 * HOUR, ["g1", "p1"])
    assert [start.job for start in plan.starts] == [short]
    assert world.reason(long).ahead == unlike


@pytest.mark.req("SC-06")
def test_a_moment_beyond_the_window_is_not_kept() -> None:
    world = busy(window_seconds=HOUR - 1)
    world.submit(wants(2000), **UNLIKE)
    assert world.cycle().reservation is None


@pytest.mark.req("SC-06", "SC-15")
def test_it_goes_in_when_a_reservation_of_nodes_is_over() -> None:
    world = busy(node("g2", 2, cpus=4))
    upkeep = Reservation(name="upkeep", nodes=(NodeName("g1"),), start_at=500 * HOUR, end_at=3000 * HOUR)
    world.rules["reservations"] = {"upkeep": upkeep}
    world.rules_version += 1
    unlike = world.submit(wants(2000), **UNLIKE)
    kept = world.cycle().reservation
    assert (kept.job, kept.reserved_at, [part.node for part in kept.placement]) == (unlike, 3000 * HOUR, ["g1", "p1"])
