"""How many jobs somebody may have, queued and running: limits on submission, what a QOS
denies, and the bound on urgent jobs."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from cockpit.engine.views.redaction import shown_to
from cockpit.engine.views.rows import HIDDEN
from cockpit.model.accounts import Association, Limits, QosFlag
from cockpit.model.cluster import Enforce
from cockpit.model.ids import JobId
from cockpit.model.job import Job
from cockpit.model.reasons import LimitReached
from cockpit.model.spec import PriorityWord
from cockpit.sched.rules.enforcement import enforced
from cockpit.sched.rules.limits import in_order
from cockpit.sched.rules.partitions import WHOLE_CLUSTER
from cockpit.sched.rules.rulebook import Rulebook

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cockpit.engine.access import Actor
    from cockpit.engine.machine import Machine
    from cockpit.engine.state import ClusterState
    from cockpit.engine.submission.account_defaults import Charge
    from cockpit.model.ids import Millis
    from cockpit.model.job import Submitter

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
    partitions: frozenset[str] | None = None
    """Where jobs count; None: everywhere."""


def submission_limits(machine: Machine, asking: Asking, before: Iterable[Asking] = ()) -> LimitReached | None:
    """The first limit on queued and running jobs that these would pass; `before`: others of the same request."""
    if Enforce.LIMITS not in enforced(machine.state.cluster.enforce):
        return None
    before = tuple(before)
    for bound in _bounds(machine, asking):
        if bound.allowed is None:
            continue
        present = _present(machine, in_partitions=bound.partitions is not None)
        used = sum(each.jobs for each in (*present, *before) if _counts(bound, each))
        if used + asking.jobs > bound.allowed:
            return LimitReached(bound.holder, bound.limit, "", bound.allowed, used, asking.jobs)
    return None


def _present(machine: Machine, *, in_partitions: bool) -> Iterator[Asking]:
    """The jobs that are queued or run."""
    jobs = machine.state.jobs
    for (account, user, qos), named in machine.indices.charged.groups().items():
        if not in_partitions:
            yield Asking(user, account, qos, "", len(named))
            continue
        places = Counter(_partition(jobs[each]) for each in named)
        yield from (Asking(user, account, qos, partition, count) for partition, count in places.items())


def _partition(job: Job) -> str:
    """Where it runs, else the first where it may."""
    return job.attempt.partition if job.attempt is not None else next(iter(job.partitions), "")


def denied_by_qos(machine: Machine, charged: Charge, owner: Submitter, now: Millis) -> LimitReached | None:
    """Under `DenyOnLimit`: what the jobs break by themselves, in every partition where they may run."""
    state = machine.state
    if not any(qos.has(QosFlag.DENY_ON_LIMIT) for qos in state.accounts.qos.values()):
        return None
    rules = Rulebook(state.cluster, state.accounts, 0)
    asked = Job(
        id=JobId(0),
        spec=charged.spec,
        submitter=owner,
        project="",
        submitted_at=now,
        state_since=now,
        account=charged.account,
        qos=charged.qos,
    )
    told = [rules.denied(asked, partition) for partition in charged.partitions or (WHOLE_CLUSTER,)]
    return None if None in told else told[0]


def _counts(bound: _Bound, each: Asking) -> bool:
    return (
        (bound.account is None or each.account in bound.account)
        and bound.user in {None, each.user}
        and bound.qos in {None, each.qos}
        and (bound.partitions is None or each.partition in bound.partitions)
    )


def _bounds(machine: Machine, asking: Asking) -> Iterator[_Bound]:
    accounts = machine.state.accounts
    yield from _bounds_of_qos(machine.state, asking)
    association = accounts.of(asking.account, asking.user, asking.partition) if asking.account else None
    if association is None:
        return
    line = (association, *accounts.above(association))
    yield _own_bound(line, asking)
    for each in line:
        accounts_below = frozenset(_below(machine, each.account))
        yield _Bound(_who(each), "GrpSubmitJobs", each.limits.grp_submit, accounts_below, each.user or None, None)


def _bounds_of_qos(state: ClusterState, asking: Asking) -> Iterator[_Bound]:
    """Of the partition's QOS and the job's; what the first bounds, the second does not."""
    where = state.cluster.partition(asking.partition)
    theirs = state.accounts.qos.get(where.qos) if where is not None else None
    taken = set()
    for holder, qos in in_order(state.accounts.qos.get(asking.qos), theirs, asking.partition):
        through = qos is theirs and qos.name != asking.qos
        served = frozenset(each.name for each in state.cluster.partitions if each.qos == qos.name) if through else None
        only, own = None if through else qos.name, frozenset({asking.account})
        for bound in (
            _Bound(holder, "GrpSubmitJobs", qos.limits.grp_submit, None, None, only, served),
            _Bound(holder, "MaxSubmitJobsPerAccount", qos.max_submit_per_account, own, None, only, served),
            _Bound(holder, "MaxSubmitJobsPerUser", qos.limits.max_submit, None, asking.user, only, served),
        ):
            if bound.allowed is not None and bound.limit not in taken:
                taken.add(bound.limit)
                yield bound


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


def urgent_error(
    machine: Machine, actor: Actor, user: str, project: str, more: int, but: Iterable[JobId] = ()
) -> str | None:
    """Why `more` of a user's jobs in a project may not be urgent as well, and which ones are, as the actor may know
    them; `but` do not count."""
    bound = machine.state.cluster.urgent_jobs
    using = [job for job in machine.indices.urgent.of((user, project)) if job not in set(but)]
    if bound is None or not more or len(using) + more <= bound:
        return None
    shown = shown_to(actor, machine.state.jobs)
    named = ", ".join(str(shown(job) or HIDDEN) for job in using[:_MOST_NAMED]) + (
        " …" if len(using) > _MOST_NAMED else ""
    )
    now = f"now they are {named}" if using else f"this asks for {more}"
    return (
        f"priority: at most {bound} of a user's jobs in a project may be urgent, queued and running together; {now}. "
        "Wait until one ends, or set one to normal"
    )


def is_urgent(word: PriorityWord) -> bool:
    """Whether a job of that word counts to the bound."""
    return word is not PriorityWord.NORMAL
