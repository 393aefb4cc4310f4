"""Builds the rows of accounts, users and QOS that clients get."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from cockpit.engine.accounts.coordinators import coordinates
from cockpit.engine.views.rules import may_see_user
from cockpit.model.accounts import ROOT, AssocKey, Usage, assoc_key
from cockpit.model.cluster import PriorityKind
from cockpit.model.job import JobState
from cockpit.model.view import AccountRow, AccountsShown
from cockpit.sched.priority.standings import FairShareFigures, fair_share_figures

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cockpit.engine.access import Actor
    from cockpit.engine.state import ClusterState
    from cockpit.model.accounts import Association

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
        partition = job.partitions[0] if job.partitions else ""
        own = state.accounts.of(job.account, job.submitter.name, partition)
        if own is not None:
            count.update((own.key, *(above.key for above in state.accounts.above(own))))
    return queued, running
