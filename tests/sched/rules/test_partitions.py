from __future__ import annotations

import pytest

from cockpit.model.cluster import Cluster, Partition, PartitionState
from cockpit.model.ids import NodeName
from cockpit.model.reasons import (
    NotEnoughFree,
    PartitionRefuses,
    PartitionRule,
)
from cockpit.sched.rules.partitions import nodes_of
from tests.sched.lab import starts, submit, tree, world
from tests.sched.world import World, node, wants

HOUR = 3600


@pytest.mark.req("SC-03")
@pytest.mark.parametrize(
    ("fields", "rule", "allowed", "asked"),
    [
        ({"state": PartitionState.DOWN}, PartitionRule.STATE, "down", ""),
        ({"state": PartitionState.INACTIVE}, PartitionRule.STATE, "inactive", ""),
        ({"max_time_seconds": HOUR - 1}, PartitionRule.MAX_TIME, "3599", "3600"),
        ({"min_nodes": 3}, PartitionRule.MIN_NODES, "3", "2"),
        ({"max_nodes": 1}, PartitionRule.MAX_NODES, "1", "2"),
        ({"allow_users": ("bob", "cyd")}, PartitionRule.USER, "bob, cyd", "ann"),
        ({"allow_accounts": ("cv",)}, PartitionRule.ACCOUNT, "cv", "nlp"),
        ({"deny_accounts": ("nlp",)}, PartitionRule.ACCOUNT, "", "nlp"),
        ({"allow_qos": ("high",)}, PartitionRule.QOS, "high", "normal"),
        ({"deny_qos": ("normal",)}, PartitionRule.QOS, "", "normal"),
    ],
)
def test_jobs_that_a_partition_refuses(fields, rule, allowed, asked) -> None:
    here = World(node("n1"), node("n2"), cluster=Cluster(partitions=(Partition(name="p", **fields),)))
    record = {"partitions": ("p",), "account": "nlp", "qos": "normal"}
    job = here.submit(nodes=2, limit=HOUR, record=record)
    assert not starts(here, job)
    assert here.reason(job) == PartitionRefuses("p", rule, allowed, asked)
    here.change_rules(cluster=Cluster(partitions=(Partition(name="p"),)))
    assert starts(here, job)


@pytest.mark.req("SC-03")
def test_jobs_that_a_partition_accepts() -> None:
    fine = {
        "state": PartitionState.DRAIN,
        "max_time_seconds": HOUR,
        "min_nodes": 2,
        "max_nodes": 2,
        "allow_accounts": ("nlp",),
        "deny_accounts": ("nlp",),
        "allow_qos": ("normal",),
        "deny_qos": ("normal",),
        "allow_users": ("ann",),
    }
    here = World(node("n1"), node("n2"), cluster=Cluster(partitions=(Partition(name="p", **fine),)))
    job = here.submit(nodes=2, limit=HOUR, record={"partitions": ("p",), "account": "nlp", "qos": "normal"})
    assert starts(here, job)


@pytest.mark.req("SC-03")
@pytest.mark.parametrize(
    ("flag", "fields"),
    [
        ("PartitionTimeLimit", {"max_time_seconds": 1}),
        ("PartitionMaxNodes", {"max_nodes": 0}),
        ("PartitionMinNodes", {"min_nodes": 9}),
    ],
)
def test_a_qos_may_override_a_partitions_limits(flag, fields) -> None:
    here = world(tree(free={"flags": (flag,)}), partitions=(Partition(name="p", **fields),))
    bound, free = submit(here, partitions=("p",)), submit(here, partitions=("p",), qos="free")
    assert [start.job for start in here.cycle().starts] == [free]
    assert isinstance(here.reason(bound), PartitionRefuses)


@pytest.mark.req("SC-03")
def test_a_removed_partition_starts_no_job() -> None:
    here = World(node("n1"), cluster=Cluster(partitions=(Partition(name="p"),)))
    job = here.submit(record={"partitions": ("old",)})
    assert not starts(here, job)
    assert here.reason(job) == PartitionRefuses("old", PartitionRule.STATE, "not there")


@pytest.mark.req("SC-03")
def test_a_partition_has_the_nodes_of_its_pools_and_those_it_names_but_no_login_nodes() -> None:
    nodes = [node("a", pool="east"), node("b", pool="west"), node("c"), node("d", pool="door")]
    both = Partition(name="both", pools=("east",), nodes=(NodeName("c"), NodeName("d")))
    cluster = Cluster(partitions=(both, Partition(name="all")), login_pool="door")
    assert [each.name for each in nodes_of(cluster, "both", nodes)] == ["a", "c"]
    assert [each.name for each in nodes_of(cluster, "all", nodes)] == ["a", "b", "c"]
    here = World(*nodes, cluster=cluster)
    for partition in ("both", "all"):
        here.submit(wants(cpus=16), record={"partitions": (partition,)}, nodes=2 if partition == "both" else 1)
    placed = {start.partition: [part.node for part in start.placement] for start in here.run().starts}
    assert placed == {"both": ["a", "c"], "all": ["b"]}


@pytest.mark.req("SC-03")
def test_a_job_of_several_partitions_starts_once_in_the_first_where_it_fits() -> None:
    two = Cluster(partitions=(Partition(name="p", nodes=(NodeName("n1"),)), Partition(name="q")))
    here = World(node("n1"), node("n2"), cluster=two)
    jobs = [here.submit(wants(cpus=16), record={"partitions": ("p", "q")}) for _ in range(3)]
    plan = here.run()
    assert [(start.job, start.partition) for start in plan.starts] == [(jobs[0], "p"), (jobs[1], "q")]
    assert isinstance(here.reason(jobs[2]), NotEnoughFree)
    assert plan.order == tuple(jobs)


@pytest.mark.req("SC-13")
def test_the_reason_is_of_the_partition_where_only_free_resources_are_missing() -> None:
    cluster = Cluster(partitions=(Partition(name="shut", state=PartitionState.DOWN), Partition(name="full")))
    here = World(node("n1"), cluster=cluster)
    here.submit(wants(cpus=16), record={"partitions": ("full",)})
    here.run()
    job = here.submit(record={"partitions": ("shut", "full")})
    here.cycle()
    assert isinstance(here.reason(job), NotEnoughFree)
