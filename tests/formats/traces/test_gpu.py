from __future__ import annotations

import gzip

import pytest

from cockpit.errors import SpecErrors
from cockpit.formats.traces.gpu import read_nodes, read_pods
from cockpit.model.spec import NodeSpec

PODS = """name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos
p0,12000,16384,1,1000,,LS
p1,6000,12288,1,460,V100M32|V100M16,LS
p2,3152,512,0,0,,BE
p3,88000,65536,8,1000,,LS
"""
NODES = """sn,cpu_milli,memory_mib,gpu,model
n0,64000,262144,2,P100
n1,96000,786432,0,
"""


@pytest.mark.req("SC-23")
@pytest.mark.parametrize("packed", [bytes, gzip.compress, b"\xef\xbb\xbf".__add__], ids=["plain", "gz", "bom"])
def test_pods_are_jobs_of_one_replica_with_cpus_in_thousandths(packed) -> None:
    pods = read_pods("pods.csv", packed(PODS.encode()))
    assert [pod.name for pod in pods] == ["p0", "p1", "p2", "p3"]
    assert [pod.specs for pod in pods] == [
        (NodeSpec(cpus=12000, memory_mib=16384, card_milli=1000),),
        (NodeSpec(cpus=6000, memory_mib=12288, card_milli=460, card_models=("V100M16", "V100M32")),),
        (NodeSpec(cpus=3152, memory_mib=512),),
        (NodeSpec(cpus=88000, memory_mib=65536, card_milli=8000),),
    ]


@pytest.mark.req("SC-23")
def test_the_largest_figure_is_the_last_that_is_counted_exactly() -> None:
    (pod,) = read_pods("pods.csv", b"name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\np,1,9007199254740992,0,0,\n")
    assert pod.specs[0].memory_mib == 2**53


@pytest.mark.req("SC-23")
def test_nodes_have_their_cards() -> None:
    first, second = read_nodes("nodes.csv", NODES.encode())
    assert (first.name, first.cpus, first.memory_mib) == ("n0", 64000, 262144)
    assert [(card.index, card.model) for card in first.cards] == [(0, "P100"), (1, "P100")]
    assert second.cards == ()


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("p,1,1,1,0,", "pods.csv:2: gpu_milli is 0 beside a num_gpu"),
        ("p,1,1,2,500,", "pods.csv:2: 500 thousandths of each of 2 cards"),
        ("p,1,1,1,1001,", "pods.csv:2: gpu_milli is '1001'; it has a whole number from 0 to 1000."),
        ("p,-1,1,1,1000,", "pods.csv:2: cpu_milli is '-1'"),
        ("p,1,9007199254740993,1,1000,", "pods.csv:2: memory_mib is '9007199254740993'"),
        ("p,1,1", "pods.csv:2: num_gpu is ''"),
        (",1,1,1,1000,", "pods.csv:2: name is empty."),
        ("p,1,99999999999999999999,1,1000,", "pods.csv:2: memory_mib is '99999999999999999999'"),
        ('p,"1"1,1,1,1000,', "pods.csv:2: ',' expected after '\"'; correct the quotes"),
    ],
)
def test_an_invalid_line_is_reported(line, says) -> None:
    with pytest.raises(SpecErrors) as raised:
        read_pods("pods.csv", f"name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n{line}\n".encode())
    assert raised.value.errors[0].startswith(says)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "no column sn, cpu_milli, memory_mib, gpu, model in the first line"),
        (PODS.encode(), "no column sn, gpu, model in the first line"),
        (NODES.splitlines()[0].encode(), "nodes.csv: no node in it"),
        (NODES.encode() + b"n0,1,1,0,\n", "nodes.csv: node n0 is there twice"),
        (b"\x1f\x8bnot gzip", "nodes.csv: cannot be unpacked"),
        (bytes(range(256)), "no column"),
    ],
    ids=["nothing", "pods", "no nodes", "twice", "damaged", "noise"],
)
def test_an_invalid_file_is_reported(data, says) -> None:
    with pytest.raises(SpecErrors, match=says):
        read_nodes("nodes.csv", data)


def test_the_first_of_many_invalid_lines_are_reported() -> None:
    with pytest.raises(SpecErrors) as raised:
        read_nodes("nodes.csv", b"sn,cpu_milli,memory_mib,gpu,model\n" + b"x\n" * 100)
    assert raised.value.errors[-1] == "nodes.csv: … and 80 more"
    assert len(raised.value.errors) == 21
    with pytest.raises(SpecErrors) as raised:
        read_nodes("nodes.csv", b"sn,cpu_milli,memory_mib,gpu,model\n" + b"x\n" * 20)
    assert len(raised.value.errors) == 20


@pytest.mark.req("SC-23")
def test_a_node_has_at_most_1024_cards_and_a_pod_of_several_has_them_whole() -> None:
    (node,) = read_nodes("nodes.csv", b"sn,cpu_milli,memory_mib,gpu,model\nn,1,1,1024,A\n")
    assert len(node.cards) == 1024
    with pytest.raises(SpecErrors, match=r"gpu is '1025'; it has a whole number from 0 to 1024"):
        read_nodes("nodes.csv", b"sn,cpu_milli,memory_mib,gpu,model\nn,1,1,1025,A\n")
    (pod,) = read_pods("pods.csv", b"name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\np,1,1,2,1000,\n")
    assert pod.specs[0].card_milli == 2000
