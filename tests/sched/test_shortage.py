"""What `NotEnoughFree` says: the nearest nodes and why each is not enough."""

from __future__ import annotations

import pytest
from hypothesis import given

from cockpit.model.node import CardSlice, NodeState
from cockpit.model.reasons import NodeShortfall, NotEnoughFree, Resource
from cockpit.sched.index import refresh_index
from cockpit.sched.nodes.node_free import shortfall
from cockpit.sched.shape import shape_of
from cockpit.sched.shortage import nearest
from tests.sched.random_worlds import act, histories, job_specs, some_nodes
from tests.sched.reference import suits
from tests.sched.test_properties import quick
from tests.sched.world import World, alone, cards, node, wants


def whole(*on: int) -> tuple[CardSlice, ...]:
    return tuple(CardSlice(card, None, 1000) for card in on)


def waiting(world: World, *specs, **fields) -> NotEnoughFree:
    job = world.submit(*specs, **fields)
    world.run()
    reason = world.reason(job)
    assert isinstance(reason, NotEnoughFree)
    return reason


@pytest.mark.req("SC-13")
def test_the_sentence_of_the_reason_has_the_figures() -> None:
    """`waits for 4 A100 on one node; n07 has 3 free, n12 has 2 free; 21 cards are free elsewhere but are H100`"""
    world = World(node("n07", 8), node("n12", 8), node("n20", 8), node("h1", cards(21, "H100")))
    world.occupy(901, alone(0, "n07", *whole(0, 1, 2, 3, 4)))
    world.occupy(902, alone(0, "n12", *whole(0, 1, 2, 3, 4, 5)))
    world.occupy(903, alone(0, "n20", *whole(*range(8))))
    assert waiting(world, wants(4000, "A100")) == NotEnoughFree(
        resource=Resource.CARDS,
        wanted=4,
        card_models=("A100",),
        nodes_wanted=1,
        nodes_with_room=0,
        nearest=tuple(NodeShortfall(name, Resource.CARDS, free) for name, free in (("n07", 3), ("n12", 2), ("n20", 0))),
        other_models_free=21,
    )


@pytest.mark.req("SC-13")
def test_the_reason_of_a_gang_counts_its_nodes_that_fit() -> None:
    world = World(node("n1", 4), node("n2", 4), node("n3", 4), node("n4", 2))
    world.occupy(901, alone(0, "n1", *whole(0)))
    reason = waiting(world, wants(4000), nodes=3)
    assert (reason.nodes_wanted, reason.nodes_with_room) == (3, 2)
    assert reason.nearest == (NodeShortfall("n1", Resource.CARDS, 3),)  # n4 could never hold it


@pytest.mark.req("SC-13")
def test_a_node_short_of_memory_is_nearer_than_one_short_of_cpus_or_cards() -> None:
    world = World(node("n1", 4), node("n2", 4), node("n3", 4), node("n4", 4))
    world.occupy(901, alone(0, "n1", *whole(0)))
    world.occupy(902, alone(10, "n2"))
    (part,) = alone(0, "n3")
    world.occupy(903, (type(part)(0, "n3", 0, 60000, ()),))
    world.occupy(904, alone(11, "n4"))
    assert waiting(world, wants(4000, cpus=8, memory_mib=8192)).nearest == (
        NodeShortfall("n3", Resource.MEMORY, 5536),
        NodeShortfall("n2", Resource.CPUS, 6),
        NodeShortfall("n4", Resource.CPUS, 5),
    )


@pytest.mark.req("SC-13", "SC-05")
def test_the_reason_of_a_share_names_the_largest_free_share() -> None:
    world = World(node("n1", 1), node("n2", 1), node("n3", 1))
    world.occupy(901, alone(0, "n1", CardSlice(0, 0, 600)))
    world.occupy(902, alone(0, "n2", CardSlice(0, 0, 400), CardSlice(0, 1, 500)))
    world.occupy(903, alone(0, "n3", *whole(0)))
    reason = waiting(world, wants(500))
    assert (reason.resource, reason.wanted) == (Resource.CARD_SHARE, 500)
    assert [(near.node, near.free) for near in reason.nearest] == [("n1", 400), ("n2", 100), ("n3", 0)]


@pytest.mark.req("SC-13")
def test_only_nodes_that_the_job_may_use_are_named() -> None:
    world = World(node("n1", 2), node("n2", 2, pool="east"), node("n3", 2, pool="east", state=NodeState.DRAINED))
    for number, name in enumerate(world.nodes, 901):
        world.occupy(number, alone(0, name, *whole(0)))
    assert [near.node for near in waiting(world, wants(2000), pool="east").nearest] == ["n2"]
    assert [near.node for near in waiting(world, wants(2000), pins=("n1", "n3")).nearest] == ["n1"]


@pytest.mark.req("SC-13")
def test_the_figures_are_those_after_everything_that_started() -> None:
    world = World(node("n1", 4))
    world.submit(wants(1000), limit=1)
    big = world.submit(wants(4000))
    world.submit(wants(2000), limit=1)
    world.run()
    assert world.reason(big).nearest == (NodeShortfall("n1", Resource.CARDS, 1),)


@pytest.mark.req("SC-13")
@quick
@given(some_nodes(), histories(), job_specs())
def test_the_nearest_nodes_equal_those_of_an_exhaustive_search(nodes, history, asked) -> None:
    world = World(*nodes)
    for step in history:
        act(world, step)
        world.run()
    index, shape = refresh_index(None, world.snapshot()), shape_of(asked)
    for spec in shape.specs:
        lacks = {}
        for node_free in index.nodes_free:
            lack = shortfall(node_free, spec, exclusive=asked.exclusive)
            serves = node_free.node.state is NodeState.UP and suits(node_free.node, asked)
            if serves and lack and not shortfall(node_free.emptied(), spec, exclusive=asked.exclusive):
                lacks[node_free.node.name] = lack
        named = nearest(index, shape, spec)
        assert {near.node: (near.resource, near.free) for near in named}.items() <= lacks.items()
        assert len(named) == min(3, len(lacks))
        stages = {"memory": 0, "cpus": 1, "node": 2, "cards": 3, "card_share": 3}
        distances = sorted((stages[resource], -free) for resource, free in lacks.values())
        assert [(stages[near.resource], -near.free) for near in named] == distances[:3]


@pytest.mark.req("SC-13")
def test_a_node_with_several_shared_cards_is_named_once_and_hides_no_other() -> None:
    world = World(*(node(f"n{number}", 3) for number in (1, 2, 3, 4, 5)))
    used = {"n1": (600, 610, 620), "n2": (900, 1000, 1000)} | dict.fromkeys(("n3", "n4", "n5"), (1000, 1000, 1000))
    for job, (name, amounts) in enumerate(used.items(), 901):
        parts = [CardSlice(card, None, milli) for card, milli in enumerate(amounts)]
        world.occupy(job, alone(8 if name in {"n1", "n2"} else 0, name, *parts))  # the others come first by their CPUs
    assert waiting(world, wants(500)).nearest == (
        NodeShortfall("n1", Resource.CARD_SHARE, 400),
        NodeShortfall("n2", Resource.CARD_SHARE, 100),
        NodeShortfall("n3", Resource.CARD_SHARE, 0),
    )
