"""What each member of a fleet has for a waiting job, and when the job would start on that member alone."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from cockpit.engine import prediction
from cockpit.engine.access import Actor
from cockpit.model.ids import JobId
from cockpit.model.node import NodeState
from cockpit.model.reasons import Resource
from cockpit.sched.forecast.history import history_of
from cockpit.sched.forecast.predict import StartPredictor
from cockpit.sched.policy import Policy
from tests.builders import ANN, a_spec
from tests.engine.fleet_driver import COUNTING, RESERVING, FleetDriver
from tests.engine.test_fleet import TOLERATED, filled, fleet, machines


def outlook_of(driver: FleetDriver, job: JobId):
    snapshot = driver.machine.peek(driver.now).frozen()
    predictor = StartPredictor(snapshot, None, Policy(), history_of(driver.machine.state.jobs.values()))
    changed = prediction.changes(driver.machine, driver.job(job), Actor(ANN, admin=False), predictor)
    return prediction.outlook(predictor, driver.job(job), changed)


@pytest.mark.req("FL-06")
def test_both_modes_say_how_much_fits_by_their_own_way_of_counting() -> None:
    """Six cards are free in all, three on each of two nodes."""
    driver = fleet(a=(COUNTING, machines(2)), b=(RESERVING, machines(2)))
    filled(driver, "a", 5, 5)
    filled(driver, "b", 5, 5)
    driver.submit(a_spec("first", card_milli=6000, partitions=("b",)))
    (job,) = driver.submit(a_spec("waits", nodes=2, card_milli=4000, partitions=("a", "b")))
    driver.settle()
    by_totals, by_nodes = outlook_of(driver, job).members
    assert (by_totals.fitting, by_nodes.fitting) == (1, 0)
    assert (by_totals.card_milli, by_totals.free_card_milli, by_totals.short) == (8000, 6000, Resource.CARDS)


@pytest.mark.req("FL-08")
def test_a_member_without_nodes_in_service_and_one_that_tried_in_vain_say_so() -> None:
    driver = fleet(
        a=(COUNTING, machines(2)),
        b=(COUNTING, [replace(n, state=NodeState.DRAINED, state_reason="cut off") for n in machines(1)]),
    )
    filled(driver, "a", 5, 5)
    (job,) = driver.submit(a_spec(card_milli=6000, partitions=("a", "b")))
    driver.settle()
    since = driver.now + TOLERATED
    driver.after(TOLERATED)
    first, second = outlook_of(driver, job).members
    assert (first.cluster, first.in_vain_at, first.fitting) == ("a", since, 1)
    assert (second.out, second.fitting, second.likely_at) == ("cut off", 0, None)


@pytest.mark.req("FL-06")
def test_a_job_that_waits_for_others_learns_where_it_would_start_now() -> None:
    driver = fleet(a=(RESERVING, machines(1)), b=(RESERVING, machines(1)))
    filled(driver, "a", 8)
    driver.submit(a_spec("ahead", card_milli=8000, partitions=("b",)))
    (job,) = driver.submit(a_spec("waits", card_milli=8000))
    driver.settle()
    on = {each.cluster: each for each in outlook_of(driver, job).members}
    assert set(on) == {"a", "b"}
    assert on["b"].likely_at is not None
    assert (on["a"].free_card_milli, on["a"].short) == (0, Resource.CARDS)
