from __future__ import annotations

import msgspec
import pytest

from cockpit.errors import SpecErrors
from cockpit.formats.clusterfile import cluster_nodes, cluster_schema
from cockpit.model.ids import NodeName
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
        name = "n01"
        cpus = 1
        machine_cards = [0, 7]
        [[nodes]]
        name = "bad name"
        cpus = 1
        memory = 1
        machine_cards = [0]
        """
    )
    assert [error.split(": ")[1] for error in errors] == [
        "nodes[0].cpus",
        "nodes[0].memory",
        "nodes[0].cards[0].cout",
        "nodes[0].cards[1].model",
        "nodes[0].cards[1].count",
        "nodes[1].machine_cards",
        "nodes[1].memory",
        "nodes[2].name",
        "overcomit",
        "nodes[1].name",
        "nodes[2].machine_cards",
    ]
    assert errors[2].endswith("is unknown; did you mean count?")
    assert errors[5].endswith("this machine has 2 cards; there is no card 7")
    assert errors[8].endswith("did you mean overcommit?")
    assert all(error.startswith("cluster.toml: ") for error in errors)


def test_the_machine_and_nodes_exclude_each_other() -> None:
    (error,) = errors_of(TWO_NODES + '[machine]\ncards = [{model = "A100"}]\n')
    assert "says nothing beside nodes" in error


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("nodes = 3", "nodes"),
        ("nodes = [3]", "nodes"),
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
        cluster_nodes(MACHINE, "overcommit = true\n[[nodes]\n", "/x/cluster.toml")


def test_the_schema_knows_the_same_fields() -> None:
    """A field the schema names is taken, and one that it does not name is refused, at every level."""
    schema = cluster_schema()
    machine = msgspec.structs.replace(MACHINE, memory_mib=1 << 22)
    node = schema["properties"]["nodes"]["items"]
    card = node["properties"]["cards"]["items"]
    samples = {"string": '"n1"', "integer": "1", "boolean": "true", "array": "[]", "object": "{}"}

    def line(name: str, field: dict) -> str:
        kind = field.get("type", "enum")
        value = '"other"' if kind == "enum" else '"1G"' if isinstance(kind, list) else samples[kind]
        return f"{name} = {value}"

    def every(level: dict) -> list[str]:
        return [line(name, field) for name, field in level["properties"].items()]

    for text in ("\n".join(every(schema)), "[[nodes]]\n" + "\n".join(every(node))):
        assert cluster_nodes(machine, text)
    assert cluster_nodes(machine, f"[machine]\ncards = [{{{', '.join(every(card))}}}]")[0].cards[-1].model == "n1"
    for level in (schema, node, card):
        assert level["additionalProperties"] is False
    assert node["required"] == ["name", "cpus", "memory"]
    assert len(errors_of("[[nodes]]\n")) == 3
