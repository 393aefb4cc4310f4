"""Where the policy promises a latest start, and where there is only a range of likely ones."""

from __future__ import annotations

import pytest

from cockpit.model.cluster import (
    Backfill,
    BackfillKind,
    Cluster,
    Partition,
    Preemption,
    PreemptType,
    Priority,
    PriorityKind,
    Reservation,
    Weights,
)
from cockpit.model.fleet import Member
from cockpit.model.forecast import NoBound
from cockpit.model.ids import JobId, Millis, NodeName
from cockpit.sched.forecast.bounds import LONGEST_REORDERED, SOONEST, SOONEST_REORDERED, likely_range
from cockpit.sched.forecast.history import History
from cockpit.sched.forecast.predict import StartPredictor
from cockpit.sched.policy import Policy
from tests.sched.world import World, node, wants

HOUR = 3600
EASY, OFF, CONSERVATIVE = (
    Policy(backfill=Backfill(kind=kind)) for kind in (BackfillKind.EASY, BackfillKind.OFF, BackfillKind.CONSERVATIVE)
)
BASIC = Priority(kind=PriorityKind.BASIC)


def multifactor(**weights: int) -> Cluster:
    return Cluster(priority=Priority(kind=PriorityKind.MULTIFACTOR, weights=Weights(**weights)))


def line(policy: Policy, cluster: Cluster | None = None, **record) -> list[tuple[Millis | None, NoBound | None]]:
    """The latest starts of three jobs that wait, one behind the other, for a node that is in use for an hour."""
    world = World(node("n1", 1), policy=policy, cluster=cluster or Cluster())
    world.submit(wants(1000), limit=HOUR, record=record)
    world.run()
    jobs = [world.submit(wants(1000), limit=HOUR, record=record) for _ in range(3)]
    seer = StartPredictor(world.snapshot(), None, policy, History())
    found = [seer.forecast(job) for job in jobs]
    assert all(each.likely_from <= each.likely_at <= each.likely_to for each in found)
    assert all(each.latest_at is None or each.likely_at <= each.likely_to <= each.latest_at for each in found)
    return [(each.latest_at and each.latest_at // (1000 * HOUR), each.no_bound) for each in found]


@pytest.mark.req("SC-12")
def test_in_order_of_submission_the_reservation_is_the_bound() -> None:
    each = [(1, None), (2, None), (3, None)]
    assert line(CONSERVATIVE) == each
    assert line(OFF) == each
    assert line(EASY) == [each[0], *[(None, NoBound.NO_RESERVATION)] * 2]


@pytest.mark.req("SC-12")
@pytest.mark.parametrize("policy", [EASY, OFF, CONSERVATIVE])
@pytest.mark.parametrize(
    ("cluster", "why"),
    [
        (multifactor(age=1000), NoBound.PRIORITIES_CHANGE),
        (multifactor(fairshare=1000, qos=10), NoBound.PRIORITIES_CHANGE),
        (multifactor(qos=1000), NoBound.LATER_SUBMISSIONS),
        (Cluster(preemption=Preemption(kind=PreemptType.QOS, mode=("REQUEUE",))), NoBound.PREEMPTION),
        (Cluster(members=(Member(name="east", kubernetes="1.28", scheduler="6.8.0"),)), NoBound.OTHER_CLUSTERS),
    ],
)
def test_no_bound_where_the_order_may_change_or_resources_may_be_taken(
    policy: Policy, cluster: Cluster, why: NoBound
) -> None:
    assert {found for _, found in line(policy, cluster)} == {why}
    assert {at for at, _ in line(policy, cluster)} == {None}


@pytest.mark.req("SC-12")
@pytest.mark.parametrize(
    ("above", "why"),
    [
        (Partition(name="urgent", priority_tier=2), NoBound.LATER_SUBMISSIONS),
        (Partition(name="urgent", priority_tier=2, nodes=(NodeName("n2"),)), None),
        (Partition(name="lesser", priority_tier=0), None),
    ],
)
def test_a_higher_tier_removes_the_bound_where_it_shares_nodes(above: Partition, why: NoBound | None) -> None:
    cluster = Cluster(partitions=(Partition(name="work", nodes=(NodeName("n1"),)), above))
    assert {found for _, found in line(CONSERVATIVE, cluster, partitions=("work",))} == {why}


@pytest.mark.req("SC-12")
def test_a_job_stopped_by_a_limit_or_a_dependency_has_no_reservation() -> None:
    world = World(node("n1", 1), policy=CONSERVATIVE)
    world.submit(wants(1000), limit=HOUR)
    world.run()
    later = world.submit(wants(1000), limit=HOUR, begin_at=Millis(5000 * HOUR))
    found = StartPredictor(world.snapshot(), None, world.policy, History()).forecast(later)
    assert (found.likely_at, found.latest_at, found.no_bound) == (5000 * HOUR, None, NoBound.NO_RESERVATION)


@pytest.mark.req("SC-12")
def test_a_job_that_starts_now_needs_no_range() -> None:
    world = World(node("n1", 1), cluster=multifactor(age=1))
    free = world.submit(wants(1000))
    found = StartPredictor(world.snapshot(), None, world.policy, History()).forecast(free)
    assert found.now
    assert {found.likely_from, found.likely_at, found.likely_to, found.latest_at} == {world.now}


@pytest.mark.req("SC-12")
def test_a_job_that_is_not_queued_has_no_forecast() -> None:
    world = World(node("n1", 1))
    runs = world.submit(wants(1000))
    world.run()
    seer = StartPredictor(world.snapshot(), None, world.policy, History())
    assert seer.forecast(runs).likely_at is seer.forecast(JobId(99)).likely_at is None


@pytest.mark.req("SC-12")
def test_the_range_is_wider_where_later_jobs_may_come_ahead() -> None:
    now, likely, end = Millis(1000), Millis(10_000), Millis(12_000)
    assert likely_range(now, likely, end, None) == (1000 + 9000 * SOONEST, end)
    wider = 1000 + 9000 * SOONEST_REORDERED, 1000 + 9000 * LONGEST_REORDERED
    assert likely_range(now, likely, end, NoBound.PRIORITIES_CHANGE) == wider
    assert likely_range(now, likely, None, None)[1] == likely


@pytest.mark.req("SC-10", "SC-12")
def test_a_reservation_made_past_a_job_that_an_advance_reservation_keeps_off_is_no_bound() -> None:
    """Without backfill that job is passed over for now, but goes first again once the advance reservation is over."""
    kept = Reservation(name="kept", nodes=("n1",), start_at=0, end_at=1000 * HOUR, users=("bob",))
    world = World(node("n1", 2), node("n2", 1), policy=OFF, reservations={"kept": kept})
    world.submit(wants(1000), limit=3 * HOUR, pins=("n2",))
    world.run()
    world.submit(wants(2000), limit=4 * HOUR)
    behind = world.submit(wants(1000), limit=2 * HOUR)
    plan = world.run()
    assert [(each.job, each.reserved_at) for each in plan.reservations] == [(behind, 1000 * HOUR)]
    seer = StartPredictor(world.snapshot(), None, OFF, History())
    forecast = seer.forecast(behind)
    assert (forecast.likely_at, forecast.latest_at) == (3000 * HOUR, 3000 * HOUR + 30_000)


@pytest.mark.req("SC-06", "SC-12")
def test_a_start_between_two_steps_of_the_resolution_on_another_node_leaves_no_bound_behind_it() -> None:
    """The plan has the wide job at minute 2, on n2, where two jobs end a moment after the one on n1."""
    policy = Policy(backfill=Backfill(kind=BackfillKind.CONSERVATIVE, resolution_seconds=60))
    world = World(node("n1", 1, cpus=7), node("n2", cpus=4), policy=policy)
    world.submit(wants(1000, cpus=2), limit=200, pins=("n1",))
    world.submit(wants(cpus=4), limit=90, pins=("n1",))
    world.submit(wants(cpus=4), limit=91, pins=("n2",))
    world.run()
    wide = world.submit(wants(cpus=4), limit=1000)
    card = world.submit(wants(1000, cpus=4), limit=100)
    seer = StartPredictor(world.snapshot(), None, policy, History())
    promised = {each.job: each.reserved_at for each in world.run().reservations}
    assert promised == {wide: 120_000, card: 240_000}
    assert seer.forecast(card).no_bound is NoBound.ROUNDED
    assert seer.forecast(card).likely_at == 1_090_000
