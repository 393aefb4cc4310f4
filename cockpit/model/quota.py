"""The quota tree: who may hold how much at once, what is kept for them, and what of it they lend meanwhile.

Terms are ElasticQuotaTree's: `min` is guaranteed, `max` is never passed, a leaf's namespaces are cockpit's projects. A
job belongs to the leaf that has its project, and counts for every node above it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple
from zlib import crc32

import msgspec

from cockpit.model.names import name_error
from cockpit.model.text import visible

Amounts = dict[str, int]
"""By TRES name, in thousandths (of a CPU, a MiB, a card, a job)."""

JOBS = "jobs"
"""`kube-queue/max-jobs`: how many jobs run at once."""
RESOURCES = {"cpu": "cpu", "memory": "mem", "nvidia.com/gpu": "gres/gpu", "kube-queue/max-jobs": JOBS}
"""What a manifest may bound, and the TRES that counts it."""
MOST = (1 << 63) - 1
"""Larger amounts are taken for this one, as Kubernetes does."""
MOST_NODES = 10_000
MOST_LEVELS = 32
SEPARATOR = "/"
"""Between the names of a path."""

_MANIFEST_NAMES = {tres: name for name, tres in RESOURCES.items()}
_SUFFIX_LENGTH = 5
_SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
"""Those of generated names in Kubernetes: no word comes out."""


class QuotaNode(msgspec.Struct, frozen=True, kw_only=True):
    """One node, with everything below it."""

    name: str
    min: Amounts = {}
    """Guaranteed; absent: nothing."""
    max: Amounts = {}
    """Never passed; absent: no bound of its own."""
    namespaces: tuple[str, ...] = ()
    """Of a leaf: the projects whose jobs wait in its queue."""
    children: tuple[QuotaNode, ...] = ()


class QuotaTree(msgspec.Struct, frozen=True):
    """The cluster's one tree."""

    name: str
    root: QuotaNode


class Place(NamedTuple):
    """A node where it stands in its tree."""

    path: str
    """Names from the root, `root/child-2`."""
    depth: int
    node: QuotaNode
    where: str
    """In the manifest: `spec.root.children[0]`."""


def places(root: QuotaNode) -> Iterator[Place]:
    """Every node, parents before what is below them."""
    left = [Place(root.name, 0, root, "spec.root")]
    while left:
        place = left.pop()
        yield place
        below = [
            Place(f"{place.path}{SEPARATOR}{child.name}", place.depth + 1, child, f"{place.where}.children[{number}]")
            for number, child in enumerate(place.node.children)
        ]
        left += reversed(below)


def queue_name(path: str) -> str:
    """`<path>-<suffix>`, such as `root-child-2-v5zxz`: the suffix is the path's own, and always the same."""
    number, suffix = crc32(path.encode("utf-8", "surrogatepass")), ""
    for _ in range(_SUFFIX_LENGTH):
        number, letter = divmod(number, len(_SUFFIX_LETTERS))
        suffix += _SUFFIX_LETTERS[letter]
    return f"{path.replace(SEPARATOR, '-')}-{suffix}"


def tree_errors(tree: QuotaTree) -> Iterator[str]:
    """What is wrong with a tree, each led by its place in the manifest; nothing where it may be applied."""
    if error := name_error(tree.name):
        yield f"metadata.name: {error}"
    everything = list(places(tree.root))
    if any(place.depth >= MOST_LEVELS for place in everything):
        yield f"spec.root: has more than {MOST_LEVELS} levels; use fewer"
        return
    if any(_unknown(amounts) for place in everything for amounts in (place.node.min, place.node.max)):
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


def _unknown(amounts: Amounts) -> bool:
    return not _MANIFEST_NAMES.keys() >= amounts.keys() or min(amounts.values(), default=0) < 0


def _root_errors(root: QuotaNode) -> Iterator[str]:
    for resource in sorted(root.min.keys() | root.max.keys(), key=_MANIFEST_NAMES.__getitem__):
        least, most = root.min.get(resource), root.max.get(resource)
        if least == most or (resource == JOBS and None in (least, most)):
            continue
        both = f"min is {_shown(resource, least)}, max is {_shown(resource, most)}"
        yield f"spec.root.max.{_MANIFEST_NAMES[resource]}: the root's max must equal its min; {both}"


def _own_errors(place: Place) -> Iterator[str]:
    node = place.node
    if error := name_error(node.name):
        yield f"{place.where}.name: {error}"
    for resource, least in node.min.items():
        most = node.max.get(resource)
        if place.depth and most is not None and most < least:
            about = f"max {_shown(resource, most)} is below min {_shown(resource, least)}"
            yield f"{place.where}.max.{_MANIFEST_NAMES[resource]}: {about}"
    if node.namespaces and node.children:
        yield f"{place.where}.namespaces: only a leaf has namespaces; move them to one of its children"
    for number, namespace in enumerate(node.namespaces):
        if error := name_error(namespace):
            yield f"{place.where}.namespaces[{number}]: {error}"


def _errors_below(place: Place) -> Iterator[str]:
    node, seen = place.node, set[str]()
    for number, child in enumerate(node.children):
        where = f"{place.where}.children[{number}]"
        if child.name in seen:
            yield f'{where}.name: "{visible(child.name)}" is there twice below {visible(place.path)}; give another'
        seen.add(child.name)
        for resource, most in child.max.items():
            bound = node.max.get(resource)
            if bound is not None and most > bound:
                about = f"max {_shown(resource, most)} is over the {_shown(resource, bound)} of {visible(place.path)}"
                yield f"{where}.max.{_MANIFEST_NAMES[resource]}: {about}"
    for resource in dict.fromkeys(resource for child in node.children for resource in child.min):
        together = sum(child.min.get(resource, 0) for child in node.children)
        if together > node.min.get(resource, 0) < MOST:
            about = f"its children's min come to {_shown(resource, together)}"
            least = _shown(resource, node.min.get(resource, 0))
            yield f"{place.where}.min.{_MANIFEST_NAMES[resource]}: {about}, more than its own {least}"


def _repeated_namespaces(everything: list[Place]) -> Iterator[str]:
    owners: dict[str, str] = {}
    for place in everything:
        for number, namespace in enumerate(place.node.namespaces):
            if namespace in owners:
                where = f"{place.where}.namespaces[{number}]"
                yield f'{where}: "{visible(namespace)}" belongs to {visible(owners[namespace])} already'
            owners.setdefault(namespace, place.path)


def _shown(resource: str, amount: int | None) -> str:
    """In the unit that manifests are written in: MiB of memory."""
    if amount is None:
        return "unlimited" if resource == JOBS else "not given"
    whole, rest = divmod(amount, 1000)
    number = f"{whole}.{rest:03}".rstrip("0") if rest else str(whole)
    return f"{number}Mi" if resource == "mem" else number
