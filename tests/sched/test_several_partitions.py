"""A job of several partitions is one job: it does not delay itself, and starts once."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from cockpit.model.accounts import Accounts, Association, Qos, ResourceLimits
from cockpit.model.cluster import Backfill, BackfillKind, Cluster, Enforce, Partition
from cockpit.model.ids import NodeName
from cockpit.model.reasons import LimitReached, NotEnoughFree, PartitionRefuses
from cockpit.sched.forecast import runtime_predictors
from cockpit.sched.forecast.future import ClusterSimulation, simulation_index
from cockpit.sched.index import refresh_index
from cockpit.sched.policy import Policy
from cockpit.sched.priority.priorities import prioritised
from tests.sched.world import World, cards, node, wants

pytestmark = pytest.mark.req("SC-03", "SC-06")

SMALL = Partition(name="small", nodes=(NodeName("n1"),))
BOTH = Partition(name="both", nodes=(NodeName("n1"), NodeName("n2")))
IN_BOTH = {"partitions": ("small", "both")}


def world_of(kind: BackfillKind) -> World:
    """n1 is busy until 0:10; n2 is free and belongs to one of the two partitions."""
    cluster = Cluster(partitions=(SMALL, BOTH))
    world = World(node("n1", 4), node("n2", 4), policy=Policy(backfill=Backfill(kind=kind)), cluster=cluster)
    world.submit(wants(4000), limit=10, pins=("n1",), record={"partitions": ("small",)})
    world.run()
    return world


@pytest.mark.parametrize("kind", BackfillKind)
def test_a_job_that_waits_in_one_partition_starts_in_the_other_and_has_no_reservation(kind: BackfillKind) -> None:
    world = world_of(kind)
    job = world.submit(wants(4000), limit=100, record=IN_BOTH)
    plan = world.run()
    assert [(start.job, start.partition) for start in plan.starts] == [(job, "both")]
    assert plan.reservations == ()


@pytest.mark.parametrize("kind", BackfillKind)
def test_a_job_after_that_start_waits_behind_no_job(kind: BackfillKind) -> None:
    """It was first in one partition and started in the other: its reservation is dropped."""
    cluster, policy = Cluster(partitions=(SMALL, BOTH)), Policy(backfill=Backfill(kind=kind))
    world = World(node("n1", 4), node("n2", 4), policy=policy, cluster=cluster)
    world.submit(wants(3000), limit=10, pins=("n1",), record={"partitions": ("small",)})
    world.run()
    world.submit(wants(4000), limit=100, record=IN_BOTH)
    world.run()
    late = world.submit(wants(1000), limit=100, record={"partitions": ("small",)})
    assert [start.job for start in world.run().starts] == [late]


@pytest.mark.parametrize("order", [("small", "both"), ("both", "small")])
def test_under_conservative_backfill_the_sooner_of_its_slots_is_kept_for_a_job(order: tuple[str, ...]) -> None:
    """It fits on n2 first. A job behind it fits beside it there, if that is where the plan has it."""
    world = world_of(BackfillKind.CONSERVATIVE)
    world.submit(wants(1000, cpus=16), limit=5, pins=("n2",), record={"partitions": ("both",)})
    world.run()
    job = world.submit(wants(4000), limit=100, record={"partitions": order})
    behind = world.submit(wants(4000), limit=100, pins=("n1",), record={"partitions": ("both",)})
    plan = world.run()
    assert {each.job: each.reserved_at for each in plan.reservations} == {job: 5_000, behind: 10_000}


def test_its_slot_in_another_partition_does_not_keep_a_job_from_a_sooner_one() -> None:
    """`wide` has two nodes and `both` has three: the job's own slot must not count as taken on the node of both."""
    wide = Partition(name="wide", nodes=(NodeName("n1"), NodeName("n3")))
    both = Partition(name="both", nodes=(NodeName("n1"), NodeName("n2"), NodeName("n3")))
    world = World(
        *(node(name) for name in ("n1", "n2", "n3")),
        policy=Policy(backfill=Backfill(kind=BackfillKind.CONSERVATIVE)),
        cluster=Cluster(partitions=(wide, both)),
    )
    for name, limit in (("n1", 10), ("n2", 20), ("n3", 30)):
        world.submit(wants(cpus=16), limit=limit, pins=(name,), record={"partitions": ("both",)})
    world.run()
    job = world.submit(wants(cpus=9), nodes=2, limit=100, record={"partitions": ("wide", "both")})
    assert [(each.job, each.reserved_at) for each in world.run().reservations] == [(job, 20_000)]


def test_jobs_that_name_a_removed_partition_report_it() -> None:
    world = world_of(BackfillKind.EASY)
    job = world.submit(wants(4000), record={"partitions": ("small",)})
    world.change_rules(cluster=Cluster())
    world.run()
    assert world.reason(job) == PartitionRefuses("small", "state", "not there")


def test_a_job_with_one_partition_of_a_high_tier_is_before_jobs_with_none() -> None:
    world = world_of(BackfillKind.EASY)
    old = world.submit(wants(4000))
    world.change_rules(cluster=Cluster(partitions=(replace(BOTH, priority_tier=5),)))
    young = world.submit(wants(4000), record={"partitions": ("both",)})
    assert world.run().order[:2] == (young, old)


@pytest.mark.parametrize("kind", [BackfillKind.EASY, BackfillKind.CONSERVATIVE])
def test_a_reservation_names_the_jobs_own_alternative_though_a_limit_closed_another(kind: BackfillKind) -> None:
    line = (
        Association(account="root"),
        Association(account="lab", parent="root", limits=ResourceLimits(grp_tres={"cpu": 4.0})),
        Association(account="lab", user="ann"),
    )
    rules = {"cluster": Cluster(enforce=(Enforce.LIMITS,))}
    rules["accounts"] = Accounts(associations={each.key: each for each in line})
    world = World(node("n1", 4), policy=Policy(backfill=Backfill(kind=kind)), **rules)
    ann = {"account": "lab"}
    world.submit(wants(4000), limit=10, record=ann)
    world.run()
    world.submit(wants(4000, cpus=4), wants(4000, cpus=2), record=ann)
    assert world.run().reservation.spec_index == 1


def test_a_job_that_a_limit_stops_after_all_blocks_no_job_from_its_nodes() -> None:
    """A share of a sliced card takes more than it asked for, which its owner may not have."""
    line = (
        Association(account="root"),
        Association(account="lab", parent="root", limits=ResourceLimits(grp_tres={"gres/gpu": 0.4})),
        Association(account="lab", user="ann"),
        Association(account="root", user="ann"),
    )
    rules = {"cluster": Cluster(enforce=(Enforce.LIMITS,))}
    rules["accounts"] = Accounts(associations={each.key: each for each in line})
    halves = node("n1", cards(1, slices=2))
    world = World(halves, policy=Policy(backfill=Backfill(kind=BackfillKind.CONSERVATIVE)), **rules)
    world.submit(wants(300), record={"account": "lab"})
    other = world.submit(wants(1000), record={"account": "root"})
    assert [start.job for start in world.run().starts] == [other]


@pytest.mark.req("SC-12")
def test_behind_many_jobs_the_work_of_one_in_several_partitions_counts_once() -> None:
    world = world_of(BackfillKind.EASY)
    world.submit(wants(4000), limit=100, pins=("n2",), record={"partitions": ("both",)})
    world.run()
    waiting = [world.submit(wants(4000), limit=100, record=IN_BOTH) for _ in range(3)]
    snapshot = world.snapshot()
    index = simulation_index(refresh_index(None, snapshot))
    future = ClusterSimulation(
        snapshot, index, world.policy, prioritised(snapshot).order, runtime_predictors.TimeLimitPredictor()
    )
    assert [job.id for job in future.order()] == waiting


def test_the_reason_is_that_of_the_partition_where_it_passes_first() -> None:
    """The limit passes when the job that uses it ends, which is later than the end of the job on n1."""
    limited = Partition(name="limited", nodes=(NodeName("n2"),), qos="few")
    cluster = Cluster(partitions=(limited, SMALL), enforce=(Enforce.LIMITS,))
    qos = {
        each.name: each for each in (Qos(name="normal"), Qos(name="few", limits=ResourceLimits(grp_tres={"cpu": 1.0})))
    }
    accounts = Accounts(
        associations={
            each.key: each for each in (Association(account="root"), Association(account="root", user="ann"))
        },
        qos=qos,
    )
    world = World(node("n1", 4), node("n2", 4), cluster=cluster, accounts=accounts)
    world.submit(wants(1000), limit=100, record={"partitions": ("limited",), "account": "root"})
    world.submit(wants(4000), limit=10, record={"partitions": ("small",), "account": "root"})
    world.run()
    job = world.submit(wants(1000), limit=5, record={"partitions": ("limited", "small"), "account": "root"})
    world.run()
    assert isinstance(world.plan.refusals.reason(world.jobs[job], "limited"), LimitReached)
    assert isinstance(world.reason(job), NotEnoughFree)
