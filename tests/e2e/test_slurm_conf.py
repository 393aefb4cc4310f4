"""A real slurmctld takes the exported slurm.conf, and gives back what it says."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from cockpit.formats.cluster.file import read_cluster
from cockpit.formats.clusterinit import initial_cluster
from cockpit.formats.slurm.conf import slurm_conf
from cockpit.formats.slurm.spec import read_slurm_spec
from cockpit.model.cluster import (
    Backfill,
    Cluster,
    Enforce,
    Partition,
    PartitionState,
    Preemption,
    Priority,
    PriorityFlag,
    PriorityKind,
    UsageReset,
    Weights,
)
from cockpit.resources import fixture
from tests.builders import a_card, a_node
from tests.e2e.slurm_daemons import SlurmDaemons, missing

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root runs Slurm's daemons"),
    pytest.mark.skipif(bool(missing()), reason=f"Slurm's daemons lack {', '.join(missing())}"),
]

NODES = (
    a_node("n1", cpus=8, memory_mib=4096, pool="a4", card_list=(a_card(0, "RTX 4090"), a_card(1, "RTX 4090"))),
    a_node("n2", cpus=4, memory_mib=2048, pool="cpu"),
    a_node("front", cpus=2, memory_mib=1024, pool="login"),
)
WHOLE = Cluster(
    partitions=(
        Partition(
            name="gpu",
            pools=("a4",),
            max_time_seconds=2 * 86_400,
            default_time_seconds=3600,
            min_nodes=1,
            max_nodes=1,
            deny_accounts=("guests",),
            priority_job_factor=100,
            priority_tier=2,
            preempt_mode="OFF",
            billing_weights={"cpu": 1.0, "mem": 0.25 / 1024, "gres/gpu": 10.0},
        ),
        Partition(name="all", default=True, allow_qos=("normal",), state=PartitionState.DRAIN),
    ),
    enforce=(Enforce.SAFE, Enforce.QOS),
    priority=Priority(
        kind=PriorityKind.MULTIFACTOR,
        weights=Weights(
            age=1, assoc=2, fairshare=3, job_size=4, partition=5, qos=6, tres={"cpu": 100.0, "gres/gpu:rtx 4090": 7.0}
        ),
        flags=(PriorityFlag.SMALL_RELATIVE_TO_TIME, PriorityFlag.NO_FAIR_TREE),
        favor_small=True,
        max_age_seconds=86_400,
        calc_period_seconds=120,
        decay_half_life_seconds=3 * 86_400,
        usage_reset=UsageReset.MONTHLY,
        dampening_factor=3,
    ),
    backfill=Backfill(window_seconds=86_400, resolution_seconds=120, depth=50),
    preemption=Preemption(kind="preempt/qos", mode=("GANG", "REQUEUE"), exempt_seconds=90),
    login_pool="login",
)


@pytest.fixture
def slurm(tmp_path: Path) -> Iterator[SlurmDaemons]:
    daemons = SlurmDaemons(tmp_path)
    yield daemons
    daemons.stop()


@pytest.mark.req("SC-15")
def test_slurmctld_accepts_the_training_cluster(slurm: SlurmDaemons) -> None:
    spec = read_slurm_spec("spec", fixture("slurmspec/training-cluster.json").read_text())
    machine = a_node("box", cpus=4, memory_mib=4096)
    setup = read_cluster(machine, initial_cluster(machine, spec, None).text)
    slurm.serve(slurm_conf(setup.cluster, setup.nodes).text)
    config = slurm.shown("config")
    assert config["AccountingStorageEnforce"] == "associations,limits,qos"
    assert config["PriorityType"] == "priority/multifactor"
    assert config["PriorityWeightTRES"].lower() == "cpu=100,mem=150"
    assert config["PreemptType"] == "preempt/partition_prio"
    assert set(config["PreemptMode"].split(",")) == {"GANG", "SUSPEND"}
    assert config["PreemptExemptTime"] == "00:00:00"
    assert slurm.shown("partition", "a4")["Nodes"] == "box"


@pytest.mark.req("SC-15")
def test_slurmctld_accepts_shares_and_partition_qos_without_enforcement(slurm: SlurmDaemons) -> None:
    cluster = Cluster(
        partitions=(
            Partition(name="express", qos="short", priority_tier=5),
            Partition(name="rest", default=True, allow_qos=("normal", "long"), deny_accounts=("guests",)),
        ),
        priority=Priority(
            kind=PriorityKind.MULTIFACTOR,
            weights=Weights(fairshare=1000, tres={"mem": 0.5, "billing": 2.0}),
            flags=(PriorityFlag.INCREMENT_ONLY, PriorityFlag.MAX_TRES, PriorityFlag.NO_NORMAL_ALL),
            decay_half_life_seconds=0,
        ),
        preemption=Preemption(kind="preempt/partition_prio", mode=("SUSPEND", "GANG")),
    )
    conf = slurm_conf(cluster, NODES)
    assert any("sacctmgr -i add qos short; sacctmgr -i add qos long" in each for each in conf.to_do)
    slurm.serve(conf.text, qos=("short", "long"))
    express, rest = slurm.shown("partition", "express"), slurm.shown("partition", "rest")
    assert (express["QoS"], express["PriorityTier"], rest["AllowQos"]) == ("short", "5", "normal,long")
    flags = set(slurm.shown("config")["PriorityFlags"].split(","))
    assert flags == {"INCR_ONLY", "MAX_TRES", "NO_NORMAL_ALL"}


@pytest.mark.req("SC-15", "SL-24")
def test_slurmctld_reports_every_rule_of_the_export(slurm: SlurmDaemons) -> None:
    slurm.serve(slurm_conf(WHOLE, NODES).text)
    config = slurm.shown("config")
    weights = {name.removeprefix("PriorityWeight"): value for name, value in config.items() if "PriorityWeight" in name}
    assert {name: weights[name] for name in ("Age", "Assoc", "FairShare", "JobSize", "Partition", "QOS")} == {
        "Age": "1",
        "Assoc": "2",
        "FairShare": "3",
        "JobSize": "4",
        "Partition": "5",
        "QOS": "6",
    }
    assert weights["TRES"].lower() == "cpu=100,gres/gpu:rtx_4090=7"
    assert set(config["PriorityFlags"].split(",")) == {"SMALL_RELATIVE_TO_TIME", "NO_FAIR_TREE"}
    assert {name: config[name] for name in ("PriorityFavorSmall", "PriorityMaxAge", "PriorityDecayHalfLife")} == {
        "PriorityFavorSmall": "Yes",
        "PriorityMaxAge": "1-00:00:00",
        "PriorityDecayHalfLife": "3-00:00:00",
    }
    assert (config["PriorityCalcPeriod"], config["PriorityUsageResetPeriod"]) == ("00:02:00", "MONTHLY")
    assert config["FairShareDampeningFactor"] == "3"
    assert (config["PreemptType"], config["PreemptExemptTime"]) == ("preempt/qos", "00:01:30")
    assert set(config["PreemptMode"].split(",")) == {"GANG", "REQUEUE"}
    assert set(config["AccountingStorageEnforce"].split(",")) == {"associations", "limits", "qos", "safe"}
    assert config["SchedulerParameters"] == "bf_continue,bf_window=1440,bf_resolution=120,bf_max_job_test=50"
    gpu, everything = slurm.shown("partition", "gpu"), slurm.shown("partition", "all")
    assert {name: gpu[name] for name in ("Nodes", "Default", "MaxTime", "DefaultTime", "MinNodes", "MaxNodes")} == {
        "Nodes": "n1",
        "Default": "NO",
        "MaxTime": "2-00:00:00",
        "DefaultTime": "01:00:00",
        "MinNodes": "1",
        "MaxNodes": "1",
    }
    assert (gpu["DenyAccounts"], gpu["PriorityJobFactor"], gpu["PriorityTier"]) == ("guests", "100", "2")
    assert gpu["PreemptMode"] == "OFF"
    assert gpu["TRESBillingWeights"] == "cpu=1,mem=0.25G,gres/gpu=10"
    assert (everything["Nodes"], everything["Default"], everything["State"]) == ("n[1-2]", "YES", "DRAIN")
    assert (everything["AllowQos"], everything["MaxTime"]) == ("normal", "UNLIMITED")
    node = slurm.shown("node", "n1")
    assert (node["CPUTot"], node["RealMemory"], node["Gres"]) == ("8", "4096", "gpu:rtx_4090:2")
