"""A cluster's quota tree as the embedded scheduler's."""

from __future__ import annotations

import msgspec

from cockpit.backends.kubernetes.mapping.quantities import tres_amounts
from cockpit.backends.kubernetes.objects.kube_queue import ElasticQuota, ElasticQuotaTree
from cockpit.model.quota import QuotaNode, QuotaTree

_ROOT = msgspec.json.Decoder(ElasticQuota)


def tree_of(served: ElasticQuotaTree) -> QuotaTree | None:
    """Return the tree; None: it has no root that can be read.

    Other resources than those that cockpit counts are left out. The tree is not checked against the rules for
    manifests, since the cluster has accepted it.
    """
    try:
        root = _node(_ROOT.decode(served.spec.root))
    # A forged tree may nest deeper than Python's stack.
    except (msgspec.DecodeError, RecursionError):
        return None
    return QuotaTree(served.metadata.name, root) if root.name else None


def _node(each: ElasticQuota) -> QuotaNode:
    return QuotaNode(
        name=each.name,
        min=tres_amounts(each.min or {}),
        max=tres_amounts(each.max or {}),
        namespaces=each.namespaces or (),
        children=tuple(map(_node, each.children or ())),
    )
