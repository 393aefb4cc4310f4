"""The reservation of a waiting gang with replicas of several kinds is that of a slow scheduler that is plainly
right."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cockpit.model.cluster import Backfill, BackfillKind, Reservation
from cockpit.model.ids import NodeName
from cockpit.model.node import NodeState
from cockpit.model.reasons import NeverFits
from cockpit.model.spec import JobSpec, TaskSpread, WorkerPool
from cockpit.sched.cycle import cycle
from cockpit.sched.plan import Plan
from cockpit.sched.policy import Policy
from tests.sched.random_worlds import act, histories, mixed_specs, some_nodes
from tests.sched.reference import Reference, holes
from tests.sched.world import World, node, spec_of, wants

HOUR = 3600
quick = settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


def anew(world: World) -> Plan:
    """One pass that takes nothing over from the last."""
    return cycle(world.snapshot(), None, world.policy)


@pytest.mark.req("SC-04", "SC-06", "SC-14")
@quick
@given(some_nodes(), histories(jobs=mixed_specs()), st.booleans())
def test_starts_and_the_reservation_of_the_first_waiting_job(nodes, history, backfill) -> None:
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
def test_reservations_of_all_waiting_jobs(nodes, history) -> None:
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
def test_a_node_of_the_idle_kind_is_reserved_until_the_other_kind_fits(kind: BackfillKind) -> None:
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
def test_a_start_beyond_the_window_is_not_reserved() -> None:
    world = busy(window_seconds=HOUR - 1)
    world.submit(wants(2000), **UNLIKE)
    assert world.cycle().reservation is None


@pytest.mark.req("SC-06", "SC-15")
def test_a_mixed_gang_starts_when_a_reservation_of_nodes_is_over() -> None:
    world = busy(node("g2", 2, cpus=4))
    upkeep = Reservation(name="upkeep", nodes=(NodeName("g1"),), start_at=500 * HOUR, end_at=3000 * HOUR)
    world.rules["reservations"] = {"upkeep": upkeep}
    world.rules_version += 1
    unlike = world.submit(wants(2000), **UNLIKE)
    kept = world.cycle().reservation
    assert (kept.job, kept.reserved_at, [part.node for part in kept.placement]) == (unlike, 3000 * HOUR, ["g1", "p1"])


def competing() -> tuple[World, JobSpec]:
    """A replica that fits on both nodes and fits the first better, and one that fits on the first alone."""
    first = node("n1", 1, cpus=4, memory_mib=4096)
    second = node("n2", 1, cpus=16, memory_mib=1024)
    modest, large = wants(1000, cpus=4, memory_mib=512), wants(0, cpus=1, memory_mib=4096)
    pools = (WorkerPool(replicas=1, spec=modest), WorkerPool(replicas=1, spec=large))
    return World(first, second), spec_of(modest, worker_pools=pools, limit=HOUR)


@pytest.mark.req("SC-04", "SC-06")
@pytest.mark.parametrize("kind", BackfillKind)
def test_kinds_that_compete_for_a_node_are_placed_together(kind: BackfillKind) -> None:
    world, spec = competing()
    world.policy = Policy(backfill=Backfill(kind=kind))
    runs = world.submit(wants(cpus=1, memory_mib=256), pins=("n1",), limit=HOUR)
    world.run()
    job = world.submit_spec(spec)
    plan = world.run()
    if kind is not BackfillKind.OFF or plan.reservation is not None:
        assert (plan.reservation.job, plan.reservation.reserved_at) == (job, 1000 * HOUR)
    world.end(runs)
    (start,) = world.run().starts
    assert [part.node for part in start.placement] == ["n2", "n1"]


@pytest.mark.req("SC-04", "SC-13")
def test_kinds_that_fit_only_by_themselves_never_start() -> None:
    """Each kind fits on the first node, and on no other."""
    world, spec = competing()
    world.set_node(node("n2", cpus=16, memory_mib=1024))
    job = world.submit_spec(spec)
    behind = world.submit(wants(memory_mib=2048))
    plan = world.run()
    assert world.reason(job) == NeverFits(None, 2, 1, ())
    assert behind in {start.job for start in plan.starts}


@pytest.mark.req("SC-13")
@pytest.mark.parametrize("kind", ["kinds", "tasks"])
def test_a_node_out_of_service_does_not_hide_a_permanent_shortage(kind: str) -> None:
    world = World(node("n1", 1, cpus=4), node("n2", cpus=4))
    world.set_state("n2", NodeState.DRAINED)
    if kind == "tasks":
        job = world.submit(wants(cpus=2), spread=TaskSpread(tasks=5, each=wants(cpus=2)))
    else:
        pools = tuple(WorkerPool(replicas=1, spec=wants(1000, cpus=cpus)) for cpus in (1, 2))
        job = world.submit(wants(1000), worker_pools=pools)
    world.run()
    assert isinstance(world.reason(job), NeverFits)
