"""Prices that change while the engine runs: starts and growth follow, and workers stay unless the job says no."""

from __future__ import annotations

from datetime import UTC

import pytest

from cockpit.engine import decide
from cockpit.engine.nodes import pricing
from cockpit.model import events
from cockpit.model.attempt import EndCause, Grounds
from cockpit.model.ids import JobId, NodeName
from cockpit.model.job import JobState
from cockpit.model.reasons import NoEligibleNode, never_starts
from cockpit.model.resilience import NoGrowth
from cockpit.present.reasons import reason_sentence
from cockpit.sched.explain import reason_of
from tests.builders import SECOND, a_node, a_spec
from tests.engine.driver import EngineDriver
from tests.engine.test_workers import elastic, ends, grow, told


def market(*prices: int, **fields: object) -> EngineDriver:
    """Nodes n1, n2 … with these present prices, in thousandths."""
    driver = EngineDriver(*(a_node(f"n{number}", cpus=4, **fields) for number, _ in enumerate(prices, 1)))
    cost(driver, *prices)
    return driver


def cost(driver: EngineDriver, *prices: int) -> None:
    present = {NodeName(f"n{number}"): price for number, price in enumerate(prices, 1)}
    driver.act(pricing.prices_changed(driver.machine, present, driver.now))


def paying(name: str, least: int, wanted: int, most: int, **fields: object):
    return elastic(name, least, wanted, most, spot=True, max_price_milli=400, qos=None, **fields)


def placed(driver: EngineDriver, job: JobId) -> list[str]:
    return [str(part.node) for part in driver.job(job).attempt.placement]


@pytest.mark.req("EL-01", "SC-20")
def test_a_job_waits_until_a_node_costs_little_enough_and_its_reason_has_the_present_price() -> None:
    driver = market(500, 600)
    (job,) = driver.submit(paying("train", 1, 1, 2))
    driver.schedule()
    reason = reason_of(driver.plan, driver.job(job))
    assert reason == NoEligibleNode(labels=("price<=0.4",), prices=(("n1", 500), ("n2", 600)))
    assert not never_starts(reason)
    sentence = reason_sentence(reason, driver.now, UTC)
    assert sentence == "asks for label price<=0.4; n1 costs 0.5 and n2 costs 0.6 now"
    cost(driver, 500, 400)
    driver.schedule()
    assert placed(driver, job) == ["n2"]


@pytest.mark.req("EL-01")
def test_growth_follows_the_price_and_a_rise_takes_no_worker_away() -> None:
    driver = market(300, 500, 500)
    (job,) = driver.run(paying("train", 1, 1, 3))
    grow(driver)
    assert placed(driver, job) == ["n1"]
    assert driver.plan.scheduling_pass.no_growth[job] is NoGrowth.PRICE_TOO_HIGH
    cost(driver, 300, 500, 350)
    grow(driver)
    assert placed(driver, job) == ["n1", "n3"]
    cost(driver, 900, 900, 900)
    assert told(driver, events.WorkersRecalled) == []
    assert driver.job(job).ending is None


@pytest.mark.req("EL-01")
def test_no_free_node_at_any_price_is_not_a_matter_of_price() -> None:
    driver = market(300, 500)
    driver.run(a_spec("other", cpus=4, node_names=("n2",)))
    (job,) = driver.run(paying("train", 1, 1, 3))
    grow(driver)
    assert driver.plan.scheduling_pass.no_growth[job] is NoGrowth.NO_FREE_NODE


@pytest.mark.req("EL-01", "EL-02")
def test_workers_leave_nodes_that_became_too_dear_where_the_job_says_so() -> None:
    driver = market(300, 300, 300)
    (job,) = driver.run(paying("train", 1, 3, 3, shrink_above_price=True))
    cost(driver, 300, 500, 500)
    kill_at = driver.now + 300 * SECOND
    assert told(driver, events.WorkersRecalled) == [events.WorkersRecalled(job, (1, 2), kill_at, None, Grounds.PRICE)]
    for rank in (1, 2):
        ends(driver, job, rank, code=255)
    assert (placed(driver, job), driver.job(job).retries) == (["n1"], 0)
    grow(driver)
    assert placed(driver, job) == ["n1"]


@pytest.mark.req("EL-01", "EL-04")
def test_a_job_of_which_too_few_workers_are_left_is_suspended_until_the_price_falls() -> None:
    driver = market(300, 300)
    (job,) = driver.run(paying("train", 2, 2, 2, shrink_above_price=True, grace_seconds=10))
    cost(driver, 300, 500)
    ending = driver.job(job).ending
    assert (ending.cause, ending.kill_at, ending.grounds) == (
        EndCause.RECLAIMED,
        driver.now + 10 * SECOND,
        Grounds.PRICE,
    )
    for rank in (0, 1):
        driver.ended(job, rank, code=255)
    assert driver.job(job).shown_state is JobState.SUSPENDED
    driver.schedule()
    assert driver.job(job).shown_state is JobState.SUSPENDED
    cost(driver, 300, 400)
    driver.schedule()
    assert driver.job(job).state is JobState.RESUMING


@pytest.mark.req("EL-01")
def test_prices_that_are_known_make_no_event_and_those_of_other_nodes_are_ignored() -> None:
    driver = market(300)
    assert pricing.prices_changed(driver.machine, {NodeName("n1"): 300, NodeName("n9"): 1}, driver.now) == []
    assert pricing.prices_changed(driver.machine, {}, driver.now) == [events.PricesChanged({})]


@pytest.mark.req("EL-01")
def test_a_restart_keeps_the_present_price_and_labels_count_where_there_is_none() -> None:
    driver = market(300, labels={"price": "0.9"})
    assert decide.nodes_changed(driver.machine, [a_node("n1", cpus=4, labels={"price": "0.9"})]) == []
    driver.act(pricing.prices_changed(driver.machine, {}, driver.now))
    refused = driver.act(decide.nodes_changed(driver.machine, [a_node("n1", cpus=4, labels={"price": "0.1"})]))
    assert refused is None
    (job,) = driver.run(paying("train", 1, 1, 1))
    assert driver.job(job).state is JobState.RUNNING
