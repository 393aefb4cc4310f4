from __future__ import annotations

import pytest

from cockpit.model.node import CardSlice, NodeState
from cockpit.model.reasons import NotEnoughFree, Resource
from tests.sched.world import World, cards, node, wants


@pytest.mark.req("SC-04")
def test_a_gang_starts_whole_each_replica_on_its_own_node_or_not_at_all() -> None:
    world = World(node("n1", 4), node("n2", 4), node("n3", 1))
    three, two = world.submit(wants(2000), nodes=3), world.submit(wants(2000), nodes=2)
    plan = world.run()
    assert [start.job for start in plan.starts] == [two]
    assert world.where(two) == {"n1": [0, 1], "n2": [0, 1]}
    assert [part.rank for part in world.occupied[two]] == [0, 1]
    assert world.jobs[three].spec.nodes == 3


@pytest.mark.req("SC-04")
def test_two_replicas_never_share_a_node_even_where_both_would_fit() -> None:
    world = World(node("n1", 8))
    world.submit(wants(1000), nodes=2)
    assert world.run().starts == ()


@pytest.mark.req("SC-04")
def test_whole_card_jobs_keep_large_free_nodes_free() -> None:
    world = World(node("n1", 8), node("n2", 4), node("n3", 2))
    small, big = world.submit(wants(2000)), world.submit(wants(8000))
    world.run()
    assert world.where(small) == {"n3": [0, 1]}
    assert list(world.where(big)) == ["n1"]


@pytest.mark.req("SC-04")
def test_a_job_without_cards_prefers_nodes_without_free_cards() -> None:
    world = World(node("n1", 8), node("n2"))
    job = world.submit(wants(cpus=2))
    world.run()
    assert list(world.where(job)) == ["n2"]


@pytest.mark.req("SC-04")
def test_the_first_alternative_that_can_start_wins_and_is_named() -> None:
    world = World(node("n1", cards(4, "H100")))
    world.submit(wants(4000, "A100"), wants(4000, "H100"), wants(1000))
    assert [start.spec_index for start in world.run().starts] == [1]


@pytest.mark.req("SC-04")
@pytest.mark.parametrize(
    ("asked", "on"),
    [
        ({"pins": ("n3",)}, {"n3"}),
        ({"pins": ("n2", "n3", "n9"), "nodes": 2}, {"n2", "n3"}),
        ({"pool": "east"}, {"n2"}),
        ({"driver_version": "550.1"}, {"n3"}),
        ({"exclusive": True}, {"n3"}),
    ],
)
def test_restrictions_on_nodes_are_obeyed(asked, on) -> None:
    world = World(node("n1"), node("n2", pool="east"), node("n3", driver_version="550.1"))
    world.submit(wants(cpus=1), pins=("n1",))
    world.submit(wants(cpus=1), pins=("n2",))
    world.run()
    job = world.submit(wants(cpus=4), **asked)
    world.run()
    assert set(world.where(job)) == on


@pytest.mark.req("SC-04")
def test_card_models_are_any_of_those_named() -> None:
    world = World(node("n1", cards(2, "V100")), node("n2", cards(2, "H100")), node("n3", cards(2, "A100")))
    job = world.submit(wants(2000, "A100", "H100"), nodes=2)
    world.run()
    assert set(world.where(job)) == {"n2", "n3"}


@pytest.mark.req("SC-04")
def test_a_job_gets_only_accepted_models_of_a_node_with_two() -> None:
    two, two_more = cards(2, "A100"), cards(4, "H100")[2:]
    world = World(node("n1", (*two, *two_more)))
    job = world.submit(wants(2000, "H100"))
    late = world.submit(wants(1000, "H100"))
    world.run()
    assert world.where(job) == {"n1": [2, 3]}
    reason = world.reason(late)
    assert isinstance(reason, NotEnoughFree)
    assert (reason.nearest[0].free, reason.other_models_free) == (0, 2)


@pytest.mark.req("SC-04")
@pytest.mark.parametrize("state", [NodeState.DRAINED, NodeState.DOWN])
def test_only_nodes_in_service_are_used(state) -> None:
    world = World(node("n1", state=state), node("n2"))
    job = world.submit(wants())
    world.run()
    assert set(world.where(job)) == {"n2"}


@pytest.mark.req("SC-04")
def test_an_exclusive_job_excludes_other_jobs_from_its_node() -> None:
    world = World(node("n1", 2), node("n2", 2))
    alone = world.submit(wants(cpus=1), exclusive=True)
    others = [world.submit(wants(cpus=1)) for _ in range(3)]
    world.run()
    (home,) = world.where(alone)
    assert all(home not in world.where(other) for other in others)
    waits = world.submit(wants(cpus=1), exclusive=True)
    world.run()
    reason = world.reason(waits)
    assert isinstance(reason, NotEnoughFree)
    assert (reason.resource, reason.wanted, reason.nodes_with_room) == (Resource.NODE, 1, 0)


@pytest.mark.req("SC-05")
def test_shares_pack_a_card_up_to_its_thousand_and_then_open_the_next() -> None:
    world = World(node("n1", 2))
    jobs = [world.submit(wants(400)) for _ in range(4)]
    fifth = world.submit(wants(400))
    world.run()
    slices = [world.occupied[job][0].slices for job in jobs]
    assert slices == [(CardSlice(card, slot, 400),) for card in (0, 1) for slot in (0, 1)]
    assert fifth not in world.occupied


@pytest.mark.req("SC-05")
def test_a_share_takes_the_smallest_gap_in_the_cluster() -> None:
    world = World(node("n1", 1), node("n2", 1), node("n3", 1))
    for pin, milli in (("n1", 300), ("n2", 500), ("n3", 700)):
        world.submit(wants(milli), pins=(pin,))
    world.run()
    half, little = world.submit(wants(450)), world.submit(wants(300))
    world.run()
    assert (list(world.where(half)), list(world.where(little))) == (["n2"], ["n3"])


@pytest.mark.req("SC-05")
def test_a_released_slot_is_allocated_again() -> None:
    world = World(node("n1", 1))
    first, _ = world.submit(wants(300)), world.submit(wants(300))
    world.run()
    world.end(first)
    again = world.submit(wants(200))
    world.run()
    assert world.occupied[again][0].slices == (CardSlice(0, 0, 200),)


@pytest.mark.req("SC-04")
def test_ranks_follow_the_order_of_the_nodes() -> None:
    world = World(node("n1", 8), node("n2", 4), node("n3", 6))
    job = world.submit(wants(4000), nodes=3)
    world.run()
    assert [part.node for part in world.occupied[job]] == ["n1", "n2", "n3"]
