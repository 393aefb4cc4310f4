"""cluster.toml: what the embedded cluster consists of, when it is more than the machine itself, and its rules."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from cockpit.errors import SpecErrors
from cockpit.formats.cluster.fields import FILE, ClusterFile
from cockpit.formats.cluster.node_fields import DeclaredCards, DeclaredNode
from cockpit.formats.cluster.pools import in_pools, meant_pools, pool_errors
from cockpit.formats.cluster.rule_checks import partition_errors, preemption_errors, project_errors
from cockpit.formats.kinds import Reading, Schema
from cockpit.formats.tomltext import parse_toml
from cockpit.model.accounts import ROOT, Accounts, Association, account_troubles
from cockpit.model.catalogue import AnyEntry
from cockpit.model.cluster import Cluster
from cockpit.model.ids import NodeName
from cockpit.model.node import Card, Node
from cockpit.model.text import visible


class ClusterSetup(msgspec.Struct, frozen=True):
    """The cluster that the engine starts with."""

    nodes: tuple[Node, ...]
    cluster: Cluster
    accounts: Accounts
    """Applied to an engine that has none yet."""
    sealed: bool = False
    """The rules are just as `cluster init` wrote them."""
    catalogue: tuple[AnyEntry, ...] = ()
    """The entries of the lab's catalogue.toml beside it."""


def read_cluster(machine: Node, text: str | None, source: str = "cluster.toml") -> ClusterSetup:
    """Read the nodes, the rules and the accounts from cluster.toml.

    The nodes are `machine` as it is without a file, with declared cards, or cut into virtual nodes. `source` leads
    every error. Raises `SpecErrors` with all errors.
    """
    if text is None:
        return ClusterSetup((machine,), Cluster(), Accounts())
    file = read_cluster_file(machine, text, source)
    nodes = own_nodes(machine, file)
    return ClusterSetup(in_pools(file, nodes), _cluster(file, nodes), initial_accounts(file), is_sealed(file))


def read_cluster_file(machine: Node, text: str, source: str = "cluster.toml") -> ClusterFile:
    """Return the file's content. Raises `SpecErrors` with all errors, including those where it does not fit the
    machine."""
    reading = Reading("/", "")
    file = FILE.read(parse_toml(text, source), "", reading)
    # Conflicts only if every field was read: a stand-in may seem to conflict with another field.
    errors = reading.errors or list(_conflicts(machine, file))
    if errors:
        raise SpecErrors([f"{source}: {error}" for error in errors])
    return file


def read_rules(document: Mapping[str, Any], nodes: Sequence[Node], source: str) -> tuple[Cluster, Accounts]:
    """Return the rules of a table in the form of cluster.toml, for nodes that are known already. Raises
    `SpecErrors`."""
    reading = Reading("/", "")
    file = FILE.read(dict(document), "", reading)
    errors = reading.errors or [*pool_errors(file, nodes), *_rule_conflicts(file)]
    if errors:
        raise SpecErrors([f"{source}{error}" for error in errors])
    return _cluster(file, nodes), initial_accounts(file)


def cluster_schema() -> Schema:
    """Return the JSON Schema 2020-12 of cluster.toml, published by `cockpit schema cluster`."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:cockpit-cluster:cluster:1",
        "title": "cockpit's embedded cluster",
        **FILE.schema(),
    }


def _cluster(file: ClusterFile, nodes: Sequence[Node]) -> Cluster:
    """Return the rules of a file. Names of pools of pools are replaced by those pools."""

    def meant(names: Sequence[str]) -> tuple[str, ...]:
        return meant_pools(names, file.node_pools, nodes)

    return Cluster(
        partitions=tuple(msgspec.structs.replace(each, pools=meant(each.pools)) for each in file.partitions),
        enforce=file.accounting.enforce,
        priority=file.priority,
        backfill=file.backfill,
        preemption=file.preemption,
        login_pool=meant([file.login_node_pool])[0] if file.login_node_pool else "",
        home=file.home.get(file.home_directory_storage, file.home_directory_storage),
        prolog_scripts=file.prolog_bash_scripts,
        epilog_scripts=file.epilog_bash_scripts,
        urgent_jobs=file.urgent_jobs,
        staging=file.staging,
        projects=file.projects,
        sharing=file.sharing,
        max_resumes=file.max_resumes,
        max_grace_seconds=file.max_grace_seconds,
        drain_after_prechecks=file.drain_after_prechecks,
        precheck_exclusion_seconds=file.precheck_exclusion_seconds,
        mutable=file.mutable,
    )


def own_nodes(machine: Node, file: ClusterFile) -> tuple[Node, ...]:
    """Return the cluster's nodes before pools are given to them."""
    # All declared nodes share the one machine, so that their sum decides for each of them.
    overcommitted = bool(_excess(machine, file.nodes))
    virtual = tuple(_virtual_node(machine, node, overcommitted=overcommitted) for node in file.nodes)
    return virtual or (_with_declared(machine, file),)


def _with_declared(machine: Node, file: ClusterFile) -> Node:
    """Return the machine with its declared cards and fields."""
    # Real cards first: their indices are those of the driver, by which containers get them.
    cards = _number_cards([*machine.cards, *_declared_cards(file.machine.cards)])
    own = file.machine
    return msgspec.structs.replace(
        machine,
        cards=cards,
        pool=own.pool or machine.pool,
        driver_version=own.driver_version or machine.driver_version,
        labels=dict(own.labels),
        taints=own.taints,
    )


def _virtual_node(machine: Node, node: DeclaredNode, *, overcommitted: bool) -> Node:
    """Return a declared node, which has its cards from the machine, or declared ones."""
    # Its share of the machine's real cards; the declared ones have no hardware.
    own = [machine.cards[index] for index in node.machine_cards]
    return Node(
        name=NodeName(node.name),
        cpus=node.cpus,
        memory_mib=node.memory_mib,
        cards=_number_cards([*own, *_declared_cards(node.cards)]),
        pool=node.pool,
        labels=dict(node.labels),
        taints=node.taints,
        os=machine.os,
        kernel=machine.kernel,
        driver_version=node.driver_version or machine.driver_version,
        mpi=machine.mpi,
        instance=node.instance,
        notice_address=node.notice_address.rstrip("/"),
        virtual=True,
        overcommitted=overcommitted,
    )


def _declared_cards(rows: Sequence[DeclaredCards]) -> Iterator[Card]:
    for row in rows:
        card = Card(
            index=0, model=row.model, vendor=row.vendor, memory_mib=row.memory_mib, slices=row.slices, declared=True
        )
        # One object several times: `_number_cards` gives each copy its own index.
        yield from [card] * row.count


def _number_cards(cards: list[Card]) -> tuple[Card, ...]:
    return tuple(msgspec.structs.replace(card, index=index) for index, card in enumerate(cards))


def _conflicts(machine: Node, file: ClusterFile) -> Iterator[str]:
    """Return conflicts between fields, and with this machine."""
    if file.nodes and file.machine != FILE.stand_in.machine:
        yield "machine: says nothing beside nodes, which are parts of this machine; write its cards into them"
    yield from _repeated_names(file.nodes)
    excess = _excess(machine, file.nodes)
    if excess and not file.overcommit:
        yield f"nodes: together have {'; '.join(excess)}. Make them smaller or write overcommit = true"
    # `own_nodes` indexes the machine's cards, so wrong numbers must be excluded before.
    wrong_cards = list(_wrong_machine_cards(machine, file.nodes))
    yield from wrong_cards
    if not wrong_cards:
        yield from pool_errors(file, own_nodes(machine, file))
    storage = file.home_directory_storage
    if storage and storage not in file.home and not storage.startswith("/"):
        yield f"home_directory_storage: {unmapped_storage(storage)}"
    yield from _rule_conflicts(file)


def _rule_conflicts(file: ClusterFile) -> Iterator[str]:
    yield from partition_errors(file.partitions)
    yield from (f"preemption.{error}" for error in preemption_errors(file.preemption))
    yield from account_errors(file)
    yield from project_errors(file.projects)


def unmapped_storage(name: str) -> str:
    """Return the error for a storage that the file maps to no folder."""
    return f"[home] in cluster.toml has no folder for {visible(name, 200)}; add it there"


def _repeated_names(nodes: Sequence[DeclaredNode]) -> Iterator[str]:
    seen: set[str] = set()
    for index, node in enumerate(nodes):
        if node.name in seen:
            yield f"nodes[{index}].name: {node.name} is the name of an earlier node"
        seen.add(node.name)


def _wrong_machine_cards(machine: Node, nodes: Sequence[DeclaredNode]) -> Iterator[str]:
    """Yield cards of the machine that do not exist, or that two nodes have."""
    given: set[int] = set()
    for index, node in enumerate(nodes):
        for card in node.machine_cards:
            if card >= len(machine.cards):
                yield f"nodes[{index}].machine_cards: this machine has {len(machine.cards)} cards; there is no {card}"
            elif card in given:
                yield f"nodes[{index}].machine_cards: card {card} of the machine is already given away"
            given.add(card)


def _excess(machine: Node, nodes: Sequence[DeclaredNode]) -> list[str]:
    """Return the resources of which the nodes together have more than the machine."""
    cpus, memory = sum(node.cpus for node in nodes), sum(node.memory_mib for node in nodes)
    excess = []
    if cpus > machine.cpus:
        excess.append(f"{cpus} CPUs, and this machine has {machine.cpus}")
    if memory > machine.memory_mib:
        excess.append(f"{memory} MiB of memory, and this machine has {machine.memory_mib}")
    return excess


def initial_accounts(file: ClusterFile) -> Accounts:
    """Return the tree of the file beside what always exists; an account without a parent is below root."""
    begin = Accounts()
    return Accounts(
        associations=begin.associations | {each.key: each for _, each in _associations(file)},
        qos=begin.qos | {each.name: each for each in file.qos},
    )


def account_errors(file: ClusterFile) -> Iterator[str]:
    """Return conflicts between the accounts, users and QOS."""
    rows = list(_associations(file))
    places: dict[str, str] = {each.name: f"qos[{at}]" for at, each in enumerate(file.qos)}
    places |= {each.key: at for at, each in rows}
    yield from _repeated("qos", [(f"qos[{at}]", each.name) for at, each in enumerate(file.qos)])
    yield from _repeated("account", [(at, each.key) for at, each in rows if not each.user])
    yield from _repeated("user here", [(at, each.key) for at, each in rows if each.user])
    for trouble in account_troubles(initial_accounts(file)):
        yield f"{places.get(trouble.key, trouble.key)}.{trouble.field}: {trouble.sentence}"


def _associations(file: ClusterFile) -> Iterator[tuple[str, Association]]:
    for at, each in enumerate(file.accounts):
        below_root = not each.parent and each.account != ROOT
        yield f"accounts[{at}]", replace(each, parent=ROOT) if below_root else each
    for at, each in enumerate(file.users):
        yield f"users[{at}]", each


def _repeated(what: str, rows: Iterable[tuple[str, str]]) -> Iterator[str]:
    seen: set[str] = set()
    for at, key in rows:
        if key in seen:
            yield f"{at}.name: is the name of an earlier {what}"
        seen.add(key)


def seal_of(file: ClusterFile) -> str:
    """Return a digest of the settings that a slurmSpec has, and of nothing that is the site's own."""
    fixed = (
        file.partitions,
        file.login_node_pool,
        file.home_directory_storage,
        file.accounting,
        file.priority,
        file.preemption,
        file.prolog_bash_scripts,
        file.epilog_bash_scripts,
    )
    # Sorted, so that the order of keys in the file does not break the seal.
    return hashlib.sha256(msgspec.json.encode(fixed, order="sorted")).hexdigest()[:16]


def seal(file: ClusterFile) -> ClusterFile:
    """Return the file with these settings fixed."""
    return replace(file, mutable=False, fixed=seal_of(file))


def is_sealed(file: ClusterFile) -> bool:
    """Return whether the fixed fields are still as `cluster init` wrote them."""
    return file.fixed == seal_of(file)
