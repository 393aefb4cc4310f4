"""Decides changes of the cluster's rules: those of its file, and the quota tree of administrators."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import fields, replace

from cockpit.model import events
from cockpit.model.accounts import Accounts
from cockpit.model.cluster import Backfill, Cluster, PriorityKind
from cockpit.model.quota import QuotaTree, tree_errors, unkept_bounds
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.model.text import visible

if TYPE_CHECKING:
    from cockpit.engine.decide import Decision
    from cockpit.engine.state import ClusterState
    from cockpit.model.events import EventBody
    from cockpit.model.priority import WeightChanges


_WORDS = {"enforce": "accounting", "login_pool": "login_node_pool", "home": "home_directory_storage"}
"""The names in cluster.toml of attributes that are called otherwise there."""


def take_over_rules(state: ClusterState, cluster: Cluster, *, sealed: bool) -> Decision:
    """Return the event that applies the rules which the engine has read at its start; none when they are in force.

    Refused if they change what `cluster init` fixed. `mutable = true`, before or now, permits such changes, and so does
    `sealed`: the rules are exactly as a new `cluster init` wrote them.
    """
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


def change_weights(state: ClusterState, changes: WeightChanges) -> Decision:
    """Return the event that changes priority weights. Refused where `cluster init` fixed the rules.

    Weights mean nothing under `priority/basic`, so that the cluster uses multifactor priority from then on.
    """
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


def take_over_accounts(state: ClusterState, accounts: Accounts) -> list[EventBody]:
    """Return the file's accounts, for an engine that has none of its own yet."""
    begin = Accounts()
    # Once anything was changed through requests, those are the accounts: the file must not undo it at each start.
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
    """Return the names, as in cluster.toml, of the settings that differ and that `cluster init` fixes."""
    before, after = _without_own_settings(before), _without_own_settings(after)
    names = (field.name for field in fields(Cluster))
    return [_WORDS.get(name, name) for name in names if getattr(before, name) != getattr(after, name)]


def _without_own_settings(cluster: Cluster) -> Cluster:
    """Return the cluster with defaults in place of the settings that may change at any time."""
    # Those that a slurmSpec cannot express, so that no file could have fixed them.
    of_jobs = ("urgent_jobs", "projects", "sharing", "max_resumes", "max_grace_seconds")
    own = (*of_jobs, "drain_after_prechecks", "precheck_exclusion_seconds")
    defaults = Cluster()
    return replace(cluster, backfill=Backfill(), mutable=True, **{name: getattr(defaults, name) for name in own})


MOST_ERRORS = 1000
"""The most errors in one refusal: the answer must fit into one frame of the protocol."""


def apply_quota(state: ClusterState, tree: QuotaTree) -> list[EventBody] | Refusal:
    """Apply the tree from now on, in place of an earlier one of its name. Running jobs keep running."""
    if errors := [*tree_errors(tree), *unkept_bounds(tree)]:
        return Refusal(RefusalKind.INVALID, "\n".join(errors[:MOST_ERRORS]))
    known = state.quota
    # Another name may be a mistake that would replace all quotas: the old tree has to be removed first.
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
