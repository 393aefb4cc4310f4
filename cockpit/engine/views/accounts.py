"""Builds the rows of accounts, users and QOS, and reduces the cluster's rules, to what a user may see."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from msgspec.structs import replace

from cockpit.engine.accounts.coordinators import coordinates
from cockpit.model.accounts import ROOT, AssocKey, Usage, assoc_key
from cockpit.model.cluster import PriorityKind
from cockpit.model.events import AccountsChanged, ClusterConfigured
from cockpit.model.job import JobState
from cockpit.model.view import AccountRow, AccountsShown
from cockpit.sched.priority.standings import FairShareFigures, fair_share_figures

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cockpit.engine.access import Actor
    from cockpit.engine.state import ClusterState
    from cockpit.model.accounts import Association
    from cockpit.model.cluster import Cluster
    from cockpit.model.events import EventBody


_NOTHING = Usage()
_ROOTS = FairShareFigures(1.0, 1.0, 1.0, None, None)


def accounts_shown(state: ClusterState, actor: Actor) -> AccountsShown:
    """Return all accounts, and the users that the actor may see.

    Administrators see all users, coordinators those of their accounts, and everyone sees themselves.
    """
    queued, running = _jobs(state)
    standing = _standings(state)
    rows = tuple(
        AccountRow(
            association=each,
            depth=depth,
            used=state.usage.get(each.key, _NOTHING).raw,
            queued=queued[each.key],
            running=running[each.key],
            **standing.get(each.key, _ROOTS)._asdict(),
        )
        for depth, each in _tree(state, ROOT, 0)
        if may_see_user(state, actor, each.account, each.user)
    )
    # The screen offers changes of these accounts; the right is checked again when one is asked for.
    coordinated = tuple(
        each.account
        for each in state.accounts.associations.values()
        if not each.user and coordinates(state.accounts, actor.name, each.account)
    )
    return AccountsShown(rows, tuple(state.accounts.qos.values()), actor.admin, coordinated)


def _standings(state: ClusterState) -> dict[AssocKey, FairShareFigures]:
    """Return the shares of all associations; without fair share values if the cluster does not use fair share."""
    priority = state.cluster.priority
    by_key = fair_share_figures(state.accounts, state.usage, priority)
    if priority.kind is PriorityKind.MULTIFACTOR:
        return by_key
    return {key: each._replace(level_fs=None, fair_share=None) for key, each in by_key.items()}


def _tree(state: ClusterState, account: str, depth: int) -> Iterator[tuple[int, Association]]:
    """Yield the account and all associations below it with their depths, parents first."""
    yield depth, state.accounts.associations[assoc_key(account)]
    for each in state.accounts.children.get(account, ()):
        if each.user:
            yield depth + 1, each
        else:
            yield from _tree(state, each.account, depth + 1)


def _jobs(state: ClusterState) -> tuple[Counter[AssocKey], Counter[AssocKey]]:
    """Return the numbers of queued and of running jobs by association. An account counts those below it too."""
    queued, running = Counter[AssocKey](), Counter[AssocKey]()
    for job in state.jobs.values():
        if job.ended:
            continue
        count = queued if job.state is JobState.QUEUED else running
        # A user may have an association for each partition; the job is shown with that of its first one.
        partition = job.partitions[0] if job.partitions else ""
        own = state.accounts.of(job.account, job.submitter.name, partition)
        if own is not None:
            count.update((own.key, *(above.key for above in state.accounts.above(own))))
    return queued, running


def shown_cluster(actor: Actor, cluster: Cluster) -> Cluster:
    """Return the rules without the projects that the user is not in."""
    if actor.admin or not cluster.projects:
        return cluster
    return replace(cluster, projects=tuple(each for each in cluster.projects if each.name in actor.projects))


def may_see_user(state: ClusterState, actor: Actor, account: str, user: str) -> bool:
    """Tell whether the actor may know that `user` is in the account; an empty `user` means the account itself."""
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
    # The association is gone, and only its key tells whose it was: `account/user/partition`.
    account, user, *_ = key.split("/")
    return may_see_user(state, actor, account, user)
