"""The details that a user sees of the jobs that an answer about a queued job names."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from cockpit.engine.access import Actor
from cockpit.engine.prediction import changes, outlook, shown_outlook
from cockpit.model.forecast import Change, Condition
from cockpit.model.ids import Millis
from cockpit.model.job import JobState
from cockpit.model.spec import Dependency, DependencyKind
from cockpit.sched.forecast.history import History
from cockpit.sched.forecast.predict import StartPredictor
from cockpit.sched.policy import Policy
from tests.builders import ANN, SECOND, a_card, a_node, a_spec
from tests.engine.driver import EngineDriver


@pytest.mark.req("SC-12", "JT-60")
def test_a_job_ahead_that_waits_for_other_cards_is_named_too() -> None:
    other = replace(a_node("n2"), cards=(a_card(0, "H100"),))
    driver = EngineDriver(a_node("n1", cards=1), other)
    runs, elsewhere = driver.run(
        a_spec("runs", card_milli=1000, card_models=("A100",)),
        a_spec("elsewhere", card_milli=1000, card_models=("H100",)),
    )
    ahead, waits = driver.submit(
        a_spec("ahead", card_milli=1000, card_models=("H100",)),
        a_spec("waits", card_milli=1000, card_models=("A100",)),
    )
    driver.schedule()
    foresight = StartPredictor(driver.machine.snapshot(driver.now), driver.plan, Policy(), History())
    found = outlook(foresight, driver.job(waits), ())
    shown = shown_outlook(Actor(ANN, admin=False), found, foresight.snapshot.jobs)
    assert {each.job for each in shown.named} == {ahead, runs}
    held = {each.job: (each.running, each.nodes, each.card_milli) for each in shown.named}
    assert held == {runs: (True, 1, driver.job(runs).spec.specs[0].card_milli), ahead: (False, 1, 1000)}
    assert shown.holding(elsewhere) is None


@pytest.mark.req("SC-12")
@pytest.mark.parametrize("kind", [DependencyKind.AFTER_ANY, DependencyKind.AFTER_OK])
def test_the_job_that_another_depends_on_is_shown_with_its_state_and_latest_end(kind: DependencyKind) -> None:
    driver = EngineDriver(a_node("n1"))
    (first,) = driver.run(a_spec("first", time_limit_seconds=600))
    (waits,) = driver.submit(a_spec("waits", dependencies=(Dependency(kind, first),)))
    driver.schedule()
    foresight = StartPredictor(driver.machine.snapshot(driver.now), driver.plan, Policy(), History())
    found = outlook(foresight, driver.job(waits), ())
    assert found.condition == Condition(first, "first", JobState.RUNNING, Millis(driver.now + 600 * SECOND), "1")
    assert outlook(foresight, driver.job(first), ()).condition is None


@pytest.mark.req("SC-12", "SC-13")
def test_a_change_that_no_reason_names_is_shown_where_the_job_would_start_sooner() -> None:
    """All A100 are in use, and as many H100 are free."""
    other = a_node("n2", card_list=tuple(a_card(index, "H100") for index in range(4)))
    driver = EngineDriver(a_node("n1", cards=4), other)
    driver.run(a_spec("runs", card_milli=4000, card_models=("A100",), time_limit_seconds=3600))
    (waits,) = driver.submit(a_spec("waits", card_milli=4000, card_models=("A100",), time_limit_seconds=7200))
    driver.schedule()
    foresight = StartPredictor(driver.machine.snapshot(driver.now), driver.plan, Policy(), History())
    tried = changes(driver.machine, driver.job(waits), Actor(ANN, admin=False), foresight)
    (shown,) = outlook(foresight, driver.job(waits), tried).what_ifs
    assert (shown.change, shown.before, shown.after, shown.named) == (Change.SPEC, "A100", "", False)
    assert shown.forecast.likely_at == driver.now


@pytest.mark.req("SC-12", "SC-13")
def test_a_change_that_a_reason_names_is_shown_and_of_other_changes_only_the_soonest_of_each_kind() -> None:
    driver = EngineDriver(a_node("n1", cpus=8, cards=6))
    driver.run(a_spec("runs", cpus=4, card_milli=4000, time_limit_seconds=3600))
    (waits,) = driver.submit(a_spec("waits", cpus=4, card_milli=4000, time_limit_seconds=7200))
    driver.schedule()
    foresight = StartPredictor(driver.machine.snapshot(driver.now), driver.plan, Policy(), History())
    tried = changes(driver.machine, driver.job(waits), Actor(ANN, admin=False), foresight)
    assert {(each.change, each.after, each.named) for each, _ in tried} >= {
        (Change.CARDS, "2", True),
        (Change.CARDS, "1", False),
        (Change.LIMIT, "3600", False),
    }
    (shown,) = outlook(foresight, driver.job(waits), tried).what_ifs
    assert (shown.change, shown.after, shown.named) == (Change.CARDS, "2", True)
