"""The details that a user sees of the jobs that an answer about a queued job names."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from cockpit.engine.access import Actor
from cockpit.engine.prediction import outlook, shown_outlook
from cockpit.model.forecast import Condition
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
