"""Elastic jobs in passes and in predictions: they take what no other job can use, and give it back."""

from __future__ import annotations

from random import Random

import pytest

from cockpit.model.accounts import Accounts, Qos
from cockpit.model.attempt import EvictionMode
from cockpit.model.cluster import Backfill, BackfillKind, Cluster, Preemption
from cockpit.model.ids import JobId, Millis
from cockpit.model.reasons import EvictionPending
from cockpit.model.resilience import Elastic, NoGrowth
from cockpit.sched.forecast.future import ClusterSimulation
from cockpit.sched.forecast.runtime_predictors import TimeLimitPredictor
from cockpit.sched.index import refresh_index
from cockpit.sched.policy import FractionFit, Policy
from cockpit.sched.priority.priorities import prioritised
from tests.sched.forecast.test_predict import foresight, the_course_of_things
from tests.sched.world import World, node, wants

KINDS = (BackfillKind.EASY, BackfillKind.CONSERVATIVE, BackfillKind.OFF)
LOW, HIGH = Qos(name="low", grace_seconds=20), Qos(name="high", priority=9, preempt=("low",))


def elastic(world: World, least: int, wanted: int, most: int, *, cpus: int = 4, limit: int = 3600, **record) -> JobId:
    size = Elastic(workers=wanted, min_workers=least, max_workers=most)
    return world.submit(wants(cpus=cpus), nodes=wanted, limit=limit, elastic=size, record=record)


def nodes_of(world: World, job: JobId) -> list[str]:
    return [part.node for part in world.occupied[job]]


def four(policy: Policy | None = None, **rules) -> World:
    return World(*(node(f"n{number}", 1, cpus=4) for number in (1, 2, 3, 4)), policy=policy, **rules)


@pytest.mark.req("SC-09", "EL-01")
@pytest.mark.parametrize("kind", KINDS)
def test_spare_nodes_go_to_the_elastic_job_with_the_least_of_its_requested_workers(kind: BackfillKind) -> None:
    world = four(Policy(backfill=Backfill(kind=kind)))
    rigid = world.submit(wants(cpus=4), nodes=2)
    full, short = elastic(world, 1, 1, 4), elastic(world, 1, 2, 4)
    world.run()
    assert (nodes_of(world, full), nodes_of(world, short)) == (["n3"], ["n4"])
    world.end(rigid)
    plan = world.run()
    assert [(each.job, len(each.placement)) for each in plan.growths] == [(short, 2)]
    assert plan.scheduling_pass.no_growth == {short: NoGrowth.NO_FREE_NODE, full: NoGrowth.NO_FREE_NODE}
    assert [part.rank for part in world.occupied[short]] == [0, 1, 2]


@pytest.mark.req("SC-09", "SC-06")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("limit", "grows"), [(9000, False), (1800, True)])
def test_no_job_grows_into_reserved_nodes_past_the_reserved_start(kind: BackfillKind, limit: int, grows: bool) -> None:
    world = four(Policy(backfill=Backfill(kind=kind)))
    world.submit(wants(cpus=4), limit=3600)
    job = elastic(world, 1, 1, 4, limit=limit)
    world.run()
    wide = world.submit(wants(cpus=4), nodes=3 if limit > 3600 else 4, limit=3600)
    plan = world.run()
    expected = grows and kind is not BackfillKind.OFF
    assert (len(nodes_of(world, job)) > 1) is expected
    assert plan.scheduling_pass.no_growth[job] is (NoGrowth.NO_FREE_NODE if expected else NoGrowth.RESERVED)
    later = world.run()
    assert [(each.job, each.reserved_at) for each in later.reservations] == [(wide, Millis(3_600_000))]


@pytest.mark.req("SC-09", "SC-05")
def test_growth_places_card_fractions_by_the_configured_policy() -> None:
    world = four(Policy(fraction_fit=FractionFit.FGD))
    size = Elastic(workers=1, max_workers=3)
    job = world.submit(wants(500), nodes=1, elastic=size)
    world.run()
    world.run()
    held = world.occupied[job]
    assert ({part.card_milli for part in held}, len({part.node for part in held})) == ({500}, 3)


@pytest.mark.req("SC-09", "SC-12")
@pytest.mark.parametrize("seed", range(40))
def test_predictions_are_exact_with_growth_too(seed: int) -> None:
    random = Random(seed)
    world = World(*(node(f"n{number}", cpus=4) for number in range(4)))
    for _ in range(20):
        limit, cpus, least = random.randrange(1, 50), random.choice((2, 4)), random.choice((1, 2))
        if random.random() < 0.4:
            wanted = least + random.choice((0, 1))
            elastic(world, least, wanted, wanted + random.choice((0, 2)), cpus=cpus, limit=limit)
        else:
            world.submit(wants(cpus=cpus), nodes=random.choice((1, 1, 3)), limit=limit)
        if random.random() < 0.3:
            world.run()
    snapshot = world.snapshot()
    index, order = refresh_index(None, snapshot), prioritised(snapshot).order
    future = ClusterSimulation(snapshot, index, world.policy, order, TimeLimitPredictor())
    waiting = [job.id for job in world.queue]
    foretold = {job: begun.at for job in waiting if (begun := future.start_of(job)) is not None}
    assert foretold == {job: at for job, at in the_course_of_things(world).items() if job in waiting}


@pytest.mark.req("SC-09", "SC-12")
def test_a_job_that_makes_others_shrink_starts_when_their_grace_is_over() -> None:
    rules = {"cluster": Cluster(preemption=Preemption(kind="preempt/qos", mode=("REQUEUE",)))}
    world = four(**rules, accounts=Accounts(qos={each.name: each for each in (LOW, HIGH)}))
    job = elastic(world, 1, 4, 4, qos="low")
    world.run()
    urgent = world.submit(wants(cpus=4), nodes=2, record={"qos": "high"})
    assert foresight(world).forecast(urgent).likely_at == 20_000
    plan = world.run()
    assert [(each.job, each.mode, each.ranks) for each in plan.evictions] == [(job, EvictionMode.SHRINK, (2, 3))]
    assert world.reason(urgent) == EvictionPending((job,), Millis(20_000))
    world.now = Millis(5_000)
    assert foresight(world).forecast(urgent).likely_at == 20_000
    assert world.run().evictions == ()
    world.leave(job)
    assert [start.job for start in world.run().starts] == [urgent]
    assert nodes_of(world, job) == ["n1", "n2"]
