"""What keeps a running elastic job from one more worker: who holds the nodes, which limit, which price."""

from __future__ import annotations

import pytest

from cockpit.model.accounts import NORMAL
from cockpit.model.cluster import Backfill, BackfillKind, Cluster, Enforce
from cockpit.model.jobdetail import GrowthObstacle
from cockpit.model.labels import Taint
from cockpit.model.reasons import LimitReached
from cockpit.model.resilience import Elastic
from cockpit.sched.growth_obstacle import growth_obstacle
from cockpit.sched.policy import Policy
from tests.builders import a_node, a_spec
from tests.engine.driver import EngineDriver
from tests.engine.test_workers import begun, elastic, engine
from tests.sched.lab import tree
from tests.sched.test_growth import elastic as waiting_elastic
from tests.sched.test_growth import four
from tests.sched.world import spec_of, wants


def obstacle(driver: EngineDriver, job: int) -> GrowthObstacle | None:
    driver.schedule()
    return growth_obstacle(driver.plan, driver.job(job))


@pytest.mark.req("EL-01")
def test_the_jobs_that_hold_the_nodes_are_named_with_the_largest_first() -> None:
    driver = engine(nodes=4)
    small, large, job = begun(
        driver, a_spec("small", cpus=4), a_spec("large", cpus=4, nodes=2), elastic("train", 1, 1, 4)
    )
    assert obstacle(driver, job) == GrowthObstacle(held_by=(large, small))


@pytest.mark.req("EL-01")
def test_the_queued_job_is_named_for_which_free_nodes_are_reserved() -> None:
    world = four(Policy(backfill=Backfill(kind=BackfillKind.EASY)))
    world.submit(wants(cpus=4), limit=3600)
    job = waiting_elastic(world, 1, 1, 4, limit=9000)
    waits = world.submit(wants(cpus=4), nodes=3, limit=3600)
    world.run()
    plan = world.run()
    assert growth_obstacle(plan, world.jobs[job]) == GrowthObstacle(reserved_for=(waits,))


@pytest.mark.req("EL-01")
def test_the_limit_that_one_more_worker_would_exceed_is_named_with_its_figures() -> None:
    limited = Cluster(enforce=(Enforce.LIMITS,))
    world = four(accounts=tree(lab={"grp_tres": {"cpu": 8}}), cluster=limited)
    size = Elastic(workers=2, max_workers=4)
    job = world.submit_spec(spec_of(wants(cpus=4), nodes=2, elastic=size), account="nlp", qos=NORMAL)
    world.run()
    found = growth_obstacle(world.run(), world.jobs[job])
    assert found is not None
    assert isinstance(found.limit, LimitReached)
    assert (found.limit.limit, found.limit.allowed) == ("GrpTRES", 8)


@pytest.mark.req("EL-01", "EL-05")
def test_free_nodes_above_the_highest_price_and_blocked_nodes_are_named() -> None:
    spot = {"taints": (Taint("spot"),)}
    nodes = (("n1", "0.2"), ("n2", "0.2"), ("n3", "0.5"))
    driver = EngineDriver(*(a_node(name, cpus=4, labels={"price": price}, **spot) for name, price in nodes))
    (job,) = begun(driver, elastic("train", 1, 2, 3, qos=None, spot=True, max_price_milli=350, max_wait_seconds=60))
    assert obstacle(driver, job) == GrowthObstacle(too_dear=("n3",))


@pytest.mark.req("EL-01")
def test_a_job_that_may_not_grow_at_all_has_no_obstacle() -> None:
    driver = engine(nodes=3)
    (job,) = begun(driver, elastic("train", 1, 1, 3, grows=False))
    assert obstacle(driver, job) is None
