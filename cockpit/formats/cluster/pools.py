"""Reads [node_pools] of cluster.toml: the nodes of each pool, and pools that stand for others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from cockpit.formats.cluster.fields import EVERY_OTHER_NODE, ClusterFile
from cockpit.model.cluster import Partition
from cockpit.model.node import Node
from cockpit.model.text import visible

Pools = Mapping[str, tuple[str, ...]]


def known_pools(pools: Pools, nodes: Sequence[Node]) -> tuple[str, ...]:
    """Return all names of pools that a partition may use: those of the table, and those that nodes name themselves."""
    return tuple(dict.fromkeys((*pools, *(node.pool for node in nodes if node.pool))))


def in_pools(file: ClusterFile, nodes: Sequence[Node]) -> tuple[Node, ...]:
    """Return the nodes, each in the pool that lists it, which may be set apart."""
    listed = {word: pool for pool, words in file.node_pools.items() for word in words}
    rest = listed.get(EVERY_OTHER_NODE, "")
    apart = set(meant_pools(file.dedicated_pools, file.node_pools, nodes))
    return tuple(_in_pool(node, node.pool or listed.get(node.name, rest), apart) for node in nodes)


def _in_pool(node: Node, pool: str, apart: set[str]) -> Node:
    return msgspec.structs.replace(node, pool=pool, dedicated=pool in apart)


def meant_pools(names: Sequence[str], pools: Pools, nodes: Sequence[Node]) -> tuple[str, ...]:
    """Return the pools of nodes that the names mean: the name of several pools is replaced by these."""
    return tuple(dict.fromkeys(each for name in names for each in _pools_of_name(name, pools, nodes)))


def _pools_of_name(name: str, pools: Pools, nodes: Sequence[Node]) -> Iterator[str]:
    # A pool may list nodes, other pools, or both.
    others = [word for word in pools.get(name, ()) if word in _own_pools(nodes)]
    yield from others
    # It has nodes of its own, or is not in the table at all: then it is meant itself, too.
    if len(others) < len(pools.get(name, ())) or not others:
        yield name


def _own_pools(nodes: Sequence[Node]) -> set[str]:
    """Return the pools that nodes have by themselves, unless a node's name is the same word."""
    return {node.pool for node in nodes if node.pool} - {node.name for node in nodes}


def pool_errors(file: ClusterFile, nodes: Sequence[Node]) -> Iterator[str]:
    """Return what is wrong with the pools, and with references to pools."""
    yield from _member_errors(file.node_pools, nodes)
    known = known_pools(file.node_pools, nodes)
    for at, partition in enumerate(file.partitions):
        yield from _partition_errors(f"partitions[{at}]", partition, known, nodes)
    if file.login_node_pool and file.login_node_pool not in known:
        yield f"login_node_pool: {unknown_pool(file.login_node_pool, known)}"
    elif len(meant_pools([file.login_node_pool], file.node_pools, nodes)) > 1:
        yield "login_node_pool: stands for several pools; name one"
    for at, pool in enumerate(file.dedicated_pools):
        if pool not in known:
            yield f"dedicated_pools[{at}]: {unknown_pool(pool, known)}"


def unknown_pool(name: str, known: Sequence[str]) -> str:
    """Return the error for a name that is no pool."""
    there = f"there are {', '.join(known)}" if known else "there is none yet"
    return f"{visible(name)} is no pool of [node_pools] in cluster.toml; {there}"


def _member_errors(pools: Pools, nodes: Sequence[Node]) -> Iterator[str]:
    """Yield what is wrong with the members of pools."""
    by_name = {node.name: node for node in nodes}
    own, listed = _own_pools(nodes), dict[str, str]()
    for pool, words in pools.items():
        for at, word in enumerate(words):
            place, node = f"node_pools.{pool}[{at}]", by_name.get(word)  # type: ignore[call-overload]  # a name, or not
            if word != EVERY_OTHER_NODE and node is None and word not in own:
                yield f"{place}: {visible(word)} is no node and no node's pool; nodes are {', '.join(by_name)}"
            elif node is not None and node.pool not in {"", pool}:
                yield f"{place}: node {word} is in pool {node.pool} already; write {node.pool} here, or move it"
            # A pool may be in several others; a node is in one.
            elif word not in own and listed.setdefault(word, pool) != pool:
                yield f"{place}: {word} is in pool {listed[word]} already; a node is in one pool"


def _partition_errors(at: str, partition: Partition, known: Sequence[str], nodes: Sequence[Node]) -> Iterator[str]:
    for index, pool in enumerate(partition.pools):
        if pool not in known:
            yield f"{at}.node_pools[{index}]: {unknown_pool(pool, known)}"
    names = {node.name for node in nodes}
    for index, name in enumerate(partition.nodes):
        if name not in names:
            yield f"{at}.nodes[{index}]: there is no node {visible(name)}; nodes are {', '.join(names)}"
