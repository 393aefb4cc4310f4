"""The quota tree as administrators apply and remove it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.model import events
from cockpit.model.quota import QuotaTree, tree_errors
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.model.text import visible

if TYPE_CHECKING:
    from cockpit.engine.state import ClusterState
    from cockpit.model.events import EventBody

MOST_ERRORS = 1000
"""Told of one tree: the answer must fit into a frame."""


def apply_quota(state: ClusterState, tree: QuotaTree) -> list[EventBody] | Refusal:
    """Let the tree hold from now on, in place of an earlier one of its name. Jobs that run go on."""
    if errors := list(tree_errors(tree)):
        return Refusal(RefusalKind.INVALID, "\n".join(errors[:MOST_ERRORS]))
    known = state.quota
    if known is not None and known.name != tree.name:
        return Refusal(
            RefusalKind.CONFLICT,
            f"Quota tree {visible(known.name)} is there, and a cluster has one; `cockpit quota remove` removes it.",
        )
    return [] if tree == known else [events.QuotaApplied(tree)]


def remove_quota(state: ClusterState) -> list[EventBody] | Refusal:
    """Remove all quotas."""
    if state.quota is None:
        return Refusal(RefusalKind.NOT_FOUND, "There is no quota tree; `cockpit quota apply FILE` applies one.")
    return [events.QuotaRemoved(state.quota.name)]
