from __future__ import annotations

import pytest

from cockpit.model.cluster import Backfill, BackfillKind, Reservation
from cockpit.model.ids import Millis, NodeName
from cockpit.model.reasons import BehindHead, NodesReserved, NotEnoughFree, WouldDelay
from cockpit.model.spec import WorkerPool
from cockpit.sched.backfill.conservative import Conservative
from cockpit.sched.policy import Policy
from tests.sched.world import World, node, spec_of, wants


def busy(*, policy: Policy | None = None) -> tuple[World, int]:
    """Two nodes of four cards; two cards of n1 are busy until 10:00, and a gang of two whole nodes waits."""
    world = World(node("n1", 4), node("n2", 4), policy=policy)
    world.submit(wants(2000), limit=10, pins=("n1",))
    world.run()
    return world, world.submit(wants(4000), nodes=2, limit=100)


def stuck(*, policy: Policy | None = None) -> tuple[World, int]:
    """A node of four cards, two of which are held with no known end, and a job that needs three."""
    world = World(node("n1", 4), policy=policy)
    kept = world.submit(wants(2000))
    world.run()
    world.keep_cards(kept)
    return world, world.submit(wants(3000))


@pytest.mark.req("SC-14")
def test_the_first_job_that_waits_gets_a_reservation_when_running_jobs_end_by_their_limits() -> None:
    world, head = busy()
    reservation = world.run().reservation
    assert (reservation.job, reservation.reserved_at, reservation.spec_index) == (head, 10_000, 0)
    assert [part.node for part in reservation.placement] == ["n1", "n2"]
    assert isinstance(world.reason(head), NotEnoughFree)


@pytest.mark.req("SC-14")
def test_a_later_job_passes_if_it_ends_by_then() -> None:
    world, head = busy()
    short, long = world.submit(wants(1000), limit=10), world.submit(wants(1000), limit=11)
    assert [start.job for start in world.run().starts] == [short]
    assert world.reason(long) == WouldDelay(head, 10_000)


@pytest.mark.req("SC-14")
def test_a_long_job_does_not_pass_after_a_short_one_of_its_shape_nor_blocks_another_short_one() -> None:
    world, _ = busy()
    long, short = world.submit(wants(1000), limit=11), world.submit(wants(1000), limit=9)
    assert [start.job for start in world.run().starts] == [short]
    assert isinstance(world.reason(long), WouldDelay)


@pytest.mark.req("SC-14")
def test_a_later_job_passes_if_the_head_still_fits_beside_it() -> None:
    world = World(node("n1", 8))
    world.submit(wants(4000), limit=10)
    world.run()
    world.submit(wants(6000), limit=100)
    beside, too_much = world.submit(wants(2000), limit=100), world.submit(wants(1000), limit=100)
    assert [start.job for start in world.run().starts] == [beside]
    assert isinstance(world.reason(too_much), WouldDelay)


@pytest.mark.req("SC-14")
def test_a_long_job_avoids_the_head_s_nodes_when_its_best_fit_would_delay_the_head() -> None:
    world = World(node("n1", 4), node("n2", 6))
    world.submit(wants(3000), pins=("n1",), limit=10)
    world.run()
    head = world.submit(wants(4000), wants(7000), pins=("n1",))
    job = world.submit(wants(1000), limit=100)
    world.run()
    assert list(world.where(job)) == ["n2"]
    assert world.plan.reservation.job == head


@pytest.mark.req("SC-14")
def test_the_head_moves_to_other_nodes_rather_than_stop_a_job() -> None:
    world = World(node("n1", 4), node("n2", 4), node("n3", 4))
    for pin in ("n1", "n2", "n3"):
        world.submit(wants(3000), pins=(pin,), limit=10)
    world.run()
    world.submit(wants(4000), nodes=2)
    passing = [world.submit(wants(1000), limit=100) for _ in range(2)]
    plan = world.run()
    assert [start.job for start in plan.starts] == passing[:1]
    assert [part.node for part in plan.reservation.placement] == ["n2", "n3"]


@pytest.mark.req("SC-14")
def test_jobs_started_in_the_same_cycle_count_until_their_own_limits() -> None:
    world = World(node("n1", 2))
    world.submit(wants(2000), limit=7)
    world.submit(wants(2000))
    assert world.run().reservation.reserved_at == 7_000


@pytest.mark.req("SC-14")
def test_a_job_over_its_limit_is_expected_to_end_at_any_moment() -> None:
    world, _ = busy()
    world.now = 12_000
    assert world.run().reservation.reserved_at == 12_000


@pytest.mark.req("SC-14")
def test_a_held_or_impossible_job_gets_no_reservation_and_blocks_no_job() -> None:
    world = World(node("n1", 2))
    world.submit(wants(2000), held_by="root")
    world.submit(wants(9000))
    later = world.submit(wants(1000))
    plan = world.run()
    assert [start.job for start in plan.starts] == [later]
    assert plan.reservation is None


@pytest.mark.req("SC-14")
def test_only_the_first_waiting_job_has_a_reservation() -> None:
    world, head = busy()
    world.submit(wants(4000), limit=1000)
    assert world.run().reservation.job == head


@pytest.mark.req("SC-14")
def test_a_job_behind_a_held_container_of_unknown_end_gets_no_reservation_but_the_next_does() -> None:
    world = World(node("n1", 2), node("n2", 2))
    kept, other = world.submit(wants(1000), pins=("n1",)), world.submit(wants(1000), pins=("n2",), limit=5)
    world.run()
    world.keep_cards(kept)
    first, second = world.submit(wants(2000), pins=("n1",)), world.submit(wants(2000), nodes=1)
    plan = world.run()
    assert (plan.reservation.job, plan.reservation.reserved_at) == (second, 5_000)
    assert [part.node for part in plan.reservation.placement] == ["n2"]
    assert isinstance(world.reason(first), NotEnoughFree)
    assert other in world.occupied


@pytest.mark.req("SC-14")
def test_a_held_container_whose_end_is_known_counts_until_then() -> None:
    world = World(node("n1", 2))
    kept = world.submit(wants(1000))
    world.run()
    world.occupy(kept, world.occupied[kept], ends=8_000)
    world.submit(wants(2000))
    assert world.run().reservation.reserved_at == 8_000


@pytest.mark.req("SC-14")
def test_the_reservation_is_for_the_alternative_that_fits_earliest() -> None:
    world = World(node("n1", 4), node("n2", 2))
    world.submit(wants(4000), pins=("n1",), limit=20)
    world.submit(wants(1000), pins=("n2",), limit=10)
    world.run()
    world.submit(wants(4000), wants(2000))
    reservation = world.run().reservation
    assert (reservation.spec_index, reservation.reserved_at, reservation.placement[0].node) == (1, 10_000, "n2")


@pytest.mark.req("SC-14")
def test_without_backfill_no_job_passes_the_head() -> None:
    world, head = busy(policy=Policy(backfill=Backfill(kind=BackfillKind.OFF)))
    short, shorter = world.submit(wants(1000), limit=2), world.submit(wants(1000), limit=1)
    plan = world.run()
    assert plan.starts == ()
    assert plan.reservation.reserved_at == 10_000
    assert world.reason(short) == world.reason(shorter) == BehindHead(head)


@pytest.mark.req("SC-06")
def test_without_backfill_no_job_passes_a_head_of_unknown_start_either() -> None:
    world, head = stuck(policy=Policy(backfill=Backfill(kind=BackfillKind.OFF)))
    short = world.submit(wants(1000), limit=1)
    plan = world.run()
    assert (plan.starts, plan.reservations) == ((), ())
    assert world.reason(short) == BehindHead(head)


@pytest.mark.req("SC-06")
def test_a_head_that_starts_beyond_the_window_blocks_no_job() -> None:
    for window, starts in ((9, True), (10, False)):
        world, _ = busy(policy=Policy(backfill=Backfill(window_seconds=window)))
        long = world.submit(wants(1000), limit=1000)
        plan = world.run()
        assert [start.job for start in plan.starts] == [long] * starts
        assert (plan.reservation is None) == starts


@pytest.mark.req("SC-06")
def test_the_head_s_start_is_rounded_up_to_the_resolution() -> None:
    world, _ = busy(policy=Policy(backfill=Backfill(resolution_seconds=4)))
    passing = world.submit(wants(1000), limit=12)
    plan = world.run()
    assert plan.reservation.reserved_at == 12_000
    assert [start.job for start in plan.starts] == [passing]


@pytest.mark.req("SC-06")
def test_jobs_beyond_the_depth_are_not_examined() -> None:
    world, head = busy(policy=Policy(backfill=Backfill(depth=2)))
    first = world.submit(wants(1000), limit=10)
    second = world.submit(wants(1000, cpus=2), limit=10)
    assert [start.job for start in world.run().starts] == [first]
    assert world.reason(second) == BehindHead(head)


@pytest.mark.req("SC-06")
def test_depth_counts_from_the_first_job_that_waits() -> None:
    world = World(node("n1", 4), policy=Policy(backfill=Backfill(depth=1)))
    starting = [world.submit(wants(1000)) for _ in range(3)]
    head = world.submit(wants(2000))
    behind = world.submit(wants(1000), limit=1)
    assert [start.job for start in world.run().starts] == starting
    assert isinstance(world.reason(head), NotEnoughFree)
    assert world.reason(behind) == BehindHead(head)


@pytest.mark.req("SC-06")
def test_conservative_backfill_reports_free_nodes_that_do_not_last_within_the_window() -> None:
    """One of three cards is free now, but all are the head's from 0:10 on, until after the window."""
    backfill = Backfill(kind=BackfillKind.CONSERVATIVE, window_seconds=20)
    world = World(node("n1", 3), policy=Policy(backfill=backfill))
    world.submit(wants(2000), limit=10)
    world.run()
    head, other = world.submit(wants(3000), limit=100), world.submit(wants(1000), limit=11)
    world.run()
    assert [each.job for each in world.plan.reservations] == [head]
    assert world.reason(other) == WouldDelay(head, 10_000)


KEPT = {"kept": Reservation(name="kept", nodes=(NodeName("n1"),), start_at=15_000, end_at=60_000, users=("bob",))}


@pytest.mark.req("SC-06", "SC-10")
@pytest.mark.parametrize("kind", [BackfillKind.EASY, BackfillKind.CONSERVATIVE])
@pytest.mark.parametrize(("limit", "moment"), [(5, 10_000), (6, 60_000)])
def test_no_job_is_reserved_a_start_from_which_it_would_overlap_an_advance_reservation(
    kind: BackfillKind, limit: int, moment: int
) -> None:
    world = World(node("n1", 4), policy=Policy(backfill=Backfill(kind=kind)), reservations=KEPT)
    world.submit(wants(4000), limit=10)
    world.run()
    waiting = world.submit(wants(4000), limit=limit)
    world.run()
    assert [(each.job, each.reserved_at) for each in world.plan.reservations] == [(waiting, moment)]


@pytest.mark.req("SC-06", "SC-10")
@pytest.mark.parametrize(
    ("kind", "is_planned"),
    [(BackfillKind.EASY, True), (BackfillKind.CONSERVATIVE, True), (BackfillKind.OFF, False)],
)
def test_a_job_that_an_advance_reservation_keeps_off_is_planned_behind_it_where_there_is_backfill(
    kind: BackfillKind, is_planned: bool
) -> None:
    world = World(node("n1", 4), node("n2", 4), policy=Policy(backfill=Backfill(kind=kind)), reservations=KEPT)
    wide = world.submit(wants(4000), nodes=2, limit=20)
    longer, shorter = (world.submit(wants(4000), pins=("n2",), limit=limit) for limit in (100, 30))
    plan = world.run()
    assert world.reason(wide) == NodesReserved("kept", Millis(15_000), Millis(60_000))
    if is_planned:
        assert (plan.reservations[0].job, plan.reservations[0].reserved_at) == (wide, 60_000)
        assert [start.job for start in plan.starts] == [shorter]
        assert longer not in world.started_at
    else:
        assert plan.reservations[0].job == shorter
        assert [start.job for start in plan.starts] == [longer]


@pytest.mark.req("SC-06", "SC-10")
def test_unlike_replicas_are_planned_where_an_advance_reservation_ends_and_no_job_leaves() -> None:
    """Either replica would fit on n2 at once, but both together need n1 too."""
    policy = Policy(backfill=Backfill(kind=BackfillKind.CONSERVATIVE))
    world = World(node("n1", 4), node("n2", 4), policy=policy, reservations=KEPT)
    pools = tuple(WorkerPool(replicas=1, spec=each) for each in (wants(4000), wants(1000, cpus=2)))
    job = world.submit(pools[0].spec, worker_pools=pools, limit=20)
    assert [(each.job, each.reserved_at) for each in world.run().reservations] == [(job, 60_000)]


@pytest.mark.req("SC-06", "SC-10")
def test_a_job_too_long_for_its_advance_reservation_gets_no_planned_start() -> None:
    world = World(node("n1", 4), reservations=KEPT)
    world.now = 20_000
    inside = {"user": "bob"}
    world.submit_spec(spec_of(wants(4000), limit=30, reservation="kept"), **inside)
    world.run()
    too_long = world.submit_spec(spec_of(wants(4000), limit=11, reservation="kept"), **inside)
    assert world.run().reservations == ()
    world.withdraw(too_long)
    job = world.submit_spec(spec_of(wants(4000), limit=10, reservation="kept"), **inside)
    assert [(each.job, each.reserved_at) for each in world.run().reservations] == [(job, 50_000)]


@pytest.mark.req("SC-13")
def test_few_searches_find_the_job_that_many_equal_requests_would_delay(monkeypatch) -> None:
    searched = []
    look = Conservative.open_until
    monkeypatch.setattr(Conservative, "open_until", lambda *asked: searched.append(1) or look(*asked))
    world = World(node("n1", 4), policy=Policy(backfill=Backfill(kind=BackfillKind.CONSERVATIVE)))
    world.submit(wants(2000), limit=10)
    world.run()
    head = world.submit(wants(4000), limit=10)
    others = [world.submit(wants(1000), limit=60 + number) for number in range(50)]
    world.run()
    assert {world.reason(each) for each in others} == {WouldDelay(head, 10_000)}
    assert len(searched) < 10
