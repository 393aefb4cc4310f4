"""ElasticQuotaTree manifests (`scheduling.sigs.k8s.io/v1beta1`) as they are, in YAML or JSON.

What a server adds to a manifest (labels, status, a List around it) is passed over; every other word must be known.
Attributes of nodes and amounts of resources that cockpit does not count are read for clusters with other schedulers.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from fractions import Fraction
from typing import Any

from msgspec.structs import replace

from cockpit.errors import SpecErrors
from cockpit.formats.job.file import parsed
from cockpit.formats.kinds import ListOf, Reading, Schema, Text, described
from cockpit.formats.rulekinds import MapOf
from cockpit.formats.tables import Field, Table
from cockpit.model.quota import MOST, MOST_LEVELS, MOST_NODES, RESOURCES, Amounts, QuotaNode, QuotaTree, tree_errors
from cockpit.model.text import visible

API_VERSION, KIND, NAMESPACE = "scheduling.sigs.k8s.io/v1beta1", "ElasticQuotaTree", "kube-system"

_MIB = 1 << 20
_THOUSANDTHS = {"mem": Fraction(1000, _MIB)}
"""Resources whose quantities count thousandths of the unit."""
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {f"{letter}i": 1 << (10 * power) for power, letter in enumerate("KMGTPE", 1)}
_QUANTITY = re.compile(
    r"([-+]?)(\d{1,30}(?:\.\d{0,18})?|\.\d{1,18})(?:([KMGTPE]i|[numkMGTPE])|[eE]([-+]?\d{1,2}))?", re.ASCII
)
_OTHER_RESOURCE = re.compile(
    r"ephemeral-storage|hugepages-\w{1,20}|[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?/[A-Za-z0-9]([-._A-Za-z0-9]{0,61}[A-Za-z0-9])?"
)
"""Kubernetes' own other resources, and those with the domain of their makers."""


def read_quota_tree(source: str, text: str) -> QuotaTree:
    """Return the one tree of a text. `source` is its name.

    Raises `SpecErrors` with all errors, each led by source, place and path: `quota.yaml: spec.root.children[0].max.cpu:
    …`.
    """
    documents = parsed(source, text)
    errors = list(documents.errors)
    items = [(document.where, item) for document in documents.items for item in (_items(document.value))]
    trees = []
    for where, value in items:
        reading = _Reading()
        try:
            trees.append(_tree(value, reading))
        # A forged manifest may nest deeper than Python's stack; the rule about levels is checked after the reading.
        except RecursionError:
            reading.wrong("spec.root", f"has more than {MOST_LEVELS} levels; use fewer")
        errors += [f"{where}: {error}" for error in reading.errors]
    if len(trees) > 1:
        errors.append(f": holds {len(trees)} manifests; a cluster has one {KIND}, so write one")
    if not trees and not errors:
        errors = [f": holds no {KIND}"]
    if errors:
        raise SpecErrors([f"{visible(source, 200)}{error}" for error in errors])
    return trees[0]


def quantity(value: object) -> Fraction | None:
    """Return the number that a Kubernetes quantity means: `500m`, `64Gi`, `1e3`, 10000000000; None where it is none, or
    beyond 64 bits. Source: Kubernetes' apimachinery, `resource.Quantity`."""
    # bool is a subclass of int: `cpu: yes` must not become 1.
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    match = _QUANTITY.fullmatch(str(value))
    if match is None:
        return None
    sign, digits, suffix, exponent = match.groups()
    scale = (
        Fraction(_BINARY[suffix])
        if suffix in _BINARY
        else Fraction(10) ** (_DECIMAL[suffix or ""] + int(exponent or 0))
    )
    # Fractions, because floats lose the last digits of 64 bits.
    amount = Fraction(digits) * scale * (-1 if sign == "-" else 1)
    return amount if abs(amount) <= MOST else None


class _Reading(Reading):
    """The reading of one manifest."""

    def __init__(self) -> None:
        super().__init__("/", "")
        self.unread: set[str] = set()
        """Resources of which some amount could not be read: they are not compared."""


class _Amounts:
    """Quantities by resource."""

    stand_in: Amounts = {}  # noqa: RUF012 - never changed

    def read(self, value: object, at: str, reading: Reading) -> Amounts:
        if not isinstance(value, dict):
            reading.wrong(at, f"is {described(value)}; write resources: {', '.join(RESOURCES)}")
            # No amount of this entry could be read, so that none may be compared with other entries.
            _mark(reading, RESOURCES.values())
            return self.stand_in
        amounts: Amounts = {}
        for name, item in value.items():
            where, resource = f"{at}.{visible(name)}", RESOURCES.get(name)
            if _is_uncounted(name):
                continue  # read by `_Node`
            if resource is None:
                reading.wrong(where, f"is no resource that cockpit counts; those are {', '.join(RESOURCES)}")
            elif (amount := self._amount(resource, item, where, reading)) is not None:
                amounts[resource] = amount
        return amounts

    def _amount(self, resource: str, value: object, at: str, reading: Reading) -> int | None:
        """Return an amount in thousandths; None if it is wrong."""
        counted = quantity(value)
        if counted is None:
            reading.wrong(at, f"is {described(value)}; write a quantity of at most 64 bits, such as 8, 500m or 64Gi")
        elif counted < 0:
            reading.wrong(at, f"is {described(value)}; write 0 or more")
        else:
            # In thousandths, of memory those of a MiB: exact fractions until here, so that 0.1 stays a tenth.
            return int(counted * _THOUSANDTHS.get(resource, 1000))
        # Behind both errors: neither amount may be compared.
        _mark(reading, (resource,))
        return None

    def write(self, value: Amounts) -> object:
        return value

    def schema(self) -> Schema:
        return {"type": "object"}


class _Node:
    """A node of the tree, with the resources that cockpit does not count."""

    stand_in = QuotaNode(name="x")

    def read(self, value: object, at: str, reading: Reading) -> QuotaNode:
        node = _NODE.read(value, at, reading)
        given = value if isinstance(value, dict) else {}
        least, most = (_uncounted(given.get(name), f"{at}.{name}", reading) for name in ("min", "max"))
        return replace(node, uncounted_min=least, uncounted_max=most)

    def write(self, value: QuotaNode) -> object:
        return value

    def schema(self) -> Schema:
        return {"type": "object"}


def _uncounted(amounts: object, at: str, reading: Reading) -> dict[str, str]:
    """Return the quantities of the resources that cockpit does not count."""
    found: dict[str, str] = {}
    for name, value in amounts.items() if isinstance(amounts, dict) else ():
        if not _is_uncounted(name):
            continue
        amount = quantity(value)
        if amount is None or amount < 0:
            about = "write a quantity of at least 0, such as 8, 500m or 64Gi"
            reading.wrong(f"{at}.{visible(name)}", f"is {described(value)}; {about}")
        else:
            found[name] = str(value)
    return found


def _is_uncounted(name: object) -> bool:
    """Return whether this is a resource that Kubernetes knows and cockpit does not count.

    A name without a domain that Kubernetes does not know is a mistake, such as `gpu`.
    """
    return isinstance(name, str) and name not in RESOURCES and _OTHER_RESOURCE.fullmatch(name) is not None


def _mark(reading: Reading, unread: Iterable[str]) -> None:
    assert isinstance(reading, _Reading)
    reading.unread.update(unread)


class _Children:
    """Nodes within a node."""

    stand_in: tuple[QuotaNode, ...] = ()

    def read(self, value: object, at: str, reading: Reading) -> tuple[QuotaNode, ...]:
        children: tuple[QuotaNode, ...] = ListOf(_Node(), MOST_NODES).read(_without_empty(value), at, reading)
        return children

    def write(self, value: tuple[QuotaNode, ...]) -> object:
        return value

    def schema(self) -> Schema:
        return {"type": "array"}


_NAME = Text()
_NODE = Table(
    QuotaNode,
    [
        Field("name", _NAME, "Name the node.", required=True),
        Field("min", _Amounts(), "Guaranteed amounts; absent: none."),
        Field("max", _Amounts(), "Largest amounts; absent: unlimited."),
        Field("namespaces", ListOf(_NAME, MOST_NODES), "Of a leaf."),
        Field("children", _Children(), "The nodes below."),
        Field("attributes", MapOf(_NAME, _NAME), "What the cluster's own scheduler reads."),
    ],
)


def _items(value: object) -> list[object]:
    """Return the manifests of a List, as `kubectl get -o yaml` writes it; else the one."""
    if (
        isinstance(value, dict)
        and value.get("kind") in {"List", f"{KIND}List"}
        and isinstance(value.get("items"), list)
    ):
        return list(value["items"])
    return [value]


def _tree(value: object, reading: _Reading) -> QuotaTree:
    """Return the tree as far as it can be read; what is wrong with it stays in `reading`."""
    manifest = _table(value, "", reading)
    # Without the kind nothing else is checked: errors about fields of a Deployment would help no one.
    if manifest.get("kind") != KIND:
        reading.wrong("kind", f"is {described(manifest.get('kind'))}; only {KIND} is read here")
        return _STAND_IN
    if manifest.get("apiVersion") != API_VERSION:
        reading.wrong("apiVersion", f"is {described(manifest.get('apiVersion'))}; write {API_VERSION}")
    name = _metadata(_table(manifest.get("metadata"), "metadata", reading), reading)
    spec = _table(manifest.get("spec"), "spec", reading)
    # A field that is not understood is refused rather than passed over, since it may be a bound that would not be kept.
    for unknown in spec.keys() - {"root"}:
        reading.wrong(f"spec.{visible(unknown)}", "is no field here; known is root")
    tree = QuotaTree(name, _Node().read(_without_empty(spec.get("root", {})), "spec.root", reading))
    # Amounts that could not be read are left out of these checks, or one error would cause several others.
    reading.errors += tree_errors(QuotaTree(name, _change_amounts(tree.root, reading.unread)))
    # Clusters write "unlimited" as a very large number; it counts as the largest one that is stored.
    return QuotaTree(name, _change_amounts(tree.root, (), MOST))


def _metadata(metadata: dict[str, Any], reading: Reading) -> str:
    if metadata.get("namespace") != NAMESPACE:
        about = "a quota tree counts only in this namespace"
        reading.wrong("metadata.namespace", f"is {described(metadata.get('namespace'))}; write {NAMESPACE}: {about}")
    return _NAME.read(metadata.get("name"), "metadata.name", reading)


def _table(value: object, at: str, reading: Reading) -> dict[str, Any]:
    """Return the mapping; an empty one for another value, which is reported to `reading`."""
    if isinstance(value, dict):
        return value
    reading.wrong(
        at,
        f"is {described(value)}; write a manifest: apiVersion, kind, metadata, spec"
        if not at
        else f"is {described(value)}; write fields",
    )
    return {}


def _without_empty(value: object) -> object:
    """Return a mapping without empty fields, which mean the same as absent ones in a manifest."""
    if isinstance(value, list):
        return [_without_empty(item) for item in value]
    return {name: item for name, item in value.items() if item is not None} if isinstance(value, dict) else value


def _change_amounts(node: QuotaNode, without: Collection[str], most: int | None = None) -> QuotaNode:
    """Return the tree without some resources.

    `most`: the largest amount in thousandths; larger ones count as that.
    """

    def amounts(given: Amounts) -> Amounts:
        kept = {resource: amount for resource, amount in given.items() if resource not in without}
        return kept if most is None else {resource: min(amount, most) for resource, amount in kept.items()}

    below = tuple(_change_amounts(child, without, most) for child in node.children)
    return replace(node, min=amounts(node.min), max=amounts(node.max), children=below)


_STAND_IN = QuotaTree("x", QuotaNode(name="x"))
