"""The quota tree: the guaranteed and the largest amounts of resources that projects and groups of projects may occupy.

The terms are those of ElasticQuotaTree: `min` is guaranteed and lent to others while it is unused, `max` is never
exceeded, and a leaf's namespaces are cockpit's projects. A job belongs to the leaf with its project, and counts to
every node above it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple
from zlib import crc32

import msgspec

from cockpit.model.names import name_error
from cockpit.model.text import visible

Amounts = dict[str, int]
"""Amounts by TRES name, in thousandths (of a CPU, a MiB, a card, a job)."""

JOBS = "jobs"
"""The resource behind `kube-queue/max-jobs`: the number of running jobs."""
RESOURCES = {"cpu": "cpu", "memory": "mem", "nvidia.com/gpu": "gres/gpu", "kube-queue/max-jobs": JOBS}
"""The resources of a manifest, and the TRES by which cockpit counts each."""
RESOURCE_FLAVORS = "resourceflavors"
"""The attribute of a node whose jobs run only on the nodes of these flavors."""
MOST = (1 << 63) - 1
"""The largest amount; larger ones count as this one, as in Kubernetes."""
MOST_NODES = 10_000
# Bounds of cockpit's own: each level costs a look for each job that is considered, and a screen has to indent them.
MOST_LEVELS = 32
SEPARATOR = "/"
"""The separator of the names in a path."""

_MANIFEST_NAMES = {tres: name for name, tres in RESOURCES.items()}
# As long as Kubernetes makes the suffixes of generated names.
_SUFFIX_LENGTH = 5
_SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
"""The letters of generated names in Kubernetes, which form no words."""


class QuotaNode(msgspec.Struct, frozen=True, kw_only=True):
    """A node of the quota tree, with all nodes below it."""

    name: str
    min: Amounts = {}
    """The guaranteed amounts; absent: none."""
    max: Amounts = {}
    """The largest amounts; absent: no bound of its own."""
    namespaces: tuple[str, ...] = ()
    """The projects whose jobs wait in the queue of this leaf; empty for an inner node."""
    children: tuple[QuotaNode, ...] = ()
    attributes: dict[str, str] = {}
    """What a cluster's own scheduler reads, such as `resourceflavors`."""
    uncounted_min: dict[str, str] = {}
    """The guaranteed amounts of resources that cockpit does not count, as quantities by the names of a manifest."""
    uncounted_max: dict[str, str] = {}
    """The largest amounts of such resources."""


class QuotaTree(msgspec.Struct, frozen=True):
    """A quota tree, of which a cluster has at most one."""

    name: str
    root: QuotaNode


class Place(NamedTuple):
    """A node with its position in the tree."""

    path: str
    """The names from the root, such as `root/child-2`."""
    depth: int
    """The depth in the tree; 0: root."""
    node: QuotaNode
    where: str
    """The position in the manifest, such as `spec.root.children[0]`."""


def places(root: QuotaNode) -> Iterator[Place]:
    """Yield every node, parents before their children."""
    # An explicit stack: a request may have more levels than Python can recurse into.
    stack = [Place(root.name, 0, root, "spec.root")]
    while stack:
        place = stack.pop()
        yield place
        below = [
            Place(f"{place.path}{SEPARATOR}{child.name}", place.depth + 1, child, f"{place.where}.children[{number}]")
            for number, child in enumerate(place.node.children)
        ]
        # Reversed, since the last one is taken first: the order of the manifest is kept.
        stack += reversed(below)


def queue_name(path: str) -> str:
    """Return the name of a node's queue, such as `root-child-2-v5zxz`, with a suffix that is a hash of the path."""
    # A hash and not a random suffix: a queue keeps its name when the same tree is applied again.
    number, suffix = crc32(path.encode("utf-8", "surrogatepass")), ""
    for _ in range(_SUFFIX_LENGTH):
        number, letter = divmod(number, len(_SUFFIX_LETTERS))
        suffix += _SUFFIX_LETTERS[letter]
    return f"{path.replace(SEPARATOR, '-')}-{suffix}"


def tree_errors(tree: QuotaTree) -> Iterator[str]:
    """Yield what is wrong with a tree, each error behind its position in the manifest; nothing: it may be applied."""
    if error := name_error(tree.name):
        yield f"metadata.name: {error}"
    everything = list(places(tree.root))
    # The first errors end the check, since the later checks rely on them: names and units of amounts are known below.
    if any(place.depth >= MOST_LEVELS for place in everything):
        yield f"spec.root: has more than {MOST_LEVELS} levels; use fewer"
        return
    if any(_has_unknown_amounts(amounts) for place in everything for amounts in (place.node.min, place.node.max)):
        yield f"spec.root: bounds something else than {', '.join(RESOURCES)}, or by less than 0"
        return
    if len(everything) > MOST_NODES:
        yield f"spec.root: has {len(everything)} nodes; use at most {MOST_NODES}"
        return
    yield from _root_errors(tree.root)
    for place in everything:
        yield from _own_errors(place)
        yield from _errors_below(place)
    yield from _repeated_namespaces(everything)


def unkept_bounds(tree: QuotaTree) -> Iterator[str]:
    """Yield the bounds of a tree that cockpit's own scheduler would not keep, each behind its position."""
    for place in places(tree.root):
        for name, amounts in (("min", place.node.uncounted_min), ("max", place.node.uncounted_max)):
            for resource in amounts:
                about = f"is no resource that cockpit counts; those are {', '.join(RESOURCES)}"
                yield f"{place.where}.{name}.{visible(resource)}: {about}"
        if RESOURCE_FLAVORS in place.node.attributes:
            about = "ties jobs to nodes, which only a cluster's own scheduler does; leave it out, and use partitions"
            yield f"{place.where}.attributes.{RESOURCE_FLAVORS}: {about}"


def _has_unknown_amounts(amounts: Amounts) -> bool:
    return not _MANIFEST_NAMES.keys() >= amounts.keys() or min(amounts.values(), default=0) < 0


def _root_errors(root: QuotaNode) -> Iterator[str]:
    for resource in sorted(root.min.keys() | root.max.keys(), key=_MANIFEST_NAMES.__getitem__):
        least, most = root.min.get(resource), root.max.get(resource)
        # A number of jobs may be bounded on one side only.
        if least == most or (resource == JOBS and None in (least, most)):
            continue
        both = f"min is {_amount_text(resource, least)}, max is {_amount_text(resource, most)}"
        yield f"spec.root.max.{_MANIFEST_NAMES[resource]}: the root's max must equal its min; {both}"


def _own_errors(place: Place) -> Iterator[str]:
    """Yield what is wrong with a node by itself."""
    node = place.node
    if error := name_error(node.name):
        yield f"{place.where}.name: {error}"
    for resource, least in node.min.items():
        most = node.max.get(resource)
        # not of the root, whose max must equal its min anyway
        if place.depth and most is not None and most < least:
            about = f"max {_amount_text(resource, most)} is below min {_amount_text(resource, least)}"
            yield f"{place.where}.max.{_MANIFEST_NAMES[resource]}: {about}"
    if node.namespaces and node.children:
        yield f"{place.where}.namespaces: only a leaf has namespaces; move them to one of its children"
    for number, namespace in enumerate(node.namespaces):
        if error := name_error(namespace):
            yield f"{place.where}.namespaces[{number}]: {error}"


def _errors_below(place: Place) -> Iterator[str]:
    """Yield what is wrong between a node and its children."""
    node, seen = place.node, set[str]()
    for number, child in enumerate(node.children):
        where = f"{place.where}.children[{number}]"
        if child.name in seen:
            yield f'{where}.name: "{visible(child.name)}" is there twice below {visible(place.path)}; give another'
        seen.add(child.name)
        for resource, most in child.max.items():
            bound = node.max.get(resource)
            if bound is not None and most > bound:
                above = f"{_amount_text(resource, bound)} of {visible(place.path)}"
                about = f"max {_amount_text(resource, most)} is over the {above}"
                yield f"{where}.max.{_MANIFEST_NAMES[resource]}: {about}"
    for resource in dict.fromkeys(resource for child in node.children for resource in child.min):
        together = sum(child.min.get(resource, 0) for child in node.children)
        # An amount of MOST means unlimited.
        # The sum of the max is not bounded: children share what is theirs together, each up to its own max.
        if together > node.min.get(resource, 0) < MOST:
            about = f"its children's min come to {_amount_text(resource, together)}"
            least = _amount_text(resource, node.min.get(resource, 0))
            yield f"{place.where}.min.{_MANIFEST_NAMES[resource]}: {about}, more than its own {least}"


def _repeated_namespaces(everything: list[Place]) -> Iterator[str]:
    owners: dict[str, str] = {}
    for place in everything:
        for number, namespace in enumerate(place.node.namespaces):
            if namespace in owners:
                where = f"{place.where}.namespaces[{number}]"
                yield f'{where}: "{visible(namespace)}" belongs to {visible(owners[namespace])} already'
            owners.setdefault(namespace, place.path)


def _amount_text(resource: str, amount: int | None) -> str:
    """Return an amount in the units of manifests: whole ones, and MiB for memory."""
    if amount is None:
        return "unlimited" if resource == JOBS else "not given"
    whole, rest = divmod(amount, 1000)
    number = f"{whole}.{rest:03}".rstrip("0") if rest else str(whole)
    return f"{number}Mi" if resource == "mem" else number
