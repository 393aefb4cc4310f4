"""Where a head asks for CPUs and memory alone, its reservation by sums is the same as the general one by nodes."""

from __future__ import annotations

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from cockpit.model.cluster import Backfill
from cockpit.model.ids import JobId, Millis
from cockpit.model.spec import NodeSpec
from cockpit.sched.backfill.head_reservation import Reservation, reserve, reserve_by_nodes
from cockpit.sched.backfill.single_node_reservation import SingleNodeReservation
from cockpit.sched.cycle import cycle, next_plan
from cockpit.sched.index import Index, refresh_index
from cockpit.sched.nodes.node_free import best_fit_rank
from cockpit.sched.placement import find_placement, fitting
from cockpit.sched.policy import Policy
from cockpit.sched.shape import shape_of
from tests.sched.random_worlds import act
from tests.sched.reference import Reference
from tests.sched.test_properties import quick
from tests.sched.world import World, node, spec_of, wants

some_plain_nodes = st.lists(
    st.builds(
        lambda cpus, memory_mib: {"cpus": cpus, "memory_mib": memory_mib},
        st.sampled_from([2, 4, 8]),
        st.sampled_from([2048, 4096]),
    ),
    min_size=1,
    max_size=3,
).map(lambda each: tuple(node(f"n{number}", **fields) for number, fields in enumerate(each, 1)))
plain_specs = st.builds(
    lambda cpus, memory_mib, limit, nodes: spec_of(
        NodeSpec(cpus=cpus, memory_mib=memory_mib), limit=limit, nodes=nodes
    ),
    st.integers(1, 8),
    st.sampled_from([256, 1024, 2048]),
    st.sampled_from([1, 2, 4, 8, 16]),
    st.sampled_from([1, 1, 1, 2]),
)
plain_steps = st.one_of(
    st.tuples(st.just("submit"), plain_specs),
    st.tuples(st.just("submit"), plain_specs),
    st.tuples(st.just("tick"), st.sampled_from([1, 2, 3])),
    st.tuples(st.just("end"), st.integers(0, 20)),
)
plain_histories = st.lists(plain_steps, min_size=8, max_size=20)


def said(guard: Reservation) -> tuple[object, ...]:
    return guard.head, guard.reserved_at, guard.reservation(), guard.reserved_nodes


def guards(world: World, index: Index) -> tuple[Reservation, Reservation] | None:
    """Return both reservations of the first queued job that asks for one node and does not fit yet: by sums, and by
    nodes."""
    for job in world.queue:
        shape = shape_of(job.spec)
        if shape.nodes == 1 and find_placement(index, shape) is None:
            plain = reserve(index, world.now, Backfill(), job, shape)
            by_rooms = reserve_by_nodes(index, world.now, Backfill(), job, shape)
            assert (plain is None) == (by_rooms is None)
            if plain is not None and by_rooms is not None:
                return plain, by_rooms
    return None


@pytest.mark.req("SC-06")
@quick
@given(some_plain_nodes, plain_histories, st.lists(st.tuples(plain_specs, st.integers(0, 20)), max_size=4))
def test_numeric_free_resources_agree_with_node_free_objects(nodes, history, passing) -> None:
    world = World(*nodes)
    for step in history:
        act(world, step)
        world.run()
    index = refresh_index(None, world.snapshot())
    found = guards(world, index)
    event(f"somebody waits: {found is not None}")
    if found is None:
        return
    plain, by_rooms = found
    assert isinstance(plain, SingleNodeReservation)
    assert said(plain) == said(by_rooms)
    for number, (spec, seconds) in enumerate(passing, 1000):
        node_free, end = find_placement(index, shape_of(spec)), Millis(world.now + 1000 * seconds)
        if node_free is None:
            continue
        admitted = by_rooms.admits(JobId(number), end, node_free.placement)
        assert plain.admits(JobId(number), end, node_free.placement) == admitted
        if admitted:
            plain, by_rooms = (each.beside(JobId(number), end, node_free.placement) for each in (plain, by_rooms))
            assert said(plain) == said(by_rooms)


@pytest.mark.req("SC-06", "SC-14")
@quick
@given(some_plain_nodes, plain_histories)
def test_passes_over_plain_requests_equal_the_reference_scheduler(nodes, history) -> None:
    """Step by step from the last plan, and from nothing."""
    world = World(*nodes)
    for step in history:
        act(world, step)
        expected, snapshot, last = Reference(world, backfill=True), world.snapshot(), world.plan
        plan, whole = next_plan(last, snapshot, Policy()), cycle(snapshot, None, Policy())
        assert [(start.job, start.spec_index, start.placement) for start in plan.starts] == expected.starts
        assert (plan.starts, plan.reservations) == (whole.starts, whole.reservations)
        assert plan.index.nodes_free == whole.index.nodes_free
        world.run()


@pytest.mark.req("SC-04")
@quick
@given(some_plain_nodes, plain_histories, plain_specs)
def test_a_plain_request_finds_the_tightest_node(nodes, history, asked) -> None:
    world = World(*nodes)
    for step in history:
        act(world, step)
        world.run()
    index, shape = refresh_index(None, world.snapshot()), shape_of(asked)
    (spec,) = shape.specs
    best = sorted(fitting(index, shape, spec), key=lambda node_free: best_fit_rank(node_free, spec))[: shape.nodes]
    found = find_placement(index, shape)
    nodes_found = {part.node for part in found.placement} if found is not None else set()
    assert nodes_found == ({node_free.node.name for node_free in best} if len(best) == shape.nodes else set())


@pytest.mark.req("SC-06")
def test_all_jobs_that_end_at_the_head_s_start_free_resources_beside_it() -> None:
    world = World(node("n1", cpus=4))
    world.submit(wants(cpus=1), limit=10)
    world.submit(wants(cpus=2), limit=10)
    world.run()
    head, long = world.submit(wants(cpus=2), limit=5), world.submit(wants(cpus=1), limit=50)
    plan = world.run()
    assert [start.job for start in plan.starts] == [long]
    assert (plan.reservation.job, plan.reservation.reserved_at) == (head, 10_000)
