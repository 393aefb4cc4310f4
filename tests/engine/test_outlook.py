"""What an asker is told of the jobs that an answer about a queued job names."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from cockpit.engine.access import Actor
from cockpit.engine.prediction import outlook, shown_outlook
from cockpit.sched.forecast.history import History
from cockpit.sched.forecast.predict import StartPredictor
from cockpit.sched.policy import Policy
from tests.builders import ANN, a_card, a_node, a_spec
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
