from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from cockpit.model.cluster import Cluster, Partition
from cockpit.model.ids import NodeName
from cockpit.model.node import NodeState
from cockpit.model.reasons import (
    LimitReached,
)
from tests.sched.lab import starts, submit, tree, world
from tests.sched.world import World, node


@pytest.mark.req("SC-14")
def test_updated_counters_equal_those_counted_from_scratch() -> None:
    limits = {"grp_jobs": 9, "grp_tres": {"cpu": 30, "gres/gpu": 5}}
    here = world(tree(nlp=limits, user=limits, normal={"max_tres_per_user": {"cpu": 20}}))
    for scheduling_pass in range(12):
        submit(
            here,
            cpus=1 + scheduling_pass % 3,
            card=scheduling_pass % 2 / 2,
            user="ann" if scheduling_pass % 3 else "bob",
        )
        here.run()
        if scheduling_pass % 3 == 2:
            here.end(next(iter(here.occupied)))
        if scheduling_pass == 7:
            here.keep_cards(next(job for job, parts in here.occupied.items() if parts[0].slices))
        here.cycle()
        kept, here.index, here.plan = here.index.counters, None, None
        here.cycle()
        assert here.index.counters.used == kept.used
        assert kept.used


@pytest.mark.req("SC-14")
def test_changed_limits_recount_the_running_jobs() -> None:
    here = world(tree())
    submit(here, cpus=5)
    here.run()
    here.change_rules(accounts=tree(nlp={"grp_tres": {"cpu": 6}}))
    job = submit(here, cpus=2)
    here.cycle()
    assert here.reason(job) == LimitReached("account nlp", "GrpTRES", "cpu", 6, 5, 2)


@pytest.mark.req("SC-14")
def test_a_job_stopped_by_a_limit_starts_when_the_limit_is_free_again_and_not_before() -> None:
    here = world(tree(nlp={"grp_tres": {"cpu": 8}}))
    big, small = submit(here, cpus=8), [submit(here, cpus=4, user="bob") for _ in range(3)]
    for running, free in (([big], small[:2]), (small[:1], small[2:]), (small[1:2], [])):
        here.run()
        assert not here.cycle().starts
        assert [job for job in running if job in here.occupied] == running
        for job in running:
            here.end(job)
        assert [start.job for start in here.cycle().starts] == free


@pytest.mark.req("SC-14")
def test_nodes_that_leave_service_or_change_hands_are_noticed() -> None:
    here = World(node("n1"), node("n2"), cluster=Cluster(partitions=(Partition(name="p", nodes=(NodeName("n1"),)),)))
    job = here.submit(record={"partitions": ("p",)})
    here.set_state("n1", NodeState.DRAINED)
    assert not starts(here, job)
    here.change_rules(cluster=Cluster(partitions=(Partition(name="p", nodes=(NodeName("n2"),)),)))
    assert starts(here, job)


_STORY = """
from tests.sched.lab import submit, tree, world
from cockpit.model.cluster import Partition
limits = {"grp_tres": {"cpu": 40, "gres/gpu": 6, "mem": 60000}, "grp_jobs": 20}
here = world(tree(nlp=limits, user=limits, normal={"max_tres_per_user": {"cpu": 20, "gres/gpu": 4}}),
             partitions=(Partition(name="p"), Partition(name="q", qos="normal")))
for n in range(60):
    submit(here, cpus=1 + n % 5, card=n % 4 / 2, user=("ann", "bob")[n % 2], partitions=("pq"[n % 2], "qp"[n % 2]))
plan = here.run()
print(plan.starts)
print([here.reason(job.id) for job in here.queue])
"""


@pytest.mark.req("SC-14")
def test_a_plan_depends_on_no_order_of_dicts_and_sets() -> None:
    told = set()
    for seed in ("0", "1", "4711"):
        env = {**os.environ, "PYTHONHASHSEED": seed}
        root, story = Path(__file__).parents[2], [sys.executable, "-c", _STORY]
        told.add(subprocess.run(story, env=env, cwd=root, capture_output=True, check=True).stdout)
    assert len(told) == 1
    assert b"LimitReached" in told.pop()


@pytest.mark.req("SC-14")
def test_limits_written_in_another_order_give_the_same_plan() -> None:
    one = {"grp_tres": {"cpu": 9, "mem": 9000}}
    other = {"grp_tres": {"mem": 9000, "cpu": 9}}
    plans = []
    for limits in (one, other):
        here = world(tree(nlp=limits))
        for cpus in (5, 3, 2, 1):
            submit(here, cpus=cpus)
        plans.append(here.cycle().starts)
    assert plans[0] == plans[1]


@pytest.mark.req("SC-14")
def test_a_cycle_does_not_change_the_state_it_reads() -> None:
    here = world(tree(nlp={"grp_jobs": 1}))
    jobs = [submit(here), submit(here)]
    snapshot = here.snapshot()
    assert snapshot.jobs is here.jobs
    assert snapshot.occupied is here.occupied
    before = replace(snapshot), dict(here.jobs), dict(here.occupied)
    here.cycle()
    assert (replace(snapshot), here.jobs, here.occupied) == before
    assert [job.id for job in here.queue] == jobs
