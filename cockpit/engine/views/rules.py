"""Reduces the cluster's rules and changes of accounts to what a user may see.

Hidden are the members of projects that the user is not in, and the users of accounts that the user does not coordinate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from cockpit.engine.accounts.coordinators import coordinates
from cockpit.model.events import AccountsChanged, ClusterConfigured

if TYPE_CHECKING:
    from cockpit.engine.access import Actor
    from cockpit.engine.state import ClusterState
    from cockpit.model.accounts import AssocKey
    from cockpit.model.cluster import Cluster
    from cockpit.model.events import EventBody


def shown_cluster(actor: Actor, cluster: Cluster) -> Cluster:
    """Return the rules without the projects that the user is not in."""
    if actor.admin or not cluster.projects:
        return cluster
    return replace(cluster, projects=tuple(each for each in cluster.projects if each.name in actor.projects))


def may_see_user(state: ClusterState, actor: Actor, account: str, user: str) -> bool:
    """Tell whether the actor may know that `user` is in the account; an empty `user` stands for the account itself."""
    if not user or actor.admin or user == actor.name:
        return True
    return coordinates(state.accounts, actor.name, account)


def shown_rules(state: ClusterState, actor: Actor, body: EventBody) -> EventBody | None:
    """Return an event reduced to what the actor may see; None: nothing of it. Other kinds of events are unchanged."""
    if isinstance(body, ClusterConfigured):
        return ClusterConfigured(shown_cluster(actor, body.cluster))
    return _shown_accounts(state, actor, body) if isinstance(body, AccountsChanged) else body


def _shown_accounts(state: ClusterState, actor: Actor, body: AccountsChanged) -> AccountsChanged | None:
    shown = replace(
        body,
        associations=tuple(each for each in body.associations if may_see_user(state, actor, each.account, each.user)),
        removed_associations=tuple(key for key in body.removed_associations if _may_see_key(state, actor, key)),
    )
    return shown if shown.associations or shown.removed_associations or shown.qos or shown.removed_qos else None


def _may_see_key(state: ClusterState, actor: Actor, key: AssocKey) -> bool:
    account, user, *_ = key.split("/")
    return may_see_user(state, actor, account, user)
