"""What a pass takes over from the last one, and which pass can be left out."""

from __future__ import annotations

import pytest
from hypothesis import event, given

from cockpit.sched.cycle import cycle
from cockpit.sched.index import refreshed
from cockpit.sched.sequel import following, may_start
from tests.sched.random_worlds import act, histories, policies, some_nodes
from tests.sched.test_properties import quick
from tests.sched.world import World, node, wants


@pytest.mark.req("SC-14")
@quick
@given(some_nodes(), histories(), policies)
def test_where_nobody_may_start_a_pass_starts_nobody(nodes, history, policy) -> None:
    world = World(*nodes, policy=policy)
    left_out = 0
    for step in history:
        act(world, step)
        snapshot = world.snapshot()
        if not may_start(world.plan, snapshot, refreshed(None, snapshot)):
            left_out += 1
            assert not cycle(snapshot, None, policy).starts
        else:
            world.run()
    event(f"left out {min(left_out, 3)} passes")


@pytest.mark.req("SC-14")
@quick
@given(some_nodes(), histories(), policies)
def test_an_index_that_nobody_shares_goes_on_as_the_one_that_is_made_from_nothing(nodes, history, policy) -> None:
    world = World(*nodes, policy=policy)
    for step in history:
        act(world, step)
        snapshot = world.snapshot()
        index, anew = following(world.plan, snapshot), refreshed(None, snapshot)
        assert index.rooms == anew.rooms
        assert (index.placed, index.ends, index.departures) == (anew.placed, anew.ends, anew.departures)
        assert (index.by_whole, index.by_hole) == (anew.by_whole, anew.by_hole)
        assert (index.widest, index.most_cards) == (anew.widest, anew.most_cards)
        index.version, index.shared = snapshot.version, False
        world.carry_out(world.planned(cycle(snapshot, index, policy)))


@pytest.mark.req("SC-14")
def test_a_start_that_did_not_come_true_leaves_its_room() -> None:
    world = World(node("n1", cpus=4))
    job = world.submit(wants(cpus=3))
    last = world.cycle()
    assert [start.job for start in last.starts] == [job]
    world.withdraw(job)
    assert following(last, world.snapshot()).rooms[0].cpus == 4


@pytest.mark.req("SC-14")
def test_a_job_that_came_and_went_since_has_left_its_room() -> None:
    world = World(node("n1", cpus=4))
    job = world.submit(wants(cpus=3))
    last = world.run()
    world.end(job)
    assert following(last, world.snapshot()).rooms[0].cpus == 4
    assert not following(last, world.snapshot()).departures
