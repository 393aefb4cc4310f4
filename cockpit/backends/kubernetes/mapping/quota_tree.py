"""A cluster's quota tree as the embedded scheduler's."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import msgspec

from cockpit.backends.kubernetes.mapping.quantities import tres_amounts
from cockpit.backends.kubernetes.objects.kube_queue import ElasticQuota, ElasticQuotaTree
from cockpit.backends.kubernetes.objects.pod import Quantities
from cockpit.backends.kubernetes.objects.surroundings import ResourceQuota
from cockpit.model.quota import RESOURCES, QuotaNode, QuotaTree

OF_NAMESPACES = "ResourceQuota"
"""The root of the tree that quotas of namespaces make."""
_ROOT = msgspec.json.Decoder(ElasticQuota)


def tree_of(served: ElasticQuotaTree) -> QuotaTree | None:
    """Return the tree; None: it has no root that can be read.

    The tree is not checked against the rules for
    manifests, since the cluster has accepted it.
    """
    try:
        root = _node(_ROOT.decode(served.spec.root))
    # A forged tree may nest deeper than Python's stack.
    except (msgspec.DecodeError, RecursionError):
        return None
    return QuotaTree(served.metadata.name, root) if root.name else None


def tree_of_namespaces(quotas: Iterable[ResourceQuota], namespaces: Collection[str]) -> QuotaTree | None:
    """Return a tree without a name that has a leaf for each of the namespaces with a quota; None: none has one.

    Of several quotas of a namespace KubeQueue takes the one that has the namespace's name.
    """
    every: dict[str, list[ResourceQuota]] = {}
    for each in quotas:
        if each.metadata.namespace in namespaces:
            every.setdefault(each.metadata.namespace, []).append(each)
    leaves = []
    for namespace, several in sorted(every.items()):
        named = [each for each in several if len(several) == 1 or each.metadata.name == namespace]
        if named:
            most = tres_amounts(named[0].spec.hard or {})
            leaves.append(QuotaNode(name=namespace, max=most, namespaces=(namespace,)))
    return QuotaTree("", QuotaNode(name=OF_NAMESPACES, children=tuple(leaves))) if leaves else None


def _node(each: ElasticQuota) -> QuotaNode:
    return QuotaNode(
        name=each.name,
        min=tres_amounts(each.min or {}),
        max=tres_amounts(each.max or {}),
        namespaces=each.namespaces or (),
        children=tuple(map(_node, each.children or ())),
        attributes={name: str(value) for name, value in (each.attributes or {}).items()},
        uncounted_min=_uncounted(each.min),
        uncounted_max=_uncounted(each.max),
    )


def _uncounted(amounts: Quantities | None) -> dict[str, str]:
    return {name: str(each) for name, each in (amounts or {}).items() if name not in RESOURCES}
