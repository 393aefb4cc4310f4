"""What a pass takes over from the last one, and which pass can be left out."""

from __future__ import annotations

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from cockpit.model.cluster import Backfill, BackfillKind, Cluster, Enforce
from cockpit.model.ids import JobId, Millis
from cockpit.model.job import ArrayTask
from cockpit.sched.cycle import cycle
from cockpit.sched.incremental import can_start_any, next_index
from cockpit.sched.index import refresh_index
from cockpit.sched.policy import Policy
from tests.sched.lab import tree
from tests.sched.random_worlds import act, histories, policies, some_nodes
from tests.sched.ruled_worlds import RuledWorld
from tests.sched.test_properties import quick
from tests.sched.world import World, node, wants


@pytest.mark.req("SC-14")
@quick
@given(some_nodes(), histories(), policies)
def test_a_pass_starts_no_job_where_none_may_start(nodes, history, policy) -> None:
    world = World(*nodes, policy=policy)
    left_out = 0
    for step in history:
        act(world, step)
        snapshot = world.snapshot()
        if not can_start_any(world.plan, snapshot, refresh_index(None, snapshot)):
            left_out += 1
            assert not cycle(snapshot, None, policy).starts
        else:
            world.run()
    event(f"left out {min(left_out, 3)} passes")


@pytest.mark.req("SC-14")
@quick
@given(some_nodes(), histories(), policies)
def test_an_unshared_index_is_updated_to_equal_one_built_from_scratch(nodes, history, policy) -> None:
    world = World(*nodes, policy=policy)
    for step in history:
        act(world, step)
        snapshot = world.snapshot()
        index, anew = next_index(world.plan, snapshot), refresh_index(None, snapshot)
        assert index.nodes_free == anew.nodes_free
        assert (index.placed, index.ends, index.departures) == (anew.placed, anew.ends, anew.departures)
        assert (index.by_whole, index.by_hole) == (anew.by_whole, anew.by_hole)
        assert (index.most_cpus, index.most_cards) == (anew.most_cpus, anew.most_cards)
        index.version, index.shared = snapshot.version, False
        world.carry_out(world.planned(cycle(snapshot, index, policy)))


@pytest.mark.req("SC-14")
def test_resources_of_a_start_that_did_not_happen_are_free_again() -> None:
    world = World(node("n1", cpus=4))
    job = world.submit(wants(cpus=3))
    last = world.cycle()
    assert [start.job for start in last.starts] == [job]
    world.withdraw(job)
    assert next_index(last, world.snapshot()).nodes_free[0].cpus == 4


@pytest.mark.req("SC-14")
def test_resources_of_a_job_that_came_and_ended_between_passes_are_free_again() -> None:
    world = World(node("n1", cpus=4))
    job = world.submit(wants(cpus=3))
    last = world.run()
    world.end(job)
    assert next_index(last, world.snapshot()).nodes_free[0].cpus == 4
    assert not next_index(last, world.snapshot()).departures


@pytest.mark.req("SC-03", "SC-14")
@pytest.mark.parametrize("kind", [BackfillKind.EASY, BackfillKind.CONSERVATIVE])
@pytest.mark.parametrize("by", ["limit", "array"])
def test_a_job_that_a_limit_stops_after_a_later_start_has_no_reservation(kind: BackfillKind, by: str) -> None:
    world = World(
        node("n1", cpus=4),
        policy=Policy(backfill=Backfill(kind=kind)),
        cluster=Cluster(enforce=(Enforce.LIMITS,) if by == "limit" else ()),
        accounts=tree(user={"grp_jobs": 1}) if by == "limit" else tree(),
    )
    world.submit(wants(cpus=2), limit=1000, record={"account": "other"})
    world.run()

    def task(index: int) -> dict:
        return {"account": "nlp", "array": ArrayTask(JobId(2), index, 1, 2) if by == "array" else None}

    stopped = world.submit(wants(cpus=4), limit=1000, record=task(0))
    behind = world.submit(wants(cpus=1), limit=10, record=task(1))
    assert [start.job for start in world.run().starts] == [behind]
    long = world.submit(wants(cpus=1), limit=5000, record={"account": "other"})
    plan = world.run()
    assert [start.job for start in plan.starts] == [long]
    assert stopped in {job.id for job in world.queue}


@pytest.mark.req("SC-14")
@pytest.mark.parametrize("kind", BackfillKind)
@quick
@given(st.integers(0, 2**32))
def test_under_rules_an_incremental_pass_equals_a_full_pass(kind: BackfillKind, seed: int) -> None:
    world = RuledWorld(seed, kind)
    for _ in range(15):
        world.step()
        anew, plan = cycle(world.snapshot(), None, world.policy), world.cycle()
        assert (plan.starts, plan.reservations) == (anew.starts, anew.reservations)
        world.carry_out(plan)


@pytest.mark.req("JT-09", "SC-04")
def test_an_alternative_that_delays_no_job_starts_where_the_one_before_it_would_delay_one() -> None:
    world = World(node("n1", cpus=8))
    runs = world.submit(wants(cpus=4), limit=100)
    head = world.submit(wants(cpus=6))
    job = world.submit(wants(cpus=3), wants(cpus=1))
    plan = world.cycle()
    assert [(start.job, start.spec_index) for start in plan.starts] == [(runs, 0), (job, 1)]
    assert plan.reservation is not None
    assert plan.reservation.job == head


@pytest.mark.req("SC-14", "SC-06")
def test_a_gang_that_would_have_delayed_the_head_is_tried_again_once_its_nodes_change() -> None:
    world = World(node("n1", cpus=4), node("n2", cpus=4), node("n3", cpus=8))
    for name in ("n1", "n2"):
        world.submit(wants(cpus=1), limit=100, pins=(name,))
    world.submit(wants(cpus=4), nodes=2)  # the head: two of the three, once those have gone
    gang = world.submit(wants(cpus=2), nodes=2)  # n1 and n2 are the tightest, and would leave the head one node
    world.run()
    world.submit(wants(cpus=2), limit=50, pins=("n2",))
    assert len(world.run().starts) == 1
    last = world.submit(wants(cpus=1), pins=("n3",))
    assert [start.job for start in world.cycle().starts] == [gang, last]


@pytest.mark.req("SC-14", "SC-04")
@pytest.mark.parametrize("passes", [1, 2])
def test_a_job_that_has_started_does_not_count_to_the_depth_of_later_passes(passes: int) -> None:
    """Also after a pass at the same moment, which finds nothing new."""
    world = World(node("n1", cpus=8), policy=Policy(backfill=Backfill(kind=BackfillKind.EASY, depth=1 + passes)))
    world.submit(wants(cpus=4), limit=1000)
    world.submit(wants(cpus=8), limit=1000)  # the head
    small = world.submit(wants(cpus=1), limit=10)
    assert [start.job for start in world.run().starts][-1] == small
    for _ in range(passes - 1):
        assert not world.run().starts
    world.submit(wants(cpus=5), limit=10)
    arrival = world.submit(wants(cpus=1), limit=10)
    starts = [start.job for start in world.cycle().starts]
    assert starts == [start.job for start in cycle(world.snapshot(), None, world.policy).starts]
    assert starts == ([arrival] if passes == 2 else [])


@pytest.mark.req("SC-14", "SC-04")
@pytest.mark.parametrize("kind", [BackfillKind.EASY, BackfillKind.CONSERVATIVE])
@pytest.mark.parametrize("rule", ["window_seconds", "resolution_seconds"])
def test_a_pass_with_a_window_or_rounded_moments_takes_no_verdict_over_from_the_last_one(
    kind: BackfillKind, rule: str
) -> None:
    """The head's reservation begins in 100 s, at first beyond the window of 50 s."""
    world = World(node("n1", cpus=4), policy=Policy(backfill=Backfill(kind=kind, **{rule: 50})))
    world.submit(wants(cpus=2), limit=100)
    world.run()
    world.submit(wants(cpus=4), limit=100)
    world.run()
    for seconds in (20, 60, 90):
        world.now = Millis(1000 * seconds)
        world.submit(wants(cpus=1), limit=1000)
        anew, plan = cycle(world.snapshot(), None, world.policy), world.cycle()
        assert (plan.starts, plan.reservations) == (anew.starts, anew.reservations)
        world.carry_out(plan)
