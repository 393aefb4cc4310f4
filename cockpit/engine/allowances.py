"""How many jobs somebody may have, queued and running: limits on submission, and the bound on urgent jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from cockpit.model.accounts import Association, Limits
from cockpit.model.cluster import Enforce
from cockpit.model.reasons import LimitReached
from cockpit.model.spec import PriorityWord
from cockpit.sched.enforcement import enforced

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cockpit.engine.machine import Machine
    from cockpit.model.ids import JobId

_MOST_NAMED = 20
"""Urgent jobs that a refusal lists."""


class Asking(NamedTuple):
    """Jobs of one kind that somebody wants to submit."""

    user: str
    account: str
    qos: str
    partition: str
    jobs: int


class _Bound(NamedTuple):
    holder: str
    limit: str
    allowed: int | None
    account: frozenset[str] | None
    """Whose jobs count; None: every account's."""
    user: str | None
    qos: str | None


def submission_limits(machine: Machine, asking: Asking, before: Iterable[Asking] = ()) -> LimitReached | None:
    """The first limit on queued and running jobs that these would pass; `before`: others of the same request."""
    if Enforce.LIMITS not in enforced(machine.state.cluster.enforce):
        return None
    charged = machine.indices.charged.groups()
    present = [Asking(user, account, qos, "", len(jobs)) for (account, user, qos), jobs in charged.items()]
    present += before
    for bound in _bounds(machine, asking):
        if bound.allowed is None:
            continue
        used = sum(each.jobs for each in present if _counts(bound, each))
        if used + asking.jobs > bound.allowed:
            return LimitReached(bound.holder, bound.limit, "", bound.allowed, used, asking.jobs)
    return None


def _counts(bound: _Bound, each: Asking) -> bool:
    return (
        (bound.account is None or each.account in bound.account)
        and bound.user in {None, each.user}
        and bound.qos in {None, each.qos}
    )


def _bounds(machine: Machine, asking: Asking) -> Iterator[_Bound]:
    accounts = machine.state.accounts
    if (qos := accounts.qos.get(asking.qos)) is not None:
        holder = f"qos {qos.name}"
        yield _Bound(holder, "GrpSubmitJobs", qos.limits.grp_submit, None, None, qos.name)
        own = frozenset({asking.account})
        yield _Bound(holder, "MaxSubmitJobsPerAccount", qos.max_submit_per_account, own, None, qos.name)
        yield _Bound(holder, "MaxSubmitJobsPerUser", qos.limits.max_submit, None, asking.user, qos.name)
    association = accounts.of(asking.account, asking.user, asking.partition) if asking.account else None
    if association is None:
        return
    line = (association, *accounts.above(association))
    yield _own_bound(line, asking)
    for each in line:
        accounts_below = frozenset(_below(machine, each.account))
        yield _Bound(_who(each), "GrpSubmitJobs", each.limits.grp_submit, accounts_below, each.user or None, None)


def _own_bound(line: tuple[Association, ...], asking: Asking) -> _Bound:
    """The nearest `max_submit` bounds the user's own jobs in the account."""
    nearest = next((each for each in line if each.limits.max_submit is not None), line[0])
    limits: Limits = nearest.limits
    return _Bound(_who(nearest), "MaxSubmitJobs", limits.max_submit, frozenset({asking.account}), asking.user, None)


def _who(each: Association) -> str:
    return f"user {each.user} of account {each.account}" if each.user else f"account {each.account}"


def _below(machine: Machine, account: str) -> Iterator[str]:
    """The account and all below it."""
    yield account
    for each in machine.state.accounts.children.get(account, ()):
        if not each.user:
            yield from _below(machine, each.account)


def urgent_error(machine: Machine, user: str, project: str, more: int, but: Iterable[JobId] = ()) -> str | None:
    """Why `more` of a user's jobs in a project may not be urgent as well, and which ones are; `but` do not count."""
    bound = machine.state.cluster.urgent_jobs
    using = [job for job in machine.indices.urgent.of((user, project)) if job not in set(but)]
    if bound is None or not more or len(using) + more <= bound:
        return None
    named = ", ".join(map(str, using[:_MOST_NAMED])) + (" …" if len(using) > _MOST_NAMED else "")
    now = f"now they are {named}" if using else f"this asks for {more}"
    return (
        f"priority: at most {bound} of a user's jobs in a project may be urgent, queued and running together; {now}. "
        "Wait until one ends, or set one to normal"
    )


def is_urgent(word: PriorityWord) -> bool:
    """Whether a job of that word counts to the bound."""
    return word is not PriorityWord.NORMAL
