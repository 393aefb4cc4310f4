"""Components of one heterogeneous job: they start together, each by its own request, and may share nodes."""

from __future__ import annotations

import pytest

from cockpit.model.cluster import Backfill, BackfillKind
from cockpit.model.reasons import NeverFits, NotEnoughFree, Resource
from cockpit.model.spec import NodeSpec, TaskSpread
from cockpit.sched.feasible import never_fits
from cockpit.sched.plan import Plan
from cockpit.sched.policy import Policy
from cockpit.sched.rules.tres import requested
from tests.sched.world import World, node, spec_of, wants

BOTH = pytest.mark.parametrize("kind", [BackfillKind.EASY, BackfillKind.CONSERVATIVE])


def het(*components, limit: int = 600):
    first, *others = components
    return spec_of(first, limit=limit, components=tuple(spec_of(each, limit=limit) for each in others))


def layout(plan: Plan, job: int) -> dict[str, tuple[int, int]]:
    """The CPUs and cards of each node by which the job starts, or is going to."""
    (placed,) = [each.placement for each in (*plan.starts, *plan.reservations) if each.job == job]
    return {part.node: (part.cpus, len(part.slices)) for part in placed}


def reserved_at(plan: Plan, job: int) -> int | None:
    return next((each.reserved_at for each in plan.reservations if each.job == job), None)


def two(kind: BackfillKind) -> World:
    """Nodes with 8 CPUs; the second has 2 cards, which are in use for 100 s, and the first is in use for 200 s."""
    world = World(node("n1", cpus=8), node("n2", 2, cpus=8), policy=Policy(backfill=Backfill(kind=kind)))
    for name, spec, limit in (("n1", wants(cpus=8), 200), ("n2", wants(2000, cpus=2), 100)):
        world.submit(spec, limit=limit, pins=(name,))
    world.run()
    return world


@pytest.mark.req("SL-14", "SC-04")
@BOTH
def test_components_share_a_node_where_they_fit(kind: BackfillKind) -> None:
    world = World(node("n1", 2, cpus=8), policy=Policy(backfill=Backfill(kind=kind)))
    job = world.submit_spec(het(wants(1000, cpus=3), wants(1000, cpus=5)))
    assert layout(world.cycle(), job) == {"n1": (8, 2)}


@pytest.mark.req("SL-14", "SC-06")
@BOTH
def test_no_component_starts_before_all_of_them_fit(kind: BackfillKind) -> None:
    """The second one would fit at once, the first after 100 s, both together only after 200 s."""
    world = two(kind)
    job = world.submit_spec(het(wants(1000, cpus=1), wants(cpus=6), wants(cpus=4)))
    plan = world.cycle()
    assert reserved_at(plan, job) == 200_000
    assert not plan.starts
    free = world.submit(wants(cpus=2), limit=5000)
    short = world.submit(wants(cpus=4), limit=190)
    plan = world.cycle()
    assert reserved_at(plan, job) == 200_000
    assert {start.job for start in plan.starts} == {free, short}, "what the components do not need yet is not kept"


@pytest.mark.req("SL-14")
def test_the_reason_is_that_of_the_component_that_does_not_fit() -> None:
    world = two(BackfillKind.CONSERVATIVE)
    job = world.submit_spec(het(wants(cpus=1), wants(1000, cpus=1)))
    reason = world.cycle().refusals.reason(world.jobs[job], "")
    assert isinstance(reason, NotEnoughFree)
    assert reason.resource is Resource.CARDS
    assert never_fits(het(wants(cpus=1), wants(cpus=8)), world.nodes) is None
    assert never_fits(het(wants(cpus=1), wants(cpus=9)), world.nodes) == NeverFits(Resource.CPUS, 9, 8, ())


@pytest.mark.req("SL-14", "SC-09")
def test_limits_count_all_components() -> None:
    tasks = TaskSpread(tasks=5, each=NodeSpec(cpus=2, memory_mib=0))
    spread = spec_of(wants(cpus=2), spread=tasks)
    asked = requested(spec_of(wants(1000, cpus=3), components=(spread,)))
    assert (asked["cpu"], asked["gres/gpu"], asked["node"]) == (13, 1, 2)
