"""A pass whose starts let other jobs start, which it passed over, is followed by another one at once.

Nothing else would wake the scheduler, and a forecast says that these jobs start now.
"""

from __future__ import annotations

import pytest

from cockpit.model.accounts import Accounts, Qos
from cockpit.model.cluster import Backfill, BackfillKind, Cluster, Enforce, Partition, Preemption
from cockpit.model.ids import JobId, NodeName
from cockpit.model.reasons import LimitReached
from cockpit.sched.policy import Policy
from tests.sched.lab import tree
from tests.sched.world import World, node, wants

pytestmark = pytest.mark.req("SC-13", "SC-14")


def started(world: World) -> list[JobId]:
    return [start.job for start in world.run().starts]


def passed_again(world: World) -> list[JobId]:
    """The jobs that another pass starts, which is due a millisecond later; none where none is due."""
    if world.plan.next_at != world.now + 1:
        return []
    world.now += 1
    world.version += 1
    return started(world)


def test_jobs_beyond_the_depth_are_considered_once_those_before_them_have_started() -> None:
    world = World(node("n1", 4), policy=Policy(backfill=Backfill(depth=2)))
    world.submit(wants(2000), limit=100)
    world.run()
    world.submit(wants(4000), limit=100)
    small = [world.submit(wants(1000), limit=50) for _ in range(2)]
    assert started(world) == small[:1]
    assert passed_again(world) == small[1:]
    assert passed_again(world) == []


def test_jobs_behind_a_head_that_started_in_another_partition_are_considered_again() -> None:
    places = [Partition(name=name, nodes=(NodeName(name),)) for name in ("n1", "n2", "n3")]
    world = World(
        *(node(name, 1) for name in ("n1", "n2", "n3")),
        policy=Policy(backfill=Backfill(kind=BackfillKind.OFF)),
        cluster=Cluster(partitions=tuple(places)),
    )
    world.submit(wants(1000), record={"partitions": ("n1",)})
    world.run()
    head = world.submit(wants(1000), record={"partitions": ("n1", "n2")})
    behind = world.submit(wants(1000), record={"partitions": ("n3",)})
    assert started(world) == [head]
    assert passed_again(world) == [behind]


def test_a_job_that_would_delay_one_which_a_limit_stops_by_now_starts() -> None:
    """The head waits for two cards; a short job of its account starts before it and reaches the account's limit."""
    world = World(
        node("n1", 4), cluster=Cluster(enforce=(Enforce.LIMITS,)), accounts=tree(nlp={"grp_tres": {"gres/gpu": 2.0}})
    )
    world.submit(wants(3000), limit=100, record={"account": "other"})
    world.run()
    world.submit(wants(2000), limit=100, record={"account": "nlp"})
    short = world.submit(wants(1000), limit=50, record={"account": "nlp"})
    assert started(world) == [short]
    assert isinstance(world.reason(JobId(2)), LimitReached)
    assert passed_again(world) == []
    assert world.plan.reservation is None


def test_jobs_that_started_in_the_same_pass_may_be_preempted_by_the_next_one() -> None:
    qos = {name: Qos(name=name, preempt=may) for name, may in (("low", ()), ("high", ("low",)))}
    world = World(
        node("n1", 1),
        cluster=Cluster(preemption=Preemption(kind="preempt/qos", mode=("REQUEUE",))),
        accounts=Accounts(qos=qos),
    )
    low, high = (world.submit(wants(1000), record={"qos": name}) for name in ("low", "high"))
    assert started(world) == [low]
    passed_again(world)
    assert [(each.job, each.for_job) for each in world.plan.evictions] == [(low, high)]


def test_a_pass_that_starts_no_job_is_not_repeated() -> None:
    world = World(node("n1", 1), policy=Policy(backfill=Backfill(depth=1)))
    world.submit(wants(1000))
    world.run()
    for _ in range(3):
        world.submit(wants(1000))
    assert started(world) == []
    assert world.plan.next_at is None


def test_the_figures_of_a_limit_are_those_after_the_pass() -> None:
    """The whole node would break the limit; a job behind starts and counts for it, too."""
    world = World(
        node("n1", cpus=8),
        cluster=Cluster(enforce=(Enforce.LIMITS,)),
        accounts=tree(nlp={"grp_tres": {"cpu": 4.0}}),
    )
    whole = world.submit(wants(cpus=1), exclusive=True, record={"account": "nlp"})
    small = world.submit(wants(cpus=2), record={"account": "nlp"})
    assert started(world) == [small]
    told = world.reason(whole)
    assert isinstance(told, LimitReached)
    assert (told.asked, told.used) == (8.0, 2.0)
