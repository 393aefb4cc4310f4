"""Memory of jobs that name none."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from cockpit.backends.slurm.mapping.cluster import ClusterLists, state
from cockpit.backends.slurm.mapping.jobs import Listed
from cockpit.backends.slurm.mapping.memory import LEAST, DefaultMemory, MemoryRules, memory_rules, with_default_memory
from cockpit.backends.slurm.mapping.nodes import slurm_nodes
from cockpit.backends.slurm.mapping.script import options
from cockpit.backends.slurm.mapping.spreads import spreads
from cockpit.model.batchscript import BatchScript
from cockpit.model.cluster import Cluster, Partition
from cockpit.model.ids import Millis
from cockpit.model.spec import JobSpec
from tests.backends.slurm.test_spreads import printed
from tests.backends.slurm.test_values import a_record
from tests.builders import a_spec

pytestmark = pytest.mark.req("SL-14")
SIZES = {"n1": 64000, "n2": 64000, "n3": 128000}
NODES = tuple(
    slurm_nodes(
        {"NodeName": name, "CPUTot": "8", "RealMemory": str(size), "State": "IDLE", "Gres": f"gpu:{model}:4"}
        for (name, size), model in zip(SIZES.items(), ("a100", "a100", "h100"), strict=True)
    )
)
ALIKE, MIXED = Partition(name="gpu", nodes=("n1", "n2")), Partition(name="batch", nodes=tuple(SIZES), default=True)
CONF = {"DefMemPerNode": "UNLIMITED", "SelectTypeParameters": "CR_CORE_MEMORY"}


def lists(**changes: Any) -> ClusterLists:
    rules = memory_rules(CONF, ())
    return ClusterLists(Millis(0), Cluster(partitions=(ALIKE, MIXED)), NODES, (), memory=rules)._replace(**changes)


def script(text: str = "", **fields: Any) -> JobSpec:
    lines = f"#!/bin/sh\n{text}\ntrue\n"
    spec = a_spec("x", cpus=4, memory_mib=1024)
    return replace(spec, script=BatchScript(text=lines, work_dir="/w"), **fields)


def planned(partition: str, wanted: str, **changes: Any) -> JobSpec:
    size = "NumNodes=1 NumCPUs=1 NumTasks=1 CPUs/Task=1"
    record = a_record(JobID="5", State="PENDING", NumNodes="1", Partition=partition, NodeList="")
    record |= {"NumCPUs": "1", "tres-alloc": "cpu=1,mem=62.50G,node=1"}
    told = spreads(printed(size, memory=wanted))
    (job,) = state(lists(jobs=(Listed(record),), spreads=told, **changes), as_ranked=True).jobs.values()
    return job.spec


def test_a_queued_job_that_names_no_memory_is_planned_with_all_memory_of_its_nodes() -> None:
    spec = planned("gpu", "MinMemoryNode=0")
    assert (spec.specs[0].memory_mib, spec.exclusive) == (64000, False)
    mixed = planned("batch", "MinMemoryNode=0")
    assert (mixed.specs[0].memory_mib, mixed.exclusive) == (LEAST, True)


def test_a_queued_job_that_names_memory_is_planned_with_it() -> None:
    assert (planned("batch", "MinMemoryCPU=64000M").specs[0].memory_mib, planned("batch", "").exclusive) == (
        64000,
        False,
    )


def test_a_cluster_that_allocates_no_memory_has_enough_for_every_job() -> None:
    rules = memory_rules({"SelectTypeParameters": "CR_CORE"}, ())
    for wanted in ("MinMemoryNode=0", "MinMemoryNode=64000M"):
        spec = planned("batch", wanted, memory=rules)
        assert (spec.specs[0].memory_mib, spec.exclusive) == (LEAST, False)


def test_the_default_of_the_partition_comes_before_that_of_the_cluster() -> None:
    partition = {"PartitionName": "gpu", "DefMemPerCPU": "2000"}
    rules = memory_rules(
        {"DefMemPerNode": "3000"}, [partition, {"PartitionName": "batch", "DefMemPerNode": "UNLIMITED"}]
    )
    assert rules.default("gpu") == DefaultMemory(None, 2000)
    assert rules.default("batch") == DefaultMemory(3000, None)
    assert memory_rules({}, ()) == MemoryRules()
    everything = lists(memory=rules)
    assert with_default_memory(script(partitions=("gpu",)), everything).specs[0].memory_mib == 8000
    assert with_default_memory(script(), everything).specs[0].memory_mib == 3000


def test_a_script_without_memory_is_predicted_with_all_memory_of_its_nodes() -> None:
    for text in ("", "#SBATCH --mem=0"):
        assert with_default_memory(script(text, partitions=("gpu",)), lists()).specs[0].memory_mib == 64000
        mixed = with_default_memory(script(text), lists())
        assert (mixed.specs[0].memory_mib, mixed.exclusive) == (LEAST, True)
    one_model = a_spec("x", cpus=1, memory_mib=1024, card_milli=1000, card_models=("h100",))
    assert with_default_memory(replace(script(), specs=one_model.specs), lists()).specs[0].memory_mib == 128000


@pytest.mark.parametrize(
    "spec",
    [
        script("#SBATCH --mem=1G"),
        script("#SBATCH --mem-per-cpu=256M"),
        script(exclusive=True),
        replace(script(), script=None),
        replace(script(), specs=a_spec("x", memory_mib=5).specs),
    ],
)
def test_what_names_memory_keeps_it(spec: JobSpec) -> None:
    assert with_default_memory(spec, lists()) is spec


def test_what_the_script_leaves_to_slurm_is_left_to_slurm() -> None:
    assert not [word for word in options(script()) if word.startswith("--mem")]
    assert "--mem=0" in options(script("#SBATCH --mem=0"))
    assert "--mem=1024M" in options(script("#SBATCH --mem=1G"))


def test_nothing_is_assumed_where_the_defaults_are_unknown() -> None:
    spec = script()
    assert with_default_memory(spec, lists(memory=memory_rules({}, ()))) is spec
