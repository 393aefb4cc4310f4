"""Decides changes of the cluster's rules: those of its file, and the quota tree of administrators."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import fields, replace

from cockpit.model import events
from cockpit.model.accounts import Accounts
from cockpit.model.cluster import Backfill, Cluster, PriorityKind
from cockpit.model.quota import QuotaTree, tree_errors
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.model.text import visible

if TYPE_CHECKING:
    from cockpit.engine.decide import Decision
    from cockpit.engine.state import ClusterState
    from cockpit.model.events import EventBody
    from cockpit.model.priority import WeightChanges


_WORDS = {"enforce": "accounting", "login_pool": "login_node_pool", "home": "home_directory_storage"}
"""The names in cluster.toml of attributes that are called otherwise there."""


def configured(state: ClusterState, cluster: Cluster, *, sealed: bool) -> Decision:
    """Return the event that applies the rules read when the engine starts; none when they are the same. `sealed`: they
    are just as `cluster init` wrote them, which alone changes what an earlier init fixed, unless the file says `mutable
    = true`."""
    if cluster == state.cluster:
        return []
    changed = _fixed_changes(state.cluster, cluster)
    if not changed or state.cluster.mutable or cluster.mutable or sealed:
        return [events.ClusterConfigured(cluster)]
    return Refusal(
        RefusalKind.CONFLICT,
        f"cluster.toml says another {' and '.join(changed)} than `cockpit cluster init` fixed (mutable = false), so "
        "its rules are not taken over and those before stay in force. Undo the edit, write `mutable = true`, or fix "
        "others with `cockpit cluster init --force`.",
    )


def reweighed(state: ClusterState, changes: WeightChanges) -> Decision:
    """Other weights from now on, and the order by factors where it was that of submission; not
    where `cluster init` fixed the rules."""
    cluster = state.cluster
    if not cluster.mutable:
        return Refusal(
            RefusalKind.CONFLICT,
            "This cluster's rules are fixed by `cockpit cluster init` (mutable = false), so its weights stay as they "
            "are. Write `mutable = true` into cluster.toml and restart the engine, or fix others with "
            "`cockpit cluster init --force`.",
        )
    priority = replace(cluster.priority, kind=PriorityKind.MULTIFACTOR, weights=changes.on(cluster.priority.weights))
    changed = replace(cluster, priority=priority)
    return [events.ClusterConfigured(changed)] if changed != cluster else []


def accounts_begun(state: ClusterState, accounts: Accounts) -> list[EventBody]:
    """Return the file's accounts, for an engine that has none of its own yet."""
    begin = Accounts()
    if accounts == begin or state.accounts != begin:
        return []
    return [
        events.AccountsChanged(
            associations=tuple(
                each for key, each in accounts.associations.items() if begin.associations.get(key) != each
            ),
            qos=tuple(each for name, each in accounts.qos.items() if begin.qos.get(name) != each),
        )
    ]


def _fixed_changes(before: Cluster, after: Cluster) -> list[str]:
    """Return the differences in what a slurmSpec fixes, in the file's words."""
    before, after = _fixed(before), _fixed(after)
    names = (field.name for field in fields(Cluster))
    return [_WORDS.get(name, name) for name in names if getattr(before, name) != getattr(after, name)]


def _fixed(cluster: Cluster) -> Cluster:
    """Return the cluster without the settings that each site makes for itself."""
    own = {"urgent_jobs": None, "projects": (), "sharing": True, "max_resumes": None, "max_grace_seconds": None}
    return replace(cluster, backfill=Backfill(), mutable=True, **own)


MOST_ERRORS = 1000
"""Told of one tree: the answer must fit into a frame."""


def apply_quota(state: ClusterState, tree: QuotaTree) -> list[EventBody] | Refusal:
    """Apply the tree from now on, in place of an earlier one of its name. Running jobs keep running."""
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
