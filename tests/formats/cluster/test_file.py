from __future__ import annotations

import pytest

from cockpit.errors import SpecErrors
from cockpit.formats.cluster.file import cluster_schema, read_cluster
from cockpit.model.ids import NodeName
from cockpit.model.labels import Taint
from cockpit.model.node import Card, CardVendor, Node

REAL_CARDS = tuple(
    Card(index=index, model="RTX 4090", vendor=CardVendor.NVIDIA, uuid=f"GPU-{index}", devices=(f"/dev/nvidia{index}",))
    for index in range(2)
)
MACHINE = Node(
    name=NodeName("box"), cpus=16, memory_mib=65536, cards=REAL_CARDS, os="Debian", kernel="6.1", driver_version="535"
)
TWO_NODES = """
[[nodes]]
name = "n01"
cpus = 8
memory = "32G"
pool = "train"
driver_version = "535.104"
cards = [{model = "A100", count = 8, slices = 4, memory = "80G"}]

[[nodes]]
name = "n02"
cpus = 8
memory = "32G"
machine_cards = [1]
cards = [{model = "MLU370-X8", vendor = "mlu"}]
"""


def cluster_nodes(machine: Node, text: str | None) -> tuple[Node, ...]:
    return read_cluster(machine, text).nodes


def errors_of(text: str) -> tuple[str, ...]:
    with pytest.raises(SpecErrors) as caught:
        cluster_nodes(MACHINE, text)
    return caught.value.errors


@pytest.mark.req("JT-43")
def test_without_a_file_the_machine_is_the_cluster() -> None:
    assert cluster_nodes(MACHINE, None) == (MACHINE,)
    assert cluster_nodes(MACHINE, "") == (MACHINE,)


def test_declared_cards_join_the_machines() -> None:
    (node,) = cluster_nodes(MACHINE, '[machine]\npool = "lab"\ncards = [{model = "A100", count = 8, slices = 4}]\n')
    assert [card.index for card in node.cards] == list(range(10))
    assert [card.declared for card in node.cards] == [False] * 2 + [True] * 8
    assert (node.cards[9].model, node.cards[9].slices, node.cards[9].devices) == ("A100", 4, ())
    assert (node.name, node.pool, node.virtual) == ("box", "lab", False)


@pytest.mark.req("JT-43")
def test_virtual_nodes() -> None:
    first, second = cluster_nodes(MACHINE, TWO_NODES)
    assert (first.name, first.cpus, first.memory_mib, first.pool) == ("n01", 8, 32768, "train")
    assert (first.os, first.kernel, first.driver_version) == ("Debian", "6.1", "535.104")
    assert (len(first.cards), first.cards[7].index, first.cards[7].memory_mib) == (8, 7, 81920)
    assert first.cards[0].vendor is CardVendor.NVIDIA
    assert first.virtual
    assert not first.overcommitted
    found, declared = second.cards
    assert (found.index, found.uuid, found.declared) == (0, "GPU-1", False)
    assert (declared.index, declared.vendor, declared.declared) == (1, CardVendor.MLU, True)
    assert second.driver_version == "535"


@pytest.mark.req("JT-12", "JT-25")
def test_nodes_have_labels_and_taints_and_pools_may_be_dedicated() -> None:
    first, second = cluster_nodes(
        MACHINE,
        """
        dedicated_pools = ["fast"]
        [node_pools]
        fast = ["train"]
        slow = ["*"]
        [[nodes]]
        name = "n01"
        cpus = 8
        memory = "32G"
        pool = "train"
        labels = { disk = "ssd", "example.com/rack" = 4 }
        taints = ["spot", "gpu=yes:NoSchedule"]
        [[nodes]]
        name = "n02"
        cpus = 8
        memory = "32G"
        """,
    )
    assert (first.pool, first.dedicated, second.pool, second.dedicated) == ("train", True, "slow", False)
    assert first.labels == {"disk": "ssd", "example.com/rack": "4"}
    assert first.taints == (Taint("spot"), Taint("gpu", "yes"))
    (node,) = cluster_nodes(MACHINE, '[machine]\ndriver_version = "550"\nlabels = "disk=ssd"\ntaints = ["spot"]')
    assert (node.driver_version, node.labels, node.taints) == ("550", {"disk": "ssd"}, (Taint("spot"),))


@pytest.mark.req("JT-12", "JT-25")
def test_invalid_labels_taints_and_pools_are_refused_with_the_valid_form() -> None:
    assert errors_of('dedicated_pools = ["x"]') == (
        "cluster.toml: dedicated_pools[0]: x is no pool of [node_pools] in cluster.toml; there is none yet",
    )
    errors = errors_of('[machine]\nlabels = {"-" = "a b"}\ntaints = ["spot:NoExecute", "=x", 4]\n')
    assert [error.removeprefix("cluster.toml: machine.").partition("; ")[0] for error in errors] == [
        "labels.-: is no key of a label",
        'taints[0]: "spot:NoExecute" has another effect than NoSchedule, the only one here',
        'taints[1]: "=x" is no key of a label',
        "taints[2]: is the number 4",
    ]


@pytest.mark.req("JT-43")
def test_more_than_the_machine_is_refused_unless_overcommitted() -> None:
    big = '[[nodes]]\nname = "n01"\ncpus = 64\nmemory = "1T"\n'
    (error,) = errors_of(big)
    assert error == (
        "cluster.toml: nodes: together have 64 CPUs, and this machine has 16; 1048576 MiB of memory, and this machine "
        "has 65536. Make them smaller or write overcommit = true"
    )
    (node,) = cluster_nodes(MACHINE, "overcommit = true\n" + big)
    assert node.overcommitted
    assert not any(node.overcommitted for node in cluster_nodes(MACHINE, "overcommit = true\n" + TWO_NODES))


def test_all_errors_at_once_with_their_paths() -> None:
    errors = errors_of(
        """
        overcomit = true
        [[nodes]]
        name = "n01"
        cpus = 0
        memory = "lots"
        cards = [{model = "A100", cout = 8}, {count = 1.5}]
        [[nodes]]
        name = "bad name"
        cpus = 1
        """
    )
    assert [error.split(": ")[1] for error in errors] == [
        "overcomit",
        "nodes[0].cpus",
        "nodes[0].memory",
        "nodes[0].cards[0].cout",
        "nodes[0].cards[1].count",
        "nodes[0].cards[1].model",
        "nodes[1].name",
        "nodes[1].memory",
    ]
    assert errors[0] == "cluster.toml: overcomit: is no field here; did you mean overcommit?"
    assert errors[1] == "cluster.toml: nodes[0].cpus: 0 is not between 1 and 65536"
    assert errors[-1] == "cluster.toml: nodes[1].memory: is missing; give its memory, as 16G"


def test_all_conflicts_at_once() -> None:
    node = '[[nodes]]\nname = "n01"\ncpus = 1\nmemory = "1G"\nmachine_cards = '
    assert errors_of(node + "[0, 7]\n" + node + "[0]\n[machine]\npool = 'p'\n") == (
        "cluster.toml: machine: says nothing beside nodes, which are parts of this machine; write its cards into them",
        "cluster.toml: nodes[1].name: n01 is the name of an earlier node",
        "cluster.toml: nodes[0].machine_cards: this machine has 2 cards; there is no 7",
        "cluster.toml: nodes[1].machine_cards: card 0 of the machine is already given away",
    )


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("nodes = 3", "nodes"),
        ("nodes = [3]", "nodes[0]"),
        ("machine = []", "machine"),
        ("[machine]\ncards = 8", "machine.cards"),
        ("overcommit = 2", "overcommit"),
        ('[machine]\ncards = [{model = "a\\u001b[2J"}]', "machine.cards[0].model"),
        ('[machine]\ncards = [{model = "A100", vendor = "intel"}]', "machine.cards[0].vendor"),
        ('[machine]\ncards = [{model = "A100", count = 100000}]', "machine.cards[0].count"),
        ('[machine]\n"\\u001b]0;x" = 1', "machine.\\x1b]0;x"),
    ],
)
def test_wrong_shapes(text: str, path: str) -> None:
    (error,) = errors_of(text)
    assert error.startswith(f"cluster.toml: {path}: ")
    assert error.isprintable()


def test_broken_toml_names_the_file_and_the_line() -> None:
    with pytest.raises(SpecErrors, match=r"/x/cluster.toml: is no TOML: .*line 2"):
        read_cluster(MACHINE, "overcommit = true\n[[nodes]\n", "/x/cluster.toml")


def test_the_schema_describes_every_level() -> None:
    schema = cluster_schema()
    node = schema["properties"]["nodes"]["items"]
    card = node["properties"]["cards"]["items"]
    assert all(level["additionalProperties"] is False for level in (schema, node, card))
    assert node["required"] == ["name", "cpus", "memory"]
    assert card["required"] == ["model"]
    assert card["properties"]["vendor"]["default"] == "nvidia"
    assert schema["properties"]["machine"]["properties"]["cards"]["items"] == card
    assert len(errors_of("[[nodes]]\n")) == 3


@pytest.mark.req("EL-02")
def test_a_node_may_be_another_machine_with_an_address_for_its_notices() -> None:
    row = (
        '[[nodes]]\nname = "n01"\ncpus = 1\nmemory = "1G"\ninstance = "i-0a"\nnotice_address = "http://10.0.0.7:80/"\n'
    )
    (node,) = read_cluster(MACHINE, row).nodes
    assert (node.instance, node.notice_address) == ("i-0a", "http://10.0.0.7:80")
    with pytest.raises(SpecErrors, match=r"nodes\[0\].notice_address: is no address such as"):
        read_cluster(MACHINE, row.replace("http://", ""))
