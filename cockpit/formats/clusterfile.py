"""cluster.toml: what the embedded cluster consists of, when it is not just the machine as it was found."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from cockpit.errors import SpecErrors
from cockpit.formats.toml import Table, flag, host_name, list_of, memory_mib, one_of, parse_toml, text, whole
from cockpit.model.ids import NodeName
from cockpit.model.node import Card, CardVendor, Node

MOST_CPUS = 1 << 16
MOST_CARDS = 1024
MOST_SLICES = 100


def cluster_nodes(machine: Node, content: str | None, source: str = "cluster.toml") -> tuple[Node, ...]:
    """The cluster's nodes: `machine` as it is without a file, with declared cards, or cut into virtual nodes.

    `source` leads every error. Raises `SpecErrors` with all errors.
    """
    if content is None:
        return (machine,)
    errors: list[str] = []
    file = Table(parse_toml(content, source), f"{source}: ", errors)
    overcommit = file.take("overcommit", flag, False)
    own = _machine(machine, file.table("machine"))
    virtual = [_virtual(machine, table) for table in file.tables("nodes")]
    file.finish()
    if virtual and own != machine:
        file.complain("machine", "says nothing beside nodes: they already are the machine; write its cards into them")
    _check_names(file, virtual)
    _check_machine_cards(file, virtual)
    nodes = tuple(_fitted(file, machine, virtual, overcommit=overcommit))
    if errors:
        raise SpecErrors(errors)
    return nodes or (own,)


def _machine(machine: Node, table: Table) -> Node:
    declared = _cards(table, first=len(machine.cards))
    pool = table.take("pool", text, machine.pool)
    table.finish()
    return msgspec.structs.replace(machine, cards=(*machine.cards, *declared), pool=pool)


def _virtual(machine: Node, table: Table) -> Node:
    taken = table.take("machine_cards", list_of(whole(0, MOST_CARDS)), ())
    absent = [index for index in taken if index >= len(machine.cards)]
    if absent:
        table.complain("machine_cards", f"this machine has {len(machine.cards)} cards; there is no card {absent[0]}")
    real = [machine.cards[index] for index in taken if index < len(machine.cards)]
    node = Node(
        name=NodeName(table.need("name", host_name, "?")),
        cpus=table.need("cpus", whole(1, MOST_CPUS), 1),
        memory_mib=table.need("memory", memory_mib, 1),
        cards=_numbered([*real, *_cards(table, first=len(real))]),
        pool=table.take("pool", text, ""),
        os=machine.os,
        kernel=machine.kernel,
        driver_version=table.take("driver_version", text, machine.driver_version),
        virtual=True,
    )
    table.finish()
    return node


def _cards(table: Table, first: int) -> list[Card]:
    cards: list[Card] = []
    for row in table.tables("cards"):
        card = Card(
            index=0,
            model=row.need("model", text, "?"),
            vendor=row.take("vendor", one_of(CardVendor), CardVendor.NVIDIA),
            memory_mib=row.take("memory", memory_mib, 0),
            slices=row.take("slices", whole(0, MOST_SLICES), 0),
            declared=True,
        )
        cards += [card] * row.take("count", whole(1, MOST_CARDS), 1)
        row.finish()
    return [msgspec.structs.replace(card, index=index) for index, card in enumerate(cards, first)]


def _numbered(cards: Iterable[Card]) -> tuple[Card, ...]:
    return tuple(msgspec.structs.replace(card, index=index) for index, card in enumerate(cards))


def _check_names(file: Table, nodes: list[Node]) -> None:
    seen: set[str] = set()
    for index, node in enumerate(nodes):
        if node.name in seen and node.name != "?":
            file.complain(f"nodes[{index}].name", f"{node.name} is the name of an earlier node")
        seen.add(node.name)


def _check_machine_cards(file: Table, nodes: list[Node]) -> None:
    """A card of the machine belongs to one virtual node: found cards are told apart by their device nodes."""
    seen: set[tuple[str, tuple[str, ...]]] = set()
    for index, node in enumerate(nodes):
        for card in node.cards:
            identity = (card.uuid, card.devices)
            if not card.declared and identity in seen:
                file.complain(f"nodes[{index}].machine_cards", "names a card of the machine that is already given away")
            seen.add(identity)


def _fitted(file: Table, machine: Node, nodes: list[Node], *, overcommit: bool) -> list[Node]:
    """The nodes, marked where their sums exceed the machine, which is an error unless `overcommit` allows it."""
    cpus, memory = sum(node.cpus for node in nodes), sum(node.memory_mib for node in nodes)
    excess = []
    if cpus > machine.cpus:
        excess.append(f"{cpus} CPUs, and this machine has {machine.cpus}")
    if memory > machine.memory_mib:
        excess.append(f"{memory} MiB of memory, and this machine has {machine.memory_mib}")
    if excess and not overcommit:
        file.complain("nodes", f"together have {'; '.join(excess)}. Make them smaller or write overcommit = true")
    return [msgspec.structs.replace(node, overcommitted=bool(excess)) for node in nodes]


def cluster_schema() -> dict[str, object]:
    """JSON Schema (2020-12) of cluster.toml, for editors."""
    size = {"type": ["string", "integer"], "description": "512M, 80G, or a number of MiB"}
    name = {"type": "string", "minLength": 1, "maxLength": 63}
    card = _object(
        {
            "model": {**name, "description": "as jobs ask for it: A100"},
            "count": {"type": "integer", "minimum": 1, "maximum": MOST_CARDS, "default": 1},
            "slices": {
                "type": "integer",
                "minimum": 0,
                "maximum": MOST_SLICES,
                "default": 0,
                "description": "equal parts of each card; 0: free fractions in thousandths",
            },
            "memory": size,
            "vendor": {"enum": [str(vendor) for vendor in CardVendor], "default": str(CardVendor.NVIDIA)},
        },
        required=["model"],
    )
    cards = {"type": "array", "items": card, "description": "declared cards: scheduled, but nothing is behind them"}
    node = _object(
        {
            "name": {"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$"},
            "cpus": {"type": "integer", "minimum": 1, "maximum": MOST_CPUS},
            "memory": size,
            "pool": name,
            "driver_version": name,
            "cards": cards,
            "machine_cards": {
                "type": "array",
                "items": {"type": "integer", "minimum": 0},
                "description": "cards of this machine that belong to this node, counted from 0",
            },
        },
        required=["name", "cpus", "memory"],
    )
    whole_file = _object(
        {
            "overcommit": {
                "type": "boolean",
                "default": False,
                "description": "let the nodes together have more CPUs and memory than this machine",
            },
            "machine": _object({"cards": cards, "pool": name}, required=[]),
            "nodes": {"type": "array", "items": node, "description": "virtual nodes: parts of this machine"},
        },
        required=[],
    )
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "cluster.toml", **whole_file}


def _object(properties: dict[str, object], *, required: list[str]) -> dict[str, object]:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
