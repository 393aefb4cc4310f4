from __future__ import annotations

import pytest
from msgspec.structs import replace

from cockpit.model.accounts import Accounts, Qos
from cockpit.model.cluster import Cluster, Preemption
from cockpit.model.ids import Millis
from cockpit.model.reasons import EvictionPending, Held, NotEnoughFree, NotEvaluated
from cockpit.sched.explain import explain
from tests.sched.world import World, node, wants


@pytest.mark.req("SC-13")
def test_an_explanation_has_the_reason_the_position_the_jobs_ahead_and_the_reservation() -> None:
    world = World(node("n1", 2))
    world.submit(wants(1000), limit=50)
    head, held, last = world.submit(wants(2000)), world.submit(wants(1000), held_by="root"), world.submit(wants(2000))
    snapshot, plan = world.snapshot(), world.cycle()
    told = explain(snapshot, plan, head)
    assert isinstance(told.reason, NotEnoughFree)
    assert (told.position, told.ahead, told.reserved_at) == (1, (), 50_000)
    told = explain(snapshot, plan, last)
    assert (told.position, told.ahead, told.reserved_at) == (2, (head,), None)
    assert explain(snapshot, plan, held).reason == Held("root", Millis(0))


@pytest.mark.req("SC-13")
def test_at_most_ten_jobs_ahead_are_named_from_the_head_on() -> None:
    world = World(node("n1", 2))
    world.submit(wants(2000))
    world.run()
    jobs = [world.submit(wants(1000)) for _ in range(15)]
    told = explain(world.snapshot(), world.cycle(), jobs[-1])
    assert (told.position, told.ahead) == (15, tuple(jobs[:10]))


@pytest.mark.req("SC-13")
def test_a_job_that_starts_or_is_not_queued_has_no_explanation() -> None:
    world = World(node("n1"))
    job = world.submit(wants())
    snapshot, plan = world.snapshot(), world.cycle()
    assert explain(snapshot, plan, job) is None
    assert explain(snapshot, plan, job + 1) is None


@pytest.mark.req("SC-13")
def test_a_job_of_a_new_shape_that_came_since_the_cycle_is_not_evaluated_yet() -> None:
    world = World(node("n1"))
    world.cycle()
    assert world.reason(world.submit(wants(1000))) == NotEvaluated()


@pytest.mark.req("SC-13")
def test_an_edited_job_is_judged_by_what_it_asks_for_now() -> None:
    world = World(node("n1", 2))
    job = world.submit(wants(9000))
    world.cycle()
    world.change(job, spec=replace(world.jobs[job].spec, specs=(wants(1000),)))
    assert [start.job for start in world.cycle().starts] == [job]


@pytest.mark.req("SC-13", "SC-08")
def test_a_job_with_a_reservation_is_ahead_of_all() -> None:
    """Others were evicted for the last job: no job starts before it."""
    qos = (Qos(name="low", grace_seconds=30), Qos(name="high", preempt=("low",)))
    cluster = Cluster(preemption=Preemption(kind="preempt/qos", mode=("REQUEUE",)))
    world = World(node("n1", 4), cluster=cluster, accounts=Accounts(qos={each.name: each for each in qos}))
    for _ in range(2):
        world.submit(wants(2000), record={"qos": "low"})
        world.run()
    waits = world.submit(wants(2000), record={"qos": "low"})
    urgent = world.submit(wants(2000), record={"qos": "high"})
    world.run()
    plan = world.cycle()
    assert isinstance(explain(world.snapshot(), plan, urgent).reason, EvictionPending)
    assert explain(world.snapshot(), plan, urgent).position == 1
    assert explain(world.snapshot(), plan, waits).ahead == (urgent,)
