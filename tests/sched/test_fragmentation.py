from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from cockpit.model.ids import JobId
from cockpit.model.node import Allocation, CardSlice, NodeState
from cockpit.sched.fragmentation import GradientDescent, fragmentation, target_workload, workload
from cockpit.sched.index import refresh_index
from cockpit.sched.nodes.node_free import allocate, best_fit_rank, node_free_of, sharing_cards, shortfall
from cockpit.sched.policy import FractionFit, Policy
from cockpit.sched.shape import shape_of
from tests.sched.random_worlds import act, histories, job_specs, node_specs, some_nodes
from tests.sched.reference import suits
from tests.sched.test_properties import quick
from tests.sched.world import World, alone, node, spec_of, wants


def room_with_holes(*free: int, cpus: int = 16):
    slices = tuple(CardSlice(card, 0, 1000 - left) for card, left in enumerate(free) if left < 1000)
    tenants = [(JobId(1), Allocation(0, "n1", 0, 0, slices))]
    return node_free_of(node("n1", len(free), cpus=cpus), 0, 0, tenants)


@pytest.mark.req("SC-04")
@pytest.mark.parametrize(
    ("spec", "unusable"),
    [
        (wants(500), 200),  # the card with less free than it needs
        (wants(200), 0),
        (wants(1000), 200 + 700),  # shared cards are lost to a whole one
        (wants(3000), 200 + 700 + 1000 + 1000),  # it does not fit: everything is
        (wants(500, cpus=17), 2900),
        (wants(500, "H100"), 2900),
    ],
)
def test_fragmentation_is_what_a_shape_cannot_use_of_what_is_free(spec, unusable) -> None:
    assert fragmentation(room_with_holes(200, 700, 1000, 1000), [(spec, 1)]) == unusable


@pytest.mark.req("SC-04")
def test_fragmentation_adds_up_over_the_workload_by_its_weights() -> None:
    node_free = room_with_holes(200, 1000)
    assert fragmentation(node_free, [(wants(500), 3), (wants(2000), 2)]) == 3 * 200 + 2 * 1200


@pytest.mark.req("SC-04")
def test_the_target_workload_counts_replicas_queued_and_running_that_ask_for_cards() -> None:
    gang = shape_of(spec_of(wants(1000), nodes=3))
    assert target_workload([gang, gang, shape_of(spec_of(wants()))], {wants(250): 1, wants(): 9}) == (
        (wants(1000), 6),
        (wants(250), 1),
    )


@pytest.mark.req("SC-04")
def test_descent_leaves_usable_free_cards_where_best_fit_leaves_unusable_ones() -> None:
    node_free = room_with_holes(600, 800)
    assert GradientDescent(((wants(500), 1),)).card(node_free, wants(300)) == 1
    # 600 - 300 = 300 is of no use to a job that wants 500; 800 - 300 = 500 is


@pytest.mark.req("SC-04")
@pytest.mark.parametrize(("fit", "on"), [(FractionFit.BEST, "n1"), (FractionFit.FGD, "n2")])
def test_the_policy_chooses_between_best_fit_and_descent(fit, on) -> None:
    world = World(node("n1", 1), node("n2", 1), policy=Policy(fraction_fit=fit))
    world.submit(wants(400), pins=("n1",))
    world.submit(wants(200), pins=("n2",))
    world.run()
    job = world.submit(wants(300))
    for _ in range(9):
        world.submit(wants(500), nodes=2)
    world.run()
    assert list(world.where(job)) == [on]


@pytest.mark.req("SC-04")
def test_equal_growth_is_decided_by_best_fit() -> None:
    world = World(node("n1", 1), node("n2", 1), node("n3", 1))
    world.occupy(JobId(1), alone(1, "n1", CardSlice(0, 0, 100)))
    world.occupy(JobId(2), alone(1, "n2", CardSlice(0, 0, 600)))
    asked = spec_of(wants(300))
    nodes_free = GradientDescent(()).nodes_free(refresh_index(None, world.snapshot()), shape_of(asked), asked.specs[0])
    assert [node_free.node.name for node_free in nodes_free] == ["n2", "n1", "n3"]
    assert GradientDescent(()).card(room_with_holes(900, 400), wants(300)) == 1


def steps_by_hand(node_free, spec, targets) -> int | None:
    """Return the steps of growth of the best way, by trying each on the node itself; None where the job does not
    fit."""
    if shortfall(node_free, spec, exclusive=False):
        return None
    cards = sharing_cards(node_free, spec) if spec.shares_a_card else [None]
    after = [
        node_free.with_tenant(JobId(99), allocate(node_free, spec, 0, exclusive=False, card=card)) for card in cards
    ]
    growth = min(fragmentation(each, targets) for each in after) - fragmentation(node_free, targets)
    return -(-growth // (40 * max(1, sum(weight for _, weight in targets))))


@pytest.mark.req("SC-04", "SC-05")
@quick
@given(some_nodes(), histories(), st.lists(st.tuples(node_specs, st.integers(1, 9)), max_size=5), job_specs())
def test_cached_fragmentation_equals_that_computed_for_each_node(nodes, history, targets, asked) -> None:
    targets = workload(dict(targets))
    descent = GradientDescent(targets)
    world = World(*nodes)
    freed = replace(asked, node_names=(), pool=None, driver_version=None, node_selector={})
    shape, spec = shape_of(freed), asked.specs[0]
    for step in history:
        act(world, step)
        index = world.run().index
        if len({each.name for each in world.nodes.values()}) != len(nodes) or step[0] == "node":
            descent = GradientDescent(targets)  # other nodes, another layout
        found = list(descent.nodes_free(index, shape, spec))
        by_hand = {
            node_free.order: (grown, *best_fit_rank(node_free, spec))
            for node_free in index.nodes_free
            if node_free.node.state is NodeState.UP
            and suits(node_free.node, freed)
            and (grown := steps_by_hand(node_free, spec, targets)) is not None
        }
        assert [node_free.order for node_free in found] == sorted(by_hand, key=by_hand.__getitem__)
