"""What a pass reads and what it caches belong to it: nothing that happens beside it changes either."""

from __future__ import annotations

from copy import deepcopy

import pytest

from cockpit.model.ids import Millis
from cockpit.model.reasons import Held
from cockpit.sched.explain import reason_of
from cockpit.sched.forecast.history import History
from cockpit.sched.forecast.predict import StartPredictor
from cockpit.sched.index import Index
from tests.builders import a_node, a_spec
from tests.engine.driver import EngineDriver
from tests.sched.every_rule import every_rule_world
from tests.sched.world import World

pytestmark = pytest.mark.req("SC-14")
CACHES = ("never", "possible", "groups", "some_day", "fit_cache", "_classes_for", "_nodes_for", "single_class")


def cached(index: Index) -> object:
    """How much each cache of the passes holds."""
    layout, equivalence = index.layout, index.equivalence
    sizes = {name: len(getattr(layout, name)) for name in CACHES}
    sizes |= {name: len(getattr(equivalence, name)) for name in ("_judged", "_shapes", "shapes", "classes", "_single")}
    return sizes | {"requested": len(equivalence.rules.requested), "scopes": len(equivalence.rules._scopes)}


def test_a_frozen_snapshot_does_not_change_while_the_engine_continues() -> None:
    engine = EngineDriver(a_node("n1", cpus=4))
    (first,) = engine.run(a_spec("first"))
    frozen = engine.machine.peek(engine.now).frozen()
    before = deepcopy((frozen.jobs, frozen.occupied, frozen.ends, [job.id for job in frozen.queue]))
    assert first in frozen.occupied
    engine.run(a_spec("second"), a_spec("third"))
    for job in (first, *engine.machine.state.jobs):
        if job in engine.machine.occupied:
            engine.started(job)
            engine.ended(job)
    assert first not in engine.machine.occupied
    assert (frozen.jobs, frozen.occupied, frozen.ends, [job.id for job in frozen.queue]) == before


def settled(seed: int) -> World:
    world = every_rule_world(seed)
    world.cycle()
    return world


@pytest.mark.parametrize("seed", range(60))
def test_a_prediction_changes_no_cache_of_the_passes(seed: int) -> None:
    world = settled(seed)
    plan, snapshot = world.plan, world.snapshot().frozen()
    reasons = {job.id: reason_of(plan, job) for job in world.queue}
    before = cached(plan.index), plan.index.version
    predictor = StartPredictor(snapshot, plan, world.policy, History())
    told = {}
    for job in world.queue:
        predictor.forecast(job.id)
        if (explanation := predictor.explanation(job.id)) is not None:
            told[job.id] = explanation.reason
    assert (cached(plan.index), plan.index.version) == before
    assert {job.id: reason_of(plan, job) for job in world.queue} == reasons
    assert predictor.faults == {}
    assert told


@pytest.mark.parametrize("seed", range(60))
def test_a_plan_detached_from_its_caches_gives_the_same_reasons_after_the_next_pass(seed: int) -> None:
    world = settled(seed)
    plan, queue = world.plan, list(world.queue)
    reasons = {job.id: reason_of(plan, job) for job in queue}
    plan.refusals.detach_caches()
    world.plan = plan
    for job in queue[::2]:
        world.hold(job.id, "" if isinstance(reasons[job.id], Held) else "root")
    world.now = Millis(world.now + 1)
    following = world.cycle()
    before = cached(following.index)
    assert {job.id: reason_of(plan, job) for job in queue} == reasons
    assert cached(following.index) == before
