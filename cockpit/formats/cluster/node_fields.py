"""The fields of nodes in cluster.toml: parts of this machine, and cards that are only declared."""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from cockpit.formats.kinds import Choice, ListOf, Text
from cockpit.formats.labels import OwnLabels, TaintText
from cockpit.formats.measures import Checked, address_error, label, memory, whole
from cockpit.formats.tables import Field, Table
from cockpit.model.labels import Taint
from cockpit.model.node import CardVendor
from cockpit.model.rules.bounds import CPUS, MOST_LABELS, Bounds
from cockpit.model.text import visible

COUNT = Bounds(1, 1024)
INDEX = Bounds(0, 1023)
SLICES = Bounds(0, 100)
MOST_ROWS = 1024
LONGEST_LABEL = 63
NODE_NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$"


class DeclaredCards(msgspec.Struct, frozen=True, kw_only=True):
    """A number of cards of one model that are declared, without hardware behind them."""

    model: str
    count: int = 1
    slices: int = 0
    memory_mib: int = 0
    vendor: CardVendor = CardVendor.NVIDIA


class DeclaredMachine(msgspec.Struct, frozen=True, kw_only=True):
    """The fields that are added to the machine's own node."""

    cards: tuple[DeclaredCards, ...] = ()
    pool: str = ""
    driver_version: str = ""
    labels: Mapping[str, str] = {}
    taints: tuple[Taint, ...] = ()


class DeclaredNode(msgspec.Struct, frozen=True, kw_only=True):
    """A part of this machine."""

    name: str
    cpus: int
    memory_mib: int
    pool: str = ""
    driver_version: str = ""
    labels: Mapping[str, str] = {}
    taints: tuple[Taint, ...] = ()
    cards: tuple[DeclaredCards, ...] = ()
    machine_cards: tuple[int, ...] = ()
    instance: str = ""
    notice_address: str = ""


def node_name_error(name: str) -> str | None:
    if re.fullmatch(NODE_NAME_PATTERN, name):
        return None
    return f'"{visible(name)}" is no node name; use letters, digits, dots, hyphens and underscores, at most 63'


_NODE_NAME = Checked(Text(pattern=NODE_NAME_PATTERN), node_name_error)
_LABEL = label(LONGEST_LABEL)

CARDS = Table(
    DeclaredCards,
    [
        Field("model", _LABEL, "Give the model as jobs request it.", required=True),
        Field("count", whole(COUNT), "Number of cards."),
        Field("slices", whole(SLICES), "Equal parts of each card; 0: free fractions in thousandths."),
        Field("memory", memory(), "Memory of one card; without a unit, MiB.", attribute="memory_mib"),
        Field(
            "vendor", Choice(CardVendor), "The vendor, which decides by which variables a container finds its cards."
        ),
    ],
)

_CARDS = Field(
    "cards", ListOf(CARDS, MOST_ROWS), "Declared cards: scheduled and shown as declared, without real cards."
)
_POOL = Field("pool", _LABEL, "The resource pool that jobs may request.")
_DRIVER = Field("driver_version", _LABEL, "Version of its cards' driver; by default the machine's.")
_LABELS = Field("labels", OwnLabels(), 'Labels by which jobs may select it: {disk = "ssd"}.')
_TAINTS = Field(
    "taints", ListOf(TaintText(), MOST_LABELS), "Only jobs that tolerate each of these start on it: spot, gpu=yes."
)

MACHINE = Table(DeclaredMachine, [_CARDS, _POOL, _DRIVER, _LABELS, _TAINTS])

NODE = Table(
    DeclaredNode,
    [
        Field("name", _NODE_NAME, "Give the node a name.", required=True),
        Field("cpus", whole(CPUS), "Give its number of CPUs.", required=True),
        Field("memory", memory(), "Give its memory, as 16G.", attribute="memory_mib", required=True),
        _POOL,
        _DRIVER,
        _LABELS,
        _TAINTS,
        _CARDS,
        Field(
            "machine_cards",
            ListOf(whole(INDEX), MOST_ROWS),
            "Cards of this machine that belong to the node, counted from 0; each can be given once.",
        ),
        Field("instance", _LABEL, "The id or name of its machine at its provider, by which spot notices name it."),
        Field(
            "notice_address",
            Checked(Text(), address_error),
            "The base address of its machine's spot notices, such as http://10.0.0.7:8080.",
        ),
    ],
)
