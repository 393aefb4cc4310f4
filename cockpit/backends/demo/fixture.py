"""The content of a fixture: nodes, users, arrivals, run times and outcomes. Every start and reason is computed.

Weights are relative to each other. Times of day are those of the machine that shows the demo.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from datetime import datetime
from enum import StrEnum
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from cockpit.engine.fleet.reports import fleet_rules
from cockpit.errors import SpecErrors
from cockpit.formats import quotatree
from cockpit.formats.catalogue.file import read_entries
from cockpit.formats.cluster.file import read_rules
from cockpit.formats.kinds import Reading
from cockpit.formats.tomltext import parse_toml
from cockpit.model.accounts import Accounts
from cockpit.model.catalogue import AnyEntry
from cockpit.model.cluster import Cluster
from cockpit.model.fleet import Member, node_in
from cockpit.model.ids import NodeName
from cockpit.model.node import Card, CardVendor, Node, NodeState
from cockpit.model.quota import QuotaTree
from cockpit.resources import fixture as shipped

GIB = 1024
HOURS = 24
FOLDER = "clusters"


class Outcome(StrEnum):
    """How a job ends if no user ends it."""

    SUCCESS = "success"
    ERROR = "error"
    """Exit 1 with a traceback."""
    BAD_INPUT = "bad_input"
    """Exit 3: the program looked at its input and said no."""
    OOM = "oom"
    LOST = "lost"
    TIMEOUT = "timeout"
    """Runs until its time limit ends it."""


class Printing(StrEnum):
    """The form of a job's log."""

    TRAINING = "training"
    PROGRESS = "progress"
    EVALUATION = "evaluation"
    SHARDS = "shards"
    NOTEBOOK = "notebook"


class CardGroup(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    model: str
    count: int
    memory_gib: int
    mig_slices: int = 0
    """Cut by the hardware into so many equal slices."""


class NodeGroup(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`count` nodes that are alike: `<prefix>01` and so on."""

    prefix: str
    count: int
    first: int = 1
    cpus: int
    memory_gib: int
    pool: str = ""
    driver_version: str = ""
    cards: tuple[CardGroup, ...] = ()
    drained: str = ""
    """Why they are out of service; empty: they are not."""


class WeightedSize(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One possible size of a job."""

    weight: float
    nodes: int = 1
    cards: float = 0
    """The number per node: whole, or a share below 1."""
    cpus: int = 4
    memory_gib: int = 16
    elastic: tuple[int, int] | None = None
    """The least and largest number of nodes of an elastic job; `nodes` are those that it starts with."""


class Template(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A kind of job."""

    name: str
    command: str
    printing: Printing
    sizes: tuple[WeightedSize, ...]
    card_models: tuple[str, ...] = ()
    pool: str | None = None
    partitions: tuple[str, ...] = ()
    """Any of these; empty: the default one."""
    qos: str | None = None
    terminal: bool = False
    keeps_cards: bool = False
    divide_over_clusters: bool = False
    limits_hours: tuple[float, ...]
    """Time limits that people give it."""
    uses: tuple[float, float] = (0.2, 0.95)
    """The share of its limit that it really runs, where it succeeds: from, to."""
    at_once: tuple[int, int] = (1, 1)
    """The range of the number of jobs that are submitted together."""
    outcomes: dict[Outcome, float]


class User(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A person with habits."""

    name: str
    uid: int
    group: str
    weight: float
    templates: dict[str, float]
    stops: float = 0.05
    """The share of their jobs that they stop before the end."""
    holds: float = 0.0
    """The share that they submit held, to release later."""


class Arrivals(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The times at which users submit."""

    per_hour: float
    """Submissions in a working hour while the queue is empty."""
    by_hour: tuple[float, ...]
    """24 factors of it, from midnight."""
    weekend: float
    """Another factor, on Saturdays and Sundays."""
    patience: int
    """The number of queued jobs at which users submit no more."""
    backlog: int
    """The number of queued jobs when the demo opens."""


class MemberGroup(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One cluster of a fleet."""

    name: str
    kubernetes: str
    scheduler: str
    enable_reservation: bool = False
    nodes: tuple[NodeGroup, ...]

    @property
    def member(self) -> Member:
        return Member(
            name=self.name,
            kubernetes=self.kubernetes,
            scheduler=self.scheduler,
            enable_reservation=self.enable_reservation,
        )


class Fixture(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One cluster, or a fleet of several."""

    name: str
    opens_at: datetime
    """The time of its clock when it opens; without a zone, in that of the machine that shows it."""
    lived_hours: float
    """Simulated before it opens."""
    person: str
    """The user who looks at it, and its administrator."""
    nodes: tuple[NodeGroup, ...] = ()
    members: tuple[MemberGroup, ...] = ()
    """The members of a fleet, which has no nodes of its own."""
    users: tuple[User, ...]
    templates: tuple[Template, ...]
    arrivals: Arrivals
    rules: dict[str, Any] = {}
    """Partitions, priorities, QOS, accounts and users, as cluster.toml says them."""
    catalogue: dict[str, Any] = {}
    """The entries of its catalogue, in the form of catalogue.toml."""
    quota: dict[str, Any] = {}
    """The root of its quota tree, in an ElasticQuotaTree's words; a user's project is their group. Empty: no tree."""

    def template_of(self, job_name: str) -> Template | None:
        """Return the template that a job of this name was made from: `<template>-<number>`."""
        stem = job_name.rpartition("-")[0]
        return next((each for each in self.templates if each.name == stem), None)


def read_fixture(name: str) -> Fixture:
    """Return a fixture that ships, by its name, or a file of one's own by its path. Raises `SpecErrors`."""
    source = Path(name) if name.endswith(".toml") else _shipped_file(name)
    try:
        text = source.read_text(encoding="utf-8")
    except OSError as error:
        raise SpecErrors([f"{name}: cannot be read: {error.strerror}"]) from error
    try:
        fixture = msgspec.convert(parse_toml(text, name), Fixture)
    except msgspec.ValidationError as error:
        raise SpecErrors([f"{name}: {error}"]) from error
    if errors := list(_unresolved_names(fixture)):
        raise SpecErrors([f"{name}: {error}" for error in errors])
    # Now and not when the demo opens: a wrong fixture is then refused with the file's name, before any folder is made.
    rules_of(fixture)
    quota_of(fixture)
    catalogue_of(fixture)
    return fixture


def rules_of(fixture: Fixture) -> tuple[Cluster, Accounts]:
    """Return its rules, and its accounts at the beginning. Raises `SpecErrors`."""
    nodes = nodes_of(fixture)
    cluster, accounts = read_rules(fixture.rules, nodes, f"{fixture.name}: rules.")
    members = [each.member for each in fixture.members]
    return fleet_rules(members, nodes, cluster) if members else cluster, accounts


def quota_of(fixture: Fixture) -> QuotaTree | None:
    """Return its quota tree; None: it has none. Raises `SpecErrors`."""
    if not fixture.quota:
        return None
    # As a manifest, so that a fixture's tree passes the checks of `cockpit quota apply`.
    metadata = {"name": fixture.name, "namespace": quotatree.NAMESPACE}
    manifest = {"apiVersion": quotatree.API_VERSION, "kind": quotatree.KIND, "metadata": metadata}
    return quotatree.read_quota_tree(f"{fixture.name}: quota", json.dumps(manifest | {"spec": {"root": fixture.quota}}))


def catalogue_of(fixture: Fixture) -> tuple[AnyEntry, ...]:
    """Return the catalogue of a fixture. Raises `SpecErrors`."""
    return tuple(read_entries(fixture.catalogue, f"{fixture.name}: catalogue.", Reading("/", "")))


def fixture_names() -> list[str]:
    """Return the names of the fixtures that ship with cockpit."""
    return sorted(file.name.removesuffix(".toml") for file in shipped(FOLDER).iterdir() if file.name.endswith(".toml"))


def nodes_of(fixture: Fixture) -> tuple[Node, ...]:
    """Return all nodes in the fixture's order; on a fleet with the fleet's names."""
    of_members = (
        replace(node, name=node_in(member.name, node.name))
        for member in fixture.members
        for node in grouped(member.nodes)
    )
    return (*grouped(fixture.nodes), *of_members)


def grouped(groups: Iterable[NodeGroup]) -> tuple[Node, ...]:
    """Return all nodes of the groups."""
    return tuple(_node(group, number) for group in groups for number in range(group.first, group.first + group.count))


def _shipped_file(name: str) -> Traversable:
    try:
        return shipped(f"{FOLDER}/{name}.toml")
    except FileNotFoundError:
        raise SpecErrors([f"There is no demo {name!r}. There are: {', '.join(fixture_names())}."]) from None


def _node(group: NodeGroup, number: int) -> Node:
    """Return the node of a group with this number."""
    name = f"{group.prefix}{number:02}"
    # Indices run over all models of a node, as the driver counts its cards.
    rows = [row for row in group.cards for _ in range(row.count)]
    return Node(
        name=NodeName(name),
        cpus=group.cpus,
        memory_mib=group.memory_gib * GIB,
        cards=tuple(_card(row, name, index) for index, row in enumerate(rows)),
        pool=group.pool,
        os="Rocky Linux 9.5 (Blue Onyx)",
        kernel="5.14.0-503.el9.x86_64",
        driver_version=group.driver_version,
        state=NodeState.DRAINED if group.drained else NodeState.UP,
        state_reason=group.drained,
    )


def _card(row: CardGroup, node: str, index: int) -> Card:
    """Return a card with a UUID that follows from its node and index."""
    return Card(
        index=index,
        model=row.model,
        vendor=CardVendor.NVIDIA,
        memory_mib=row.memory_gib * GIB,
        uuid=f"GPU-{node}-{index}",
        slices=row.mig_slices,
        slice_uuids=tuple(f"MIG-{node}-{index}-{slot}" for slot in range(row.mig_slices)),
    )


def _unresolved_names(fixture: Fixture) -> Iterator[str]:
    """Yield an error for each name in the fixture that names nothing."""
    templates = {template.name for template in fixture.templates}
    for user in fixture.users:
        for unknown in user.templates.keys() - templates:
            yield f"users: {user.name} has the template {unknown}, which is not there"
    if fixture.person not in {user.name for user in fixture.users}:
        yield f"person: {fixture.person} is none of the users"
    if bool(fixture.nodes) == bool(fixture.members):
        yield "nodes: a cluster has nodes, a fleet has members that have them; give one of the two"
    if len(fixture.arrivals.by_hour) != HOURS:
        yield f"arrivals.by_hour: has {len(fixture.arrivals.by_hour)} factors; give {HOURS}"
