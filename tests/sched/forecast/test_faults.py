"""A defect in what concerns one job costs that job its answer, and no other job anything."""

from __future__ import annotations

from random import Random

import pytest

from cockpit.model.ids import JobId, Millis
from cockpit.model.job import Job
from cockpit.model.reasons import DependencyNever, NotEvaluated, Reason
from cockpit.model.spec import Dependency, DependencyKind
from cockpit.sched import gates
from cockpit.sched.conditions import first_unmet_condition
from cockpit.sched.forecast.history import History
from cockpit.sched.forecast.predict import StartPredictor
from cockpit.sched.forecast.runtime_predictors import MeanRuntimePredictor
from cockpit.sched.pass_state import PassState
from cockpit.sched.shape import Shape
from tests.sched.every_rule import every_rule_world
from tests.sched.world import World, node, wants

GONE = JobId(99)
NEVER = {"waits_for": (Dependency(DependencyKind.AFTER_OK, GONE),), "never": GONE}
"""Of a job that waits for one that has failed and is not there any more."""


def foresight(world: World) -> StartPredictor:
    return StartPredictor(world.snapshot(), world.cycle(), world.policy, History())


def answers(world: World, without: JobId) -> dict[JobId, object]:
    """All that is said of each queued job but one."""
    seer = foresight(world)
    return {
        job.id: (world.reason(job.id), seer.forecast(job.id), seer.explanation(job.id), seer.start(job.id))
        for job in world.queue
        if job.id != without
    }


@pytest.mark.req("SC-12", "SC-10")
@pytest.mark.parametrize("kind", [each for each in DependencyKind if each is not DependencyKind.SINGLETON])
def test_a_dependency_that_can_never_be_satisfied_stays_so_in_predictions(kind: DependencyKind) -> None:
    world = World(node("n1", 4))
    world.submit(wants(4000), limit=100)
    world.run()
    never = world.submit(wants(1000), record={"waits_for": (Dependency(kind, GONE),), "never": GONE})
    other = world.submit(wants(4000), limit=100)
    seer = foresight(world)
    assert seer.start(other).likely_at == seer.forecast(other).likely_at == 100_000
    assert seer.forecast(never).likely_at is None
    assert seer.explanation(never).reason == DependencyNever(kind, GONE)
    assert not seer.faults


@pytest.mark.req("SC-12")
def test_a_job_with_one_failed_and_one_open_dependency_never_starts() -> None:
    world = World(node("n1", 4))
    runs = world.submit(wants(4000), limit=100)
    world.run()
    conditions = (*NEVER["waits_for"], Dependency(DependencyKind.AFTER_ANY, runs))
    never = world.submit(wants(1000), record={"waits_for": conditions, "never": GONE})
    seer = foresight(world)
    assert seer.forecast(never).likely_at is None
    assert not seer.faults


@pytest.mark.req("SC-12", "SC-13")
@pytest.mark.parametrize("seed", range(60))
def test_a_job_that_cannot_be_judged_changes_no_other_answer(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The defect is in the judgement of a job that is held, so without it the others' answers are the same."""
    world = every_rule_world(seed)
    held = world.submit(wants(memory_mib=128), held_by="root", limit=5)
    before = answers(world, held)

    def broken(job: Job, now: Millis) -> Reason | None:
        if job.id == held:
            raise ZeroDivisionError("not this one")
        return first_unmet_condition(job, now)

    monkeypatch.setattr(gates, "first_unmet_condition", broken)
    world.plan = world.index = None
    assert answers(world, held) == before
    seer = foresight(world)
    assert world.reason(held) == NotEvaluated("ZeroDivisionError: not this one")
    assert seer.explanation(held).reason == world.reason(held)
    assert seer.forecast(held).likely_at is None
    assert seer.failure(held) == "ZeroDivisionError: not this one"
    assert [*seer.faults] == [held]
    assert isinstance(world.plan.scheduling_pass.faults[held], ZeroDivisionError)


@pytest.mark.req("SC-12", "SC-13")
@pytest.mark.parametrize("seed", range(20))
def test_every_job_in_turn_may_be_the_one_whose_run_time_or_what_if_fails(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without habits the job counts with its whole limit, as those do that nothing is known of: nothing changes."""
    world = every_rule_world(seed)
    if not world.queue:
        pytest.skip("nothing waits in this world")
    chosen = Random(seed).choice(world.queue).id
    before = answers(world, chosen)
    known = MeanRuntimePredictor.run_ms

    def broken(self: MeanRuntimePredictor, job: Job, elapsed_ms: int = -1) -> int:
        if job.id == chosen:
            raise KeyError(job.id)
        return known(self, job, elapsed_ms)

    monkeypatch.setattr(MeanRuntimePredictor, "run_ms", broken)
    world.plan = world.index = None
    assert answers(world, chosen) == before


@pytest.mark.req("SC-13")
def test_a_failed_what_if_does_not_affect_the_forecast(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(node("n1", 4))
    world.submit(wants(3000), limit=100)
    world.run()
    waits = world.submit(wants(4000), limit=100)
    seer = foresight(world)
    monkeypatch.setattr(StartPredictor, "_instead", lambda *_: 1 // 0)
    assert seer.if_instead(world.jobs[waits], None).likely_at is None
    assert seer.forecast(waits).likely_at == 100_000
    assert seer.failure(waits).startswith("ZeroDivisionError")


@pytest.mark.req("SC-14")
def test_the_cycle_itself_starts_all_others_where_one_cannot_be_judged() -> None:
    world = World(node("n1", 4))
    broken = world.submit(wants(1000), record={"never": GONE})  # names no condition: such a record is a defect
    other = world.submit(wants(1000))
    assert [start.job for start in world.run().starts] == [other]
    assert world.reason(broken) == NotEvaluated("IndexError: tuple index out of range")


@pytest.mark.req("SC-12", "SC-13")
def test_a_defect_that_only_a_simulated_pass_meets_is_reported_at_its_job_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(node("n1", 4))
    world.submit(wants(4000), limit=100)
    world.run()
    broken = world.submit(wants(4000), limit=100)
    other = world.submit(wants(4000), limit=100)

    place = PassState.place

    def breaks_later(self: PassState, job: Job, shape: Shape) -> object:
        if job.id == broken and self.snapshot.now:
            raise ZeroDivisionError("only later")
        return place(self, job, shape)

    monkeypatch.setattr(PassState, "place", breaks_later)
    seer = foresight(world)
    assert seer.forecast(other).likely_at == 100_000
    assert (seer.failure(broken), seer.failure(other)) == ("ZeroDivisionError: only later", "")
