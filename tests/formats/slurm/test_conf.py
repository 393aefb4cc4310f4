"""slurm.conf of a cluster: its lines, and what is left to the site. A real slurmctld reads it in tests/e2e."""

from __future__ import annotations

import pytest

from cockpit.errors import SpecErrors
from cockpit.formats.slurm.conf import slurm_conf
from cockpit.model.cardmodels import gres_type
from cockpit.model.cluster import (
    Backfill,
    BackfillKind,
    Cluster,
    Enforce,
    Partition,
    PartitionState,
    Preemption,
    Priority,
    PriorityFlag,
    PriorityKind,
    Weights,
)
from tests.builders import a_card, a_node

NODES = (a_node("n1", pool="a4", cards=2), a_node("n2", pool="cpu"), a_node("front", pool="login"))


def lines(cluster: Cluster) -> list[str]:
    return slurm_conf(cluster, NODES).text.splitlines()


@pytest.mark.req("SC-15")
def test_partitions_have_their_pools_nodes_and_rules() -> None:
    cluster = Cluster(
        partitions=(
            Partition(
                name="gpu",
                pools=("a4",),
                max_time_seconds=90_000,
                default_time_seconds=61,
                min_nodes=1,
                max_nodes=2,
                deny_accounts=("guests",),
                allow_qos=("normal", "high"),
                qos="part",
                priority_job_factor=10,
                priority_tier=2,
                grace_seconds=90,
                preempt_mode="REQUEUE",
                billing_weights={"cpu": 1.0, "mem": 0.25 / 1024, "gres/gpu:RTX 4090": 10.0},
                state=PartitionState.DRAIN,
            ),
            Partition(name="all", default=True),
        ),
        login_pool="login",
    )
    assert lines(cluster)[-2:] == [
        (
            "PartitionName=gpu Default=NO Nodes=n1 State=DRAIN MaxTime=1-01:00:00 DefaultTime=00:02:00 MinNodes=1 "
            "MaxNodes=2 DenyAccounts=guests AllowQos=normal,high QOS=part PriorityJobFactor=10 PriorityTier=2 "
            "PreemptMode=REQUEUE GraceTime=90 TRESBillingWeights=cpu=1,mem=0.25G,gres/gpu:rtx_4090=10"
        ),
        "PartitionName=all Default=YES Nodes=n1,n2 State=UP MaxTime=UNLIMITED PriorityJobFactor=1 PriorityTier=1",
    ]


def test_a_cluster_without_partitions_has_one_over_every_node() -> None:
    assert "PartitionName=all Default=YES Nodes=n1,n2,front" in "\n".join(lines(Cluster()))


def test_nodes_have_their_cards() -> None:
    node = a_node(
        "n1", cpus=4, memory_mib=1000, card_list=(a_card(0, "RTX 4090"), a_card(1, "A100"), a_card(2, "A100"))
    )
    text = slurm_conf(Cluster(enforce=(Enforce.LIMITS,)), (node,)).text
    assert "NodeName=n1 CPUs=4 RealMemory=1000 Gres=gpu:rtx_4090:1,gpu:a100:2 State=UNKNOWN" in text
    assert "AccountingStorageTRES=gres/gpu,gres/gpu:a100,gres/gpu:rtx_4090" in text
    plain = slurm_conf(Cluster(), (node,)).text
    assert "GresTypes=gpu" in plain
    assert "AccountingStorage" not in plain  # without slurmdbd, slurmctld would end for it
    assert gres_type("MLU370-X8") == "mlu370-x8"


@pytest.mark.req("SC-15")
@pytest.mark.parametrize(
    ("cluster", "needed"),
    [
        (Cluster(), False),
        (Cluster(enforce=(Enforce.LIMITS,)), True),
        (Cluster(partitions=(Partition(name="p", qos="part"),)), True),
        (Cluster(priority=Priority(kind=PriorityKind.MULTIFACTOR, weights=Weights(fairshare=1000))), True),
        (Cluster(priority=Priority(kind=PriorityKind.MULTIFACTOR, weights=Weights(age=1000))), False),
        (Cluster(priority=Priority(kind=PriorityKind.BASIC, weights=Weights(fairshare=1000))), False),
    ],
    ids=["nothing", "limits", "QOS", "fair share", "age", "basic"],
)
def test_slurmdbd_is_named_where_slurmctld_requires_it(cluster: Cluster, needed: bool) -> None:
    assert ("AccountingStorageType=accounting_storage/slurmdbd" in lines(cluster)) is needed


@pytest.mark.req("SC-15")
def test_cards_that_only_a_weight_names_are_counted() -> None:
    """Else slurmctld ends: "TRES weight 'gres:gpu' is not a configured TRES type"."""
    weights, prices = Weights(tres={"gres/gpu:A100": 3.0}), {"gres/gpu": 10.0, "cpu": 1.0}
    cluster = Cluster(priority=Priority(weights=weights), partitions=(Partition(name="all", billing_weights=prices),))
    found = slurm_conf(cluster, (a_node("n1", cpus=4, memory_mib=1000),)).text.splitlines()
    assert {"GresTypes=gpu", "AccountingStorageTRES=gres/gpu,gres/gpu:a100"} <= set(found)


def test_priority_and_preemption() -> None:
    found = lines(
        Cluster(
            priority=Priority(
                kind=PriorityKind.MULTIFACTOR,
                weights=Weights(age=1, qos=2, tres={"cpu": 100.0, "mem": 1.5}),
                flags=(PriorityFlag.MAX_TRES, PriorityFlag.NO_FAIR_TREE),
                decay_half_life_seconds=0,
            ),
            preemption=Preemption(kind="preempt/qos", mode=("REQUEUE", "WITHIN"), exempt_seconds=90, slice_seconds=10),
            enforce=(Enforce.LIMITS, Enforce.SAFE),
        )
    )
    assert set(found) >= {
        "PriorityType=priority/multifactor",
        "PriorityFlags=MAX_TRES,NO_FAIR_TREE",
        "PriorityWeightAge=1",
        "PriorityWeightQOS=2",
        "PriorityWeightTRES=cpu=100,mem=1.5",
        "PriorityDecayHalfLife=00:00:00",
        "PreemptType=preempt/qos",
        "PreemptMode=REQUEUE,WITHIN",
        "PreemptExemptTime=00:01:30",
        "SchedulerTimeSlice=10",
        "AccountingStorageEnforce=limits,safe",
        "AccountingStorageType=accounting_storage/slurmdbd",
    }


@pytest.mark.parametrize(
    ("backfill", "line"),
    [
        (Backfill(kind=BackfillKind.OFF), "SchedulerType=sched/builtin"),
        (
            Backfill(window_seconds=86_401, resolution_seconds=60, depth=500),
            "SchedulerParameters=bf_continue,bf_window=1441,bf_resolution=60,bf_max_job_test=500",
        ),
    ],
)
def test_backfill(backfill: Backfill, line: str) -> None:
    assert line in lines(Cluster(backfill=backfill))


def test_settings_left_to_the_site() -> None:
    cluster = Cluster(
        home="/srv/home", urgent_jobs=2, prolog_scripts=("x",), partitions=(Partition(name="p", allow_users=("ann",)),)
    )
    told = "\n".join(slurm_conf(cluster, NODES).to_do)
    for word in ("SlurmctldHost", "gres.conf", "Prolog, Epilog", "mount /srv/home", "AllowGroups", "Urgent jobs"):
        assert word in told
    assert "Prolog, Epilog" not in "\n".join(slurm_conf(cluster, NODES, scripts={"Prolog": "/x/*.sh"}).to_do)
    assert "Prolog=/x/*.sh" in slurm_conf(cluster, NODES, scripts={"Prolog": "/x/*.sh"}).text


@pytest.mark.req("TR-05", "TR-06")
@pytest.mark.parametrize("name", ["a b", "a#b", "a\nProlog=/evil", "a,b", "n[1-9]", "a=b", 'a"b', "a\u2028b", "a\tb"])
def test_text_that_slurm_conf_would_split_is_refused(name: str) -> None:
    node = a_node("n1")
    for partition in (
        Partition(name=name),
        Partition(name="p", qos=name),
        Partition(name="p", allow_accounts=("x", name)),
        Partition(name="p", deny_qos=(name,)),
    ):
        with pytest.raises(SpecErrors, match=r"that slurm\.conf takes apart"):
            slurm_conf(Cluster(partitions=(partition,)), [node])
    with pytest.raises(SpecErrors, match=r"NodeName: .* slurm\.conf takes apart"):
        slurm_conf(Cluster(), [a_node(name)])


@pytest.mark.parametrize(
    ("path", "line"), [("/a/*.sh", "/a/*.sh"), ("/a b/#1/*.sh", '"/a b/#1/*.sh"'), ("/a\nb", None), ('/a"b', None)]
)
def test_files_of_scripts_have_one_line(path: str, line: str | None) -> None:
    if line is None:
        with pytest.raises(SpecErrors, match=r"Prolog: no line of slurm\.conf"):
            slurm_conf(Cluster(), [], scripts={"Prolog": path})
    else:
        assert f"Prolog={line}" in slurm_conf(Cluster(), [], scripts={"Prolog": path}).text.splitlines()
