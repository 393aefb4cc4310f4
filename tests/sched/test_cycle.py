from __future__ import annotations

import pytest

from cockpit.sched.backfill import easy
from cockpit.sched.cycle import cycle
from tests.sched.world import World, node, wants


@pytest.mark.req("SC-14")
def test_jobs_start_in_order_of_submission_while_they_fit() -> None:
    world = World(node("n1", 3))
    jobs = [world.submit(wants(1000)) for _ in range(5)]
    plan = world.run()
    assert [start.job for start in plan.starts] == jobs[:3]
    assert plan.order == tuple(jobs)


@pytest.mark.req("SC-14")
def test_a_plan_changes_nothing_until_it_is_carried_out() -> None:
    world = World(node("n1", 3))
    world.submit(wants(1000))
    first = cycle(world.snapshot(), None, world.policy)
    second = cycle(world.snapshot(), first.index, world.policy)
    assert first.starts == second.starts
    assert first.index.placed == second.index.placed == {}


@pytest.mark.req("SC-14", "PF-01")
def test_a_shape_that_failed_is_not_tried_again_in_the_same_pass(monkeypatch) -> None:
    tried = []

    def spy(index, shape, *rest, **more):
        tried.append(shape)
        return find_placement(index, shape, *rest, **more)

    find_placement = easy.find_placement
    monkeypatch.setattr(easy, "find_placement", spy)
    world = World(node("n1", 2))
    world.submit(wants(1000))
    for _ in range(50):
        world.submit(wants(2000))
        world.submit(wants(2000), nodes=9)
    world.run()
    assert len(tried) == 2


@pytest.mark.req("SC-14")
def test_an_empty_cluster_and_an_empty_queue_are_scheduled_without_error() -> None:
    assert World().run().starts == ()
    world = World()
    job = world.submit(wants())
    world.run()
    assert type(world.reason(job)).__name__ == "NoEligibleNode"
    assert World(node("n1")).run().order == ()


@pytest.mark.req("SC-14")
def test_shapes_of_jobs_that_left_the_queue_are_removed_from_the_cache() -> None:
    world = World(node("n1"))
    for _ in range(10):
        for _ in range(1000):
            world.submit(wants(), held_by="root")
        world.run()
        world.withdraw(*[job.id for job in world.queue])
    assert len(world.index.equivalence._jobs) <= 5000
