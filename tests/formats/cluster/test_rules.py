"""The rules of cluster.toml: what is read, what is refused, and that writing and reading are each other's inverse."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from cockpit.errors import SpecErrors
from cockpit.formats.cluster.fields import ClusterFile
from cockpit.formats.cluster.file import cluster_schema, read_cluster, read_cluster_file
from cockpit.formats.cluster.text import cluster_text
from cockpit.formats.tomltext import parse_toml
from cockpit.model.accounts import ROOT, Association, Qos, ResourceLimits
from cockpit.model.cluster import (
    Backfill,
    BackfillKind,
    Cluster,
    Enforce,
    Partition,
    Preemption,
    Priority,
    PriorityFlag,
    PriorityKind,
    Weights,
)
from cockpit.model.ids import NodeName
from cockpit.model.node import Node
from tests.formats.rule_worlds import cluster_files

MACHINE = Node(name=NodeName("box"), cpus=16, memory_mib=65536)
WHOLE = """
urgent_jobs = 3
login_node_pool = "login"
home_directory_storage = "projects/p/locations/z/instances/i"
prolog_bash_scripts = ["echo hello"]
overcommit = true

[node_pools]
a4 = ["n1", "spare"]
login = ["n3"]

[home]
"projects/p/locations/z/instances/i" = "/srv/home"

[[nodes]]
name = "n1"
cpus = 4
memory = "4G"

[[nodes]]
name = "n2"
cpus = 4
memory = "4G"
pool = "spare"

[[nodes]]
name = "n3"
cpus = 4
memory = "4G"

[accounting]
enforce = ["limits", "qos"]

[priority]
type = "priority/multifactor"
max_age = "1d"
decay_half_life = 0
weights = { age = 1000, tres = "CPU=100,Mem=150" }

[backfill]
type = "conservative"
window = "2d"
resolution = 60

[preemption]
type = "preempt/qos"
mode = ["requeue"]
exempt_time = "5m"

[[partitions]]
name = "batch"
node_pools = ["a4"]
max_time = "2-00:00:00"
deny_accounts = ["Guests"]
tres_billing_weights = "CPU=1.0,Mem=0.25G,GRES/gpu=10"

[[qos]]
name = "High"
priority = 100
max_tres_per_user = { "gres/gpu" = 8 }
limits = { max_jobs = 2, max_wall = "1h", grp_tres = "cpu=16,mem=64G" }

[[accounts]]
name = "Vision"
shares = 60

[[accounts]]
name = "vision-a"
parent = "vision"
coordinators = ["carol"]

[[users]]
name = "alice"
account = "vision-a"
partition = "batch"
shares = "parent"
qos = ["normal", "high"]
default_qos = "high"
"""


def errors_of(text: str) -> list[str]:
    with pytest.raises(SpecErrors) as caught:
        read_cluster(MACHINE, text)
    return [error.removeprefix("cluster.toml: ") for error in caught.value.errors]


@pytest.mark.req("SC-15")
def test_the_rules_of_a_whole_file() -> None:
    setup = read_cluster(MACHINE, WHOLE)
    assert setup.cluster == Cluster(
        partitions=(
            Partition(
                name="batch",
                pools=("spare", "a4"),
                max_time_seconds=2 * 86_400,
                deny_accounts=("guests",),
                billing_weights={"cpu": 1.0, "mem": 0.25 / 1024, "gres/gpu": 10.0},
            ),
        ),
        enforce=(Enforce.LIMITS, Enforce.QOS),
        priority=Priority(
            kind=PriorityKind.MULTIFACTOR,
            weights=Weights(age=1000, tres={"cpu": 100.0, "mem": 150.0}),
            max_age_seconds=86_400,
            decay_half_life_seconds=0,
        ),
        backfill=Backfill(kind=BackfillKind.CONSERVATIVE, window_seconds=2 * 86_400, resolution_seconds=60),
        preemption=Preemption(kind="preempt/qos", mode=("REQUEUE",), exempt_seconds=300),
        login_pool="login",
        home="/srv/home",
        prolog_scripts=("echo hello",),
        urgent_jobs=3,
    )
    assert [(node.name, node.pool) for node in setup.nodes] == [("n1", "a4"), ("n2", "spare"), ("n3", "login")]


@pytest.mark.req("SC-16")
def test_the_initial_accounts_of_a_file() -> None:
    accounts = read_cluster(MACHINE, WHOLE).accounts
    assert list(accounts.associations) == ["root/", "root/root", "vision/", "vision-a/", "vision-a/alice/batch"]
    assert accounts.associations["vision/"].parent == ROOT
    assert accounts.associations["vision-a/"].coordinators == ("carol",)
    alice = accounts.of("vision-a", "alice", "batch")
    assert alice == Association(
        account="vision-a", user="alice", partition="batch", shares=None, qos=("normal", "high"), default_qos="high"
    )
    assert accounts.qos["high"] == Qos(
        name="high",
        priority=100,
        max_tres_per_user={"gres/gpu": 8.0},
        limits=ResourceLimits(max_jobs=2, max_wall_seconds=3600, grp_tres={"cpu": 16.0, "mem": 65536.0}),
    )


def test_every_other_node_is_in_the_default_pool() -> None:
    (box,) = read_cluster(MACHINE, '[node_pools]\na4 = ["*"]\nlogin = []\n').nodes
    assert box.pool == "a4"


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ('[node_pools]\na = ["n9"]', "node_pools.a[0]: n9 is no node and no node's pool; nodes are box"),
        ('[node_pools]\na = ["box"]\nb = ["box"]', "node_pools.b[0]: box is in pool a already; a node is in one pool"),
        (
            '[machine]\npool = "lab"\n[node_pools]\na = ["box"]',
            "node_pools.a[0]: node box is in pool lab already; write lab here, or move it",
        ),
        (
            '[[partitions]]\nname = "p"\nnode_pools = ["a"]',
            "partitions[0].node_pools[0]: a is no pool of [node_pools] in cluster.toml; there is none yet",
        ),
        ('[[partitions]]\nname = "p"\nnodes = ["x"]', "partitions[0].nodes[0]: there is no node x; nodes are box"),
        ('login_node_pool = "l"', "login_node_pool: l is no pool of [node_pools] in cluster.toml; there is none yet"),
        (
            'home_directory_storage = "projects/p/locations/l/instances/i"',
            "home_directory_storage: [home] in cluster.toml has no folder for projects/p/locations/l/instances/i",
        ),
        (
            'home_directory_storage = "nfs"',
            'home_directory_storage: "nfs" is no storage; write projects/PROJECT/locations/ZONE/instances/NAME',
        ),
        (
            '[[partitions]]\nname = "p"\n[[partitions]]\nname = "p"',
            "partitions[1].name: p is the name of an earlier partition",
        ),
        (
            '[[partitions]]\nname = "p"\ndefault = true\n[[partitions]]\nname = "q"\ndefault = true',
            "partitions[1].default: p is the default already",
        ),
        ('[[partitions]]\nname = "p"\nmin_nodes = 2\nmax_nodes = 1', "partitions[0].max_nodes: is below min_nodes"),
        ('[[partitions]]\nname = "p"\nmax_time = 1\ndefault_time = 2', "partitions[0].default_time: is above max_time"),
        (
            '[[partitions]]\nname = "p"\nallow_qos = ["a"]\ndeny_qos = ["b"]',
            "partitions[0].deny_qos: counts for nothing beside allow_qos; keep one of them",
        ),
        ('[[partitions]]\nname = "p"\nstate = "gone"', "partitions[0].state: is the text"),
        ('[preemption]\nmode = ["SUSPEND"]\ntype = "preempt/qos"', "preemption.mode: SUSPEND needs GANG beside it"),
        (
            '[preemption]\nmode = ["CANCEL", "GANG", "WITHIN"]\ntype = "preempt/qos"',
            "preemption.mode: WITHIN and GANG exclude each other",
        ),
        ('[preemption]\nmode = ["CANCEL"]', "preemption.mode: CANCEL needs another type than preempt/none"),
        ('[preemption]\ntype = "preempt/qos"', "preemption.mode: preempt/qos needs CANCEL, REQUEUE or SUSPEND,GANG"),
        ('[preemption]\nmode = ["OFF", "GANG"]', "preemption.mode: OFF excludes all other modes"),
        ("[preemption]\nmode = []", "preemption.mode: is empty"),
        ('[priority.weights]\ntres = "disk=1"', "priority.weights.tres: "),
        ('[priority.weights]\ntres = { cpu = "many" }', 'priority.weights.tres.cpu: "many" is no number'),
        ("[priority.weights]\nage = -1", "priority.weights.age: -1 is not between 0 and 4294967294"),
        ('[accounting]\nenforce = ["all"]', "accounting.enforce[0]: "),
        ('[[accounts]]\nname = "a"\nparent = "b"', "accounts[0].parent: there is no account b"),
        ('[[accounts]]\nname = "a"\n[[accounts]]\nname = "A"', "accounts[1].name: is the name of an earlier account"),
        ('[[users]]\nname = "u"\naccount = "a"', "users[0].account: there is no account a"),
        ('[[users]]\nname = "u"\naccount = "root"\nqos = ["gold"]', "users[0].qos: there is no QOS gold"),
        ('[[qos]]\nname = "a"\npreempt = ["b"]', "qos[0].preempt: there is no QOS b; there are normal, a"),
        ('[[accounts]]\nname = "a b"', 'accounts[0].name: "a b" is no name here'),
        ('[[accounts]]\nname = "a"\nshares = "none"', 'accounts[0].shares: is the text "none"'),
        (
            '[[qos]]\nname = "a"\nlimits = { grp_tres = "cpu=-1" }',
            'qos[0].limits.grp_tres: "cpu=-1" has a number below 0',
        ),
    ],
)
def test_an_error_is_reported_with_its_path(text: str, error: str) -> None:
    (found,) = errors_of(text)
    assert found.startswith(error)


def test_accounts_that_are_their_own_parents_are_refused() -> None:
    text = '[[accounts]]\nname = "a"\nparent = "b"\n[[accounts]]\nname = "b"\nparent = "a"\n'
    assert errors_of(text) == [
        "accounts[0].parent: a would be above itself",
        "accounts[1].parent: b would be above itself",
    ]


def test_all_conflicts_are_reported_together() -> None:
    text = 'login_node_pool = "l"\n[preemption]\nmode = []\n[[users]]\nname = "u"\naccount = "a"\n'
    assert [error.partition(":")[0] for error in errors_of(text)] == [
        "login_node_pool",
        "preemption.mode",
        "users[0].account",
    ]


@pytest.mark.req("SC-15")
@settings(max_examples=80, deadline=None)
@given(cluster_files())
def test_writing_and_reading_are_inverse(file: ClusterFile) -> None:
    text = cluster_text(file)
    assert read_cluster_file(MACHINE, text) == file
    assert read_cluster(MACHINE, text).cluster.priority == file.priority


@settings(max_examples=30, deadline=None)
@given(cluster_files())
def test_a_written_file_matches_the_published_schema(file: ClusterFile) -> None:
    import jsonschema

    jsonschema.validate(parse_toml(cluster_text(file), "cluster.toml"), cluster_schema())


@pytest.mark.req("SC-01", "SC-15")
def test_a_flag_may_be_written_as_in_slurm_conf() -> None:
    cluster = read_cluster(MACHINE, '[priority]\nflags = ["INCR_ONLY", "MAX_TRES"]\n').cluster
    assert cluster.priority.flags == (PriorityFlag.INCREMENT_ONLY, PriorityFlag.MAX_TRES)
