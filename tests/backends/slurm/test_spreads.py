"""Waiting jobs whose tasks share out over their nodes, as squeue and scontrol tell them."""

from __future__ import annotations

import pytest

from cockpit.backends.slurm.mapping.cluster import ClusterLists, spec_shared_out, state
from cockpit.backends.slurm.mapping.jobs import Listed
from cockpit.backends.slurm.mapping.spreads import Tasks, spreads
from cockpit.model.cluster import Cluster
from cockpit.model.ids import Millis
from cockpit.model.spec import JobSpec, NodeSpec
from tests.backends.slurm.test_values import a_record

HEAD = """JobId=5 JobName=vit
   UserId=bob(20002) GroupId=bob(20002) MCS_label=N/A
   Priority=3251 Nice=0 Account=vision QOS=normal
   JobState=PENDING Reason=Priority Dependency=(null)
"""
MEMORY = "MinMemoryNode=1G"


def printed(size: str, *, cpus: int = 1, memory: str = MEMORY, per_node: int = 0, head: str = HEAD) -> str:
    """One job; `size`: how many nodes, CPUs, tasks, and CPUs a task."""
    return (
        f"{head}   {size} ReqB:S:C:T=0:0:*:*\n   TRES=cpu=24,mem=1G,node=1,billing=24\n"
        f"   Socks/Node=* NtasksPerN:B:S:C={per_node}:0:*:* CoreSpec=*\n"
        f"   MinCPUsNode={cpus} {memory} MinTmpDiskNode=0\n   Comment=x \n\n"
    )


ANY = "NumNodes=3 NumCPUs=24 NumTasks=24 CPUs/Task=1"


def spec_of(told: str, amounts: str, nodes: int = 3, **fields: str) -> JobSpec | None:
    record = a_record(
        **{"JobID": "5", "State": "PENDING", "NumNodes": str(nodes), "NumCPUs": "24", "tres-alloc": amounts, **fields}
    )
    everything = ClusterLists(Millis(0), Cluster(), (), (Listed(record),), spreads=spreads(told))
    return spec_shared_out(everything, everything.jobs[0])


@pytest.mark.req("SL-14")
def test_the_tasks_that_scontrol_prints() -> None:
    assert spreads(printed(ANY)) == {"5": Tasks(24, 1, None, None, 1, 1024, is_memory_per_cpu=False)}
    bounded = printed("NumNodes=2-3 NumCPUs=48 NumTasks=24 CPUs/Task=2", cpus=8, memory="MinMemoryCPU=100M", per_node=4)
    assert spreads(bounded) == {"5": Tasks(24, 2, 3, 4, 8, 100, is_memory_per_cpu=True)}
    unsaid = printed("NumNodes=3 NumCPUs=48 NumTasks=24 CPUs/Task=N/A")
    assert spreads(unsaid)["5"].cpus == 2


@pytest.mark.req("SL-14")
def test_only_waiting_jobs_are_read_and_text_of_users_is_ignored() -> None:
    running = printed(ANY, head=HEAD.replace("PENDING", "RUNNING"))
    assert spreads(running) == {}
    own_words = printed(ANY, head=HEAD.replace("vit", "NumNodes=1-1 NumCPUs=1 NumTasks=1 CPUs/Task=1"))
    assert spreads(own_words)["5"].tasks == 24
    assert spreads(running + printed(ANY, head=HEAD.replace("JobId=5", "JobId=6"))).keys() == {"6"}
    assert spreads(HEAD + "\n") == {}


@pytest.mark.req("SL-14")
def test_tasks_without_a_number_of_nodes_share_out_over_any() -> None:
    spec = spec_of(printed(ANY), "cpu=24,mem=1G,node=1,billing=24")
    assert spec is not None
    assert (spec.nodes, spec.specs) == (1, (NodeSpec(cpus=1, memory_mib=1024),))
    assert spec.spread is not None
    assert (spec.spread.tasks, spec.spread.most_nodes, spec.spread.most_per_node) == (24, None, None)
    assert spec.spread.each == NodeSpec(cpus=1, memory_mib=0)


@pytest.mark.req("SL-14")
def test_before_slurm_has_planned_it_the_job_says_one_node() -> None:
    spec = spec_of(printed(ANY.replace("NumNodes=3", "NumNodes=1")), "cpu=24,mem=1G,node=1,billing=24", nodes=1)
    assert spec is not None
    assert (spec.nodes, spec.spread is not None) == (1, True)


@pytest.mark.req("SL-14")
def test_a_range_of_nodes_and_a_fixed_number_bound_them() -> None:
    some = spec_of(printed(ANY.replace("NumNodes=3", "NumNodes=3-4")), "cpu=24,mem=2G,node=2,billing=24")
    assert some is not None
    assert some.spread is not None
    assert (some.nodes, some.spread.most_nodes) == (2, 4)
    fixed = spec_of(printed(ANY.replace("NumNodes=3", "NumNodes=3-3")), "cpu=24,mem=3G,node=3,billing=24")
    assert fixed is not None
    assert fixed.spread is not None
    assert (fixed.nodes, fixed.spread.most_nodes, fixed.spread.tasks) == (3, 3, 24)


@pytest.mark.req("SL-14")
def test_one_task_per_node_is_unchanged() -> None:
    three = "NumNodes=3-3 NumCPUs=3 NumTasks=3 CPUs/Task=1"
    assert spec_of(printed(three), "cpu=3,mem=3G,node=3") is None
    assert spec_of(printed("NumNodes=1 NumCPUs=8 NumTasks=1 CPUs/Task=8", cpus=8), "cpu=8,mem=1G,node=1", 1) is None
    more = spec_of(printed(three.replace("3-3", "3-4").replace("Tasks=3", "Tasks=2")), "cpu=2,mem=2G,node=2")
    assert more is not None
    assert more.nodes == 2


@pytest.mark.req("SL-14")
def test_memory_by_cpu_and_cpus_of_a_node_at_least() -> None:
    told = printed("NumNodes=3 NumCPUs=24 NumTasks=12 CPUs/Task=2", cpus=8, memory="MinMemoryCPU=100M", per_node=4)
    spec = spec_of(told, "cpu=24,mem=2400M,node=1")
    assert spec is not None
    assert spec.spread is not None
    assert spec.spread.each == NodeSpec(cpus=2, memory_mib=200)
    assert spec.spread.most_per_node == 4
    assert spec.specs[0].cpus == 8


@pytest.mark.req("SL-14", "SL-11")
def test_cards_by_node_by_task_and_by_job() -> None:
    amounts = "cpu=24,mem=1G,node=1,billing=24,gres/gpu=2"
    by_node = spec_of(printed(ANY), amounts, **{"tres-per-node": "gres:gpu:2"})
    assert by_node is not None
    assert by_node.spread is not None
    assert (by_node.specs[0].card_milli, by_node.spread.each.card_milli) == (2000, 0)
    each = "cpu=24,mem=2G,node=2,gres/gpu=24,gres/gpu:a100=24"
    by_task = spec_of(printed(ANY), each, **{"tres-per-task": "gres:gpu:1"})
    assert by_task is not None
    assert by_task.spread is not None
    assert (by_task.specs[0].card_milli, by_task.spread.each.card_milli) == (1000, 1000)
    assert by_task.specs[0].card_models == ("a100",)
    assert spec_of(printed(ANY), amounts, **{"tres-per-job": "gres:gpu:2"}) is None
    assert spec_of(printed(ANY), amounts, **{"tres-per-task": "cpu=1", "tres-per-job": "gres/gpu:2"}) is None
    of_cpus = spec_of(printed(ANY), "cpu=24,mem=1G,node=1", **{"tres-per-task": "cpu=1"})
    assert of_cpus is not None


@pytest.mark.req("SL-14", "SC-02")
def test_the_core_plans_them_and_counts_priorities_by_slurms_own_plan() -> None:
    fields = {"JobID": "5", "State": "PENDING", "NumNodes": "3", "NumCPUs": "24", "PriorityLong": "9"}
    record = a_record(**fields, **{"tres-alloc": "cpu=24,mem=1G,node=1,billing=24"})
    everything = ClusterLists(Millis(0), Cluster(), (), (Listed(record),), spreads=spreads(printed(ANY)))
    (planned,) = state(everything, as_ranked=True).jobs.values()
    (counted,) = state(everything, as_ranked=False).jobs.values()
    assert (planned.spec.nodes, planned.spec.spread is not None) == (1, True)
    assert (counted.spec.nodes, counted.spec.spread) == (3, None)
    assert planned.direct_priority == 9
