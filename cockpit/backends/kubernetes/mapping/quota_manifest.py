"""A quota tree as the manifest of a cluster, with what others wrote into the tree that is there.

Nodes may have more fields than cockpit knows, other attributes than the new tree, and bounds of other resources. A node
of the new tree keeps these of the node that has its path; nodes that the new tree lacks go with all they have.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cockpit.backends.kubernetes.mapping.quantities import tres_amounts
from cockpit.formats.quotatree import API_VERSION, KIND, NAMESPACE
from cockpit.model.quota import MOST, RESOURCES, Amounts, QuotaNode, QuotaTree

_OWN = ("name", "min", "max", "namespaces", "children", "attributes")
_ONE = 1000
_MIB = 1 << 20
_MOST_BYTES = (1 << 63) - 1
_NAMES = {tres: name for name, tres in RESOURCES.items()}

Node = Mapping[str, Any]
"""A node as the cluster has it."""


def manifest_of_tree(tree: QuotaTree) -> dict[str, Any]:
    """Return the manifest of a new tree."""
    metadata = {"name": tree.name, "namespace": NAMESPACE}
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "spec": {"root": root_of(tree, {})}}


def root_of(tree: QuotaTree, present: Node) -> dict[str, Any]:
    """Return the root of a tree's manifest. `present`: the root that is there."""
    return _node(tree.root, present)


def _node(node: QuotaNode, present: Node) -> dict[str, Any]:
    below = {str(each.get("name")): each for each in _list(present.get("children")) if isinstance(each, Mapping)}
    written = {key: value for key, value in present.items() if key not in _OWN}
    written |= {"name": node.name}
    for key, amounts, others in (("min", node.min, node.uncounted_min), ("max", node.max, node.uncounted_max)):
        if bounds := _bounds(amounts, others, present.get(key)):
            written[key] = bounds
    if attributes := {**_table(present.get("attributes")), **node.attributes}:
        written["attributes"] = attributes
    if node.namespaces:
        written["namespaces"] = list(node.namespaces)
    if node.children:
        written["children"] = [_node(child, below.get(child.name, {})) for child in node.children]
    return written


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _table(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _bounds(amounts: Amounts, others: Mapping[str, str], present: object) -> dict[str, Any]:
    """Return amounts as quantities, with those of resources that cockpit does not count: `others`, and those that are
    there. An amount that stays is written as it was."""
    before = _table(present)
    bounds = {name: each for name, each in before.items() if name not in RESOURCES}
    bounds |= {name: each for name, each in others.items() if str(bounds.get(name)) != each}
    for resource, amount in amounts.items():
        name = _NAMES[resource]
        stays = name in before and tres_amounts({name: before[name]}) == {resource: amount}
        bounds[name] = before[name] if stays else _quantity(resource, amount)
    return bounds


def _quantity(resource: str, amount: int) -> str | int:
    """Return an amount, in thousandths of the unit, as a quantity that is read as the same amount."""
    if resource == "mem":
        # Rounded up, as it is when it is read: a thousandth of a MiB is more than a thousand bytes.
        return _memory(min(-(-amount * _MIB // _ONE), _MOST_BYTES))
    whole, rest = divmod(amount, _ONE)
    return f"{amount}m" if rest and amount < MOST else whole


def _memory(amount: int) -> str:
    for unit, power in (("Gi", 3), ("Mi", 2), ("Ki", 1)):
        if amount and amount % (1 << (10 * power)) == 0:
            return f"{amount >> (10 * power)}{unit}"
    return str(amount)
