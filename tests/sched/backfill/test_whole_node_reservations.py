"""Conservative backfill that reserves whole nodes, as Slurm's does."""

from __future__ import annotations

import pytest

from cockpit.model.cluster import Backfill, BackfillKind
from cockpit.model.reasons import WouldDelay
from cockpit.sched.policy import Policy
from tests.sched.world import World, cards, node, spec_of, wants

pytestmark = pytest.mark.req("SC-06", "SL-14")
HOUR = 3600


def world(*, whole: bool, nodes: int = 1) -> World:
    backfill = Backfill(kind=BackfillKind.CONSERVATIVE, window_seconds=48 * HOUR, whole_nodes=whole)
    made = World(*(node(f"n{n + 1}", cards(4), cpus=8) for n in range(nodes)), policy=Policy(backfill=backfill))
    running = made.submit(wants(cpus=6), limit=HOUR)
    assert [start.job for start in made.run().starts] == [running]
    return made


def starts(made: World) -> dict[int, int | None]:
    """When each waiting job starts, in seconds; None: now."""
    plan = made.run()
    waiting = {each.job: (each.reserved_at - made.now) // 1000 for each in plan.reservations}
    return waiting | {each.job: None for each in plan.starts}


def test_a_job_that_fits_beside_a_reservation_waits_behind_it_all_the_same() -> None:
    for whole in (False, True):
        made = world(whole=whole)
        ahead = made.submit(wants(cpus=4), limit=HOUR)
        beside = made.submit(wants(cpus=1), limit=2 * HOUR)
        assert starts(made) == {ahead: HOUR, beside: 2 * HOUR if whole else None}


def test_a_job_that_ends_before_the_reservation_starts_now() -> None:
    made = world(whole=True)
    made.submit(wants(cpus=4), limit=HOUR)
    short = made.submit(wants(1000, cpus=1), limit=HOUR // 2)
    assert starts(made)[short] is None


def test_other_nodes_stay_open() -> None:
    made = world(whole=True, nodes=2)
    ahead = made.submit_spec(spec_of(wants(cpus=8), pins=("n1",), limit=HOUR))
    other = made.submit(wants(1000, cpus=1), limit=2 * HOUR)
    assert starts(made) == {ahead: HOUR, other: None}


def test_the_reason_is_the_job_that_would_be_delayed() -> None:
    made = world(whole=True)
    ahead = made.submit(wants(cpus=4), limit=HOUR)
    beside = made.submit(wants(cpus=1), limit=2 * HOUR)
    made.run()
    reason = made.reason(beside)
    assert isinstance(reason, WouldDelay)
    assert reason.ahead == ahead
