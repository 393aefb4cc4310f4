from __future__ import annotations

from random import Random

import pytest
from msgspec.structs import replace

from cockpit.model.forecast import Change, Forecast
from cockpit.model.ids import JobId, Millis
from cockpit.model.job import JobState
from cockpit.model.spec import Dependency, DependencyKind, NodeSpec
from cockpit.sched.forecast import future, predict
from cockpit.sched.forecast.future import ClusterSimulation, simulation_index
from cockpit.sched.forecast.history import MOST_RUNS, History, history_of
from cockpit.sched.forecast.predict import HYPOTHETICAL, StartPredictor
from cockpit.sched.forecast.runtime_predictors import MeanRuntimePredictor, P90RuntimePredictor, TimeLimitPredictor
from cockpit.sched.forecast.whatif import candidates
from cockpit.sched.index import refresh_index
from cockpit.sched.priority.priorities import prioritised
from tests.sched.busy import busy_world
from tests.sched.world import World, node, wants

HOUR = 3600
ONE_CARD = wants(1000)


def foresight(world: World, history: History | None = None) -> StartPredictor:
    snapshot, plan = world.snapshot(), world.cycle()
    return StartPredictor(snapshot, plan, world.policy, history or History())


def ended(world: World, *, limit: int, ran: int, spec: NodeSpec = ONE_CARD, user: str = "ann", **asked) -> None:
    """A job of the past, after which time has gone on."""
    job = world.submit(spec, limit=limit, record={"user": user} | asked)
    world.run()
    world.now = Millis(world.now + 1000 * ran)
    world.jobs[job] = replace(world.jobs[job], state=JobState.SUCCEEDED, ended_at=world.now)
    world.end(job)


def the_course_of_things(world: World) -> dict[JobId, int]:
    """Simulate what really happens if every job uses its whole time limit and no job is submitted."""
    world.run()
    while world.ends:
        # a pass that asks for another one at once is followed by it
        again = [world.plan.next_at] if world.plan.next_at == world.now + 1 else []
        world.now = min([*world.ends.values(), *again])
        world.version += 1
        for job in [job for job, end in world.ends.items() if end == world.now]:
            world.end(job)
        world.run()
    return world.started_at


@pytest.mark.req("SC-12")
@pytest.mark.parametrize("seed", range(40))
def test_predictions_equal_what_scheduling_cycles_do(seed: int) -> None:
    random = Random(seed)
    world = World(*(node(f"n{number}", random.choice((2, 4, 8))) for number in range(3)))
    for _ in range(25):
        cards = 1000 * random.choice((0, 1, 2))
        asked = wants(cards, cpus=random.choice((1, 4)))
        world.submit(asked, nodes=random.choice((1, 1, 2)), limit=random.randrange(1, 50))
        if random.random() < 0.3:
            world.run()
    snapshot = world.snapshot()
    index, order = simulation_index(refresh_index(None, snapshot)), prioritised(snapshot).order
    future = ClusterSimulation(snapshot, index, world.policy, order, TimeLimitPredictor())
    waiting = [job.id for job in world.queue]
    foretold = {job: begun.at for job in waiting if (begun := future.start_of(job)) is not None}
    really = the_course_of_things(world)
    assert foretold == {job: really[job] for job in waiting if job in really}


@pytest.mark.req("SC-12")
def test_likely_starts_use_past_run_times_and_latest_starts_are_bounded_by_limits() -> None:
    world = World(node("n1", 1))
    for _ in range(5):
        ended(world, limit=HOUR, ran=HOUR // 4)
    history = history_of(world.jobs.values())
    runs = world.submit(wants(1000), limit=HOUR)
    world.run()
    waits = world.submit(wants(1000), limit=HOUR)
    found = foresight(world, history).forecast(waits)
    assert found.likely_at == world.now + 250 * HOUR
    assert found.likely_at < found.latest_at <= world.now + 1000 * (HOUR + 30)
    assert [(each.job, each.end_at) for each in found.after] == [(runs, found.likely_at)]
    assert not found.now


@pytest.mark.req("SC-12")
def test_a_job_that_fits_starts_now_and_a_held_job_has_no_predicted_start() -> None:
    world = World(node("n1", 1))
    free, held = world.submit(wants(1000)), world.submit(wants(1000), held_by="root")
    seer = foresight(world)
    assert (seer.forecast(free).now, seer.forecast(free).latest_at) == (True, world.now)
    unknown = seer.forecast(held)
    assert (unknown.now, unknown.likely_at, unknown.latest_at) == (False, None, None)


@pytest.mark.req("SC-12")
def test_predictions_wait_for_dependencies_and_begin_times() -> None:
    world = World(node("n1", 4))
    first = world.submit(wants(1000), limit=100)
    world.run()
    after = Dependency(DependencyKind.AFTER_OK, first)
    then = world.submit(wants(1000), record={"waits_for": (after,)})
    later = world.submit(wants(1000), begin_at=Millis(world.now + 7_000))
    seer = foresight(world)
    assert seer.forecast(then).likely_at == world.now + 100_000
    assert seer.forecast(later).likely_at == world.now + 7_000


@pytest.mark.req("SC-12")
def test_a_prediction_changes_no_state() -> None:
    world = busy_world(60)
    before = world.snapshot()
    plan = world.cycle()
    nodes_free, placed = list(plan.index.nodes_free), dict(plan.index.placed)
    seer = StartPredictor(before, plan, world.policy, history_of(world.jobs.values()))
    once = [seer.forecast(job.id) for job in world.queue[:20]]
    assert (plan.index.nodes_free, plan.index.placed) == (nodes_free, placed)
    assert world.cycle().starts == plan.starts
    again = StartPredictor(before, plan, world.policy, history_of(world.jobs.values()))
    assert [again.forecast(job.id) for job in world.queue[:20]] == once
    assert all(each.likely_from <= each.likely_at <= each.likely_to for each in once if each.likely_at)


@pytest.mark.req("SC-13")
def test_a_what_if_is_simulated_by_the_same_scheduler() -> None:
    world = World(node("n1", 4))
    world.submit(wants(3000), limit=HOUR)
    world.run()
    waits = world.submit(wants(4000), limit=HOUR)
    seer = foresight(world)
    at = seer.forecast(waits).likely_at
    (job,) = world.queue
    found = {(each.change, each.after): each.spec for each in candidates(world.snapshot(), job, None)}
    one = found[Change.CARDS, "1"]
    assert seer.if_instead(replace(job, spec=one), at).now
    assert seer.if_instead(replace(job, spec=found[Change.CARDS, "2"]), at).likely_at is None
    assert seer.forecast(waits).likely_at == at


@pytest.mark.req("SC-13")
def test_each_candidate_changes_one_field_and_never_to_zero() -> None:
    world = World(node("n1", 8))
    world.submit(wants(8000, "A100"), nodes=4, limit=7200, pool="east")
    (job,) = world.queue
    found = list(candidates(world.snapshot(), job, Millis(world.now + 3_659_000)))
    assert [(each.change, each.after) for each in found] == [
        (Change.CARDS, "4"),
        (Change.CARDS, "2"),
        (Change.CARDS, "1"),
        (Change.NODES, "2"),
        (Change.NODES, "1"),
        (Change.LIMIT, "3600"),
        (Change.SPEC, ""),
        (Change.POOL, ""),
        (Change.PRIORITY, "urgent"),
    ]
    world.submit(wants(500), limit=400)
    assert [each.change for each in candidates(world.snapshot(), world.queue[1], None)] == [Change.PRIORITY]


@pytest.mark.req("SC-12")
def test_run_times_are_predicted_from_similar_jobs_that_ran_longer_than_this_one_so_far() -> None:
    world = World(node("n1", 8))
    for ran in (10, 20, 40):
        ended(world, limit=100, ran=ran)
    for ran in (150, 150):
        ended(world, limit=200, ran=ran)
    history = history_of(world.jobs.values())
    world.submit(wants(1000), limit=100)
    world.submit(wants(1000), limit=200)
    world.submit(wants(1000), limit=1000)
    world.submit(wants(1000), limit=100, record={"user": "bob"})
    short, long, other, new = world.queue
    habits = MeanRuntimePredictor(history)
    assert habits.run_ms(short) == pytest.approx(70_000 / 3, abs=1)
    assert habits.run_ms(short, 15_000) == 30_000
    assert habits.run_ms(short, 50_000) == 100_000
    assert habits.run_ms(long) == 150_000
    assert habits.run_ms(other) == pytest.approx(1000 * (750 + 750 + 400 + 200 + 100) / 5, abs=1)
    assert habits.run_ms(new) == P90RuntimePredictor(history).run_ms(new) == 100_000
    assert P90RuntimePredictor(history).run_ms(short) == 75_000
    assert P90RuntimePredictor(history).run_ms(short, 80_000) == 100_000


@pytest.mark.req("SC-12")
def test_run_times_are_predicted_from_jobs_of_the_same_size_before_those_of_the_same_limit() -> None:
    world = World(node("n1", 8))
    for spec, ran in ((ONE_CARD, 10), (ONE_CARD, 30), (wants(2000), 80), (wants(2000), 90)):
        ended(world, limit=100, ran=ran, spec=spec)
    history = history_of(world.jobs.values())
    for spec in (ONE_CARD, wants(2000), wants(3000)):
        world.submit(spec, limit=100)
    habits = MeanRuntimePredictor(history)
    assert [habits.run_ms(job) for job in world.queue] == [20_000, 85_000, 52_500]


@pytest.mark.req("SC-12")
def test_history_is_bounded_and_drops_the_oldest_job() -> None:
    world = World(node("n1", 8))
    for ran in range(1, MOST_RUNS + 11):
        ended(world, limit=100, ran=ran)
    runs = history_of(world.jobs.values()).runs_of("ann")
    assert [run.ran_ms for run in runs] == [1000 * ran for ran in range(11, MOST_RUNS + 11)]


@pytest.mark.req("SC-13")
def test_a_what_if_behind_a_long_queue_looks_no_further_than_is_worth_the_wait(monkeypatch) -> None:
    world = World(node("n1", 4))
    for _ in range(20):
        world.submit(wants(4000), limit=HOUR)
    world.run()
    last = world.queue[-1]
    smaller = replace(last, spec=replace(last.spec, specs=(wants(1000),)))
    seer = foresight(world)
    at = seer.forecast(last.id).likely_at
    assert seer.if_instead(smaller, at + 1).likely_at == at
    monkeypatch.setattr(predict, "MOST_CANDIDATE_JOBS", 0)
    assert seer.if_instead(smaller, at + 1).likely_at is None
    assert seer.forecast(last.id).likely_at == at


@pytest.mark.req("SC-12")
def test_no_prediction_waits_for_the_end_of_a_job_that_only_may_arrive() -> None:
    world = busy_world(300)
    history = history_of(world.jobs.values())
    seer = foresight(world, history)
    found = [seer.forecast(job.id) for job in world.queue[::10]]
    assert all(each.job < HYPOTHETICAL for one in found for each in one.after)


@pytest.mark.req("SC-12", "PF-05")
def test_far_behind_the_start_is_estimated_from_the_rate_of_the_queue(monkeypatch) -> None:
    world = busy_world(600, now=10**9)
    held = world.submit(wants(1000), held_by="root")
    near = foresight(world)
    likely = {job.id: near.forecast(job.id) for job in world.queue}
    monkeypatch.setattr(future, "EXTRAPOLATE_AFTER", 10**9)
    whole = foresight(world)
    exact = {job.id: whole.forecast(job.id).likely_at for job in world.queue}
    far = [job for job in likely if not likely[job].after and likely[job].likely_at != exact[job]]
    errors = [abs(likely[job].likely_at - exact[job]) / (exact[job] - world.now) for job in far]
    assert len(errors) > 100
    assert sum(errors) / len(errors) < 0.15
    assert likely[held].likely_at is None
    assert all(each.likely_from <= each.likely_at <= each.likely_to for each in likely.values() if each.likely_at)
    waits = [(each.likely_to - world.now) / (each.likely_at - world.now) for job, each in likely.items() if job in far]
    assert max(waits) < 4, "the end of the range is in proportion to the wait, not to the time of day"


@pytest.mark.req("SC-12", "SC-13")
def test_a_job_that_never_starts_has_no_time_however_long_the_queue_ahead_of_it_is() -> None:
    world = busy_world(600)
    never = [world.submit(wants(9000)), world.submit(wants(1000), nodes=101), world.submit(wants(1000, "H100"))]
    behind = world.submit(wants(1000))
    seer = foresight(world)
    assert [seer.forecast(job) for job in never] == [Forecast()] * 3
    assert seer.forecast(behind).likely_at is not None


@pytest.mark.req("SC-12")
def test_a_whole_limit_counts_from_the_start_of_the_command_and_includes_the_time_to_kill_the_job() -> None:
    world = World(node("n1", 1))
    runs = world.submit(wants(1000), limit=HOUR)
    world.run()
    waits = world.submit(wants(1000), limit=HOUR)
    for late in (Millis(1000 * HOUR + 90_000), Millis(1000 * HOUR + 120_000)):
        world.occupy(runs, world.occupied[runs], late)
        assert foresight(world).forecast(waits).likely_at == late
        world.now = Millis(1000 * HOUR + 100_000)


@pytest.mark.req("SC-12")
def test_a_far_start_is_taken_for_the_middle_of_the_moments_that_are_simulated_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Never before the resources are free, and later by a small part of the time until then at most."""
    monkeypatch.setattr(future, "EXACT_PASSES", -1)
    world = World(node("n1", 1))
    world.submit(ONE_CARD, limit=1000)
    world.run()
    waits = world.submit(ONE_CARD, limit=1000)
    snapshot = world.snapshot()
    index, order = simulation_index(refresh_index(None, snapshot)), prioritised(snapshot).order
    begun = ClusterSimulation(snapshot, index, world.policy, order, TimeLimitPredictor()).start_of(waits)
    assert begun is not None
    assert begun.at == 1_000_000 + 1_000_000 // future.COARSENESS // 2
