"""Jobs of several node specs: one row in the queue, one start by whichever spec can start first."""

from __future__ import annotations

import pytest

from cockpit.engine.submission.submit import edit
from cockpit.engine.views.rows import demand, job_row
from cockpit.model.events import JobPlaced
from cockpit.model.job import JobState
from cockpit.model.reasons import NoAlternative
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.model.spec import NodeSpec
from cockpit.sched.explain import reason_of
from tests.builders import a_card, a_node, a_spec
from tests.engine.driver import EngineDriver


def cards(count: int, *models: str) -> NodeSpec:
    return NodeSpec(card_milli=1000 * count, card_models=models)


@pytest.fixture
def engine() -> EngineDriver:
    h100 = tuple(a_card(index, "H100") for index in range(4))
    return EngineDriver(a_node("a1", cards=4), a_node("h1", card_list=h100))


def placed(engine: EngineDriver) -> list[tuple[int, int, str]]:
    """Job, number of the spec, node, of every start so far."""
    bodies = [each.body for each in engine.journal]
    return [(each.job, each.spec_index, each.placement[0].node) for each in bodies if isinstance(each, JobPlaced)]


@pytest.mark.req("JT-09")
def test_the_spec_that_can_start_first_is_chosen_and_the_alternatives_are_withdrawn(engine: EngineDriver) -> None:
    (first,) = engine.run(a_spec("first", specs=(cards(4, "A100"), cards(4, "H100"))))
    (second,) = engine.run(a_spec("second", specs=(cards(4, "A100"), cards(2, "H100"))))
    assert placed(engine) == [(first, 0, "a1"), (second, 1, "h1")]
    assert len(engine.machine.state.jobs) == 2
    engine.schedule()
    engine.ended(first, code=0)
    engine.schedule()
    assert placed(engine) == [(first, 0, "a1"), (second, 1, "h1")], "what is withdrawn stays withdrawn"
    assert demand(engine.machine) == {}


@pytest.mark.req("JT-09")
def test_while_no_alternative_can_start_one_job_reports_the_reason_of_each(engine: EngineDriver) -> None:
    engine.run(a_spec("a", specs=(cards(3, "A100"),)), a_spec("h", specs=(cards(2, "H100"),)))
    (waits,) = engine.submit(a_spec("either", specs=(cards(2, "A100"), cards(4, "H100"))))
    engine.schedule()
    reason = reason_of(engine.plan, engine.job(waits))
    assert isinstance(reason, NoAlternative)
    assert [(one.wanted, one.nearest[0].node, one.nearest[0].free) for one in reason.specs] == [
        (2, "a1", 1),
        (4, "h1", 2),
    ]
    assert job_row(engine.job(waits), reason).card_models == ("A100", "H100")
    engine.ended(2, code=0)
    engine.schedule()
    assert placed(engine)[-1] == (waits, 1, "h1")
    assert engine.job(waits).state is not JobState.QUEUED


@pytest.mark.req("JT-46")
def test_requested_cards_are_counted_by_model_once_per_waiting_job(engine: EngineDriver) -> None:
    engine.submit(a_spec("any", card_milli=1000), a_spec("gang", card_milli=4000, card_models=("A100",), nodes=1))
    engine.submit(a_spec("half", card_milli=500, card_models=("H100", "A100")))
    (either,) = engine.submit(a_spec("either", specs=(cards(1, "A100"), cards(2, "A100", "H100"), NodeSpec())))
    assert demand(engine.machine) == {"": 1000, "A100": 6500, "H100": 2500}
    engine.act(edit(engine.machine, engine.job(either), a_spec("either")))
    assert demand(engine.machine) == {"": 1000, "A100": 4500, "H100": 500}
    engine.schedule()
    assert demand(engine.machine) == {"A100": 4000}, "the others have taken cards that the gang needs"


@pytest.mark.req("JT-42")
def test_an_edit_that_comes_when_the_scheduler_has_started_the_job_is_refused_and_changes_nothing(
    engine: EngineDriver,
) -> None:
    (job,) = engine.submit(a_spec("mine"))
    seen = engine.job(job)
    engine.schedule()
    no = engine.act(edit(engine.machine, engine.job(job), a_spec("mine", cpus=4)))
    assert isinstance(no, Refusal)
    assert (no.kind, no.message) == (RefusalKind.CONFLICT, "Job 1 is starting; only a queued job can be edited.")
    assert engine.job(job).spec == seen.spec
