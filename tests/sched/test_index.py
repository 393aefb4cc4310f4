from __future__ import annotations

import pytest
from hypothesis import given

from cockpit.model.ids import JobId, Millis
from cockpit.model.node import CardSlice, NodeState
from cockpit.sched.index import Index, refresh_index
from cockpit.sched.nodes.node_free import best_fit_rank, shortfall
from cockpit.sched.placement import fitting
from cockpit.sched.shape import shape_of
from tests.sched.random_worlds import act, histories, job_specs, some_nodes
from tests.sched.reference import suits
from tests.sched.test_properties import quick
from tests.sched.world import World, alone, cards, node, spec_of, wants


def index_of(*nodes) -> Index:
    return refresh_index(None, World(*nodes).snapshot())


@pytest.mark.req("SC-14")
def test_refreshing_does_not_change_the_given_index() -> None:
    world = World(node("n1", 2))
    before = refresh_index(None, world.snapshot())
    nodes_free, shelves = list(before.nodes_free), [each.sorted_keys() for each in before.by_whole]
    world.occupy(JobId(1), alone(3))
    after = refresh_index(before, world.snapshot())
    assert (before.nodes_free, [each.sorted_keys() for each in before.by_whole]) == (nodes_free, shelves)
    assert (before.nodes_free[0].cpus, after.nodes_free[0].cpus) == (16, 13)


@pytest.mark.req("SC-14")
def test_a_fork_does_not_change_when_the_index_is_updated() -> None:
    world = World(node("n1", 2), node("n2", 2))
    index = refresh_index(None, world.snapshot())
    fork = index.fork()
    before = [list(each.orders()) for each in fork.by_whole], fork.most_cards
    index.place(JobId(1), alone(3, "n1", CardSlice(0, None, 1000), CardSlice(1, None, 1000)), Millis(5))
    index.place(JobId(2), alone(3, "n2", CardSlice(0, None, 1000)), Millis(5))
    assert ([list(each.orders()) for each in fork.by_whole], fork.most_cards) == before
    fork.place(JobId(2), alone(3, "n2", CardSlice(0, None, 1000), CardSlice(1, None, 1000)), Millis(5))
    assert [index.nodes_free[each].node.name for each in index.by_whole[0].orders()] == ["n1", "n2"]


@pytest.mark.req("SC-14")
def test_an_index_of_the_same_version_is_used_as_it_is() -> None:
    world = World(node("n1"))
    index = refresh_index(None, world.snapshot())
    assert refresh_index(index, world.snapshot()) is index


@pytest.mark.req("SC-14")
def test_changes_that_the_index_has_already_seen_do_no_harm() -> None:
    world = World(node("n1"))
    world.occupy(JobId(1), alone(3))
    index = refresh_index(None, world.snapshot())
    world.occupy(JobId(1), None)
    world.occupy(JobId(1), alone(5))
    assert refresh_index(index, world.snapshot()).nodes_free == refresh_index(None, world.snapshot()).nodes_free


@pytest.mark.req("SC-14")
def test_an_index_older_than_the_changes_is_rebuilt() -> None:
    world = World(node("n1"))
    old = refresh_index(None, world.snapshot())
    world.occupy(JobId(1), alone(3))
    world.cycle()
    world.occupy(JobId(2), alone(4))
    assert refresh_index(old, world.snapshot()).nodes_free[0].cpus == 9


@pytest.mark.req("SC-14")
def test_a_job_on_a_node_that_left_the_cluster_is_no_obstacle() -> None:
    world = World(node("n1"), node("n2"))
    world.occupy(JobId(1), alone(3, "n2"))
    world.cycle()
    world.nodes = {"n1": world.nodes["n1"]}
    world.nodes_version += 1
    world.cycle()
    world.end(JobId(1))
    assert world.run().index.placed == {}


@pytest.mark.req("SC-14")
def test_kinds_are_nodes_that_the_same_requests_may_use() -> None:
    layout = index_of(
        node("n1", 2),
        node("n2", 2, cpus=99),
        node("n3", 2, pool="east"),
        node("n4", cards(2, "H100")),
        node("n5", 2, state=NodeState.DOWN),
    ).layout
    assert layout.class_of == [0, 0, 1, 2, 3]
    names = [kind.number for kind in layout.classes_for(shape_of(spec_of()), wants(1000, "A100"))]
    assert names == [0, 1]


@pytest.mark.req("SC-04")
@quick
@given(some_nodes(), histories(), job_specs())
def test_a_search_finds_every_node_that_fits_best_first(nodes, history, asked) -> None:
    world = World(*nodes)
    for step in history:
        act(world, step)
        world.run()
    index, shape = refresh_index(None, world.snapshot()), shape_of(asked)
    for spec in shape.specs:
        expected = [
            node_free
            for node_free in index.nodes_free
            if node_free.node.state is NodeState.UP
            and shortfall(node_free, spec, exclusive=shape.exclusive) is None
            and suits(node_free.node, asked)
        ]
        assert list(fitting(index, shape, spec)) == sorted(
            expected, key=lambda node_free: best_fit_rank(node_free, spec)
        )


@pytest.mark.req("SC-04")
@quick
@given(some_nodes(), histories())
def test_the_running_workload_equals_a_recount(nodes, history) -> None:
    world = World(*nodes)
    world.run()
    for step in history:
        world.index.running()  # from now on it is kept up to date
        act(world, step)
        world.run()
        snapshot = world.snapshot()
        assert refresh_index(world.index, snapshot).running() == refresh_index(None, snapshot).running()
