"""Checks how many jobs a user or account may have queued and running together (Slurm's MaxSubmitJobs and its kin).

Also checks the limits that a QOS with `DenyOnLimit` enforces at submission, and the bound on urgent jobs.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from cockpit.engine.views.redaction import shown_to
from cockpit.engine.views.rows import HIDDEN
from cockpit.model.accounts import Association, QosFlag, ResourceLimits
from cockpit.model.cluster import Enforce
from cockpit.model.ids import JobId
from cockpit.model.job import Job
from cockpit.model.reasons import LimitReached
from cockpit.model.spec import PriorityWord
from cockpit.sched.rules.limits import in_order
from cockpit.sched.rules.partitions import WHOLE_CLUSTER
from cockpit.sched.rules.rulebook import Rulebook, enforced

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cockpit.engine.access import Actor
    from cockpit.engine.machine import Machine
    from cockpit.engine.state import ClusterState
    from cockpit.engine.submission.account_defaults import Charge
    from cockpit.model.ids import Millis
    from cockpit.model.job import Submitter

_MOST_NAMED = 20
"""The most urgent jobs that a refusal lists."""


class SubmitRequest(NamedTuple):
    """A number of jobs that limits treat alike: about to be submitted, or queued and running already."""

    user: str
    account: str
    qos: str
    partition: str
    jobs: int


class _Bound(NamedTuple):
    """One limit on the number of queued and running jobs, and which jobs count to it."""

    holder: str
    """The association, QOS or partition that has the limit, as a refusal names it."""
    limit: str
    """sacctmgr's name of the limit."""
    allowed: int | None
    """The limit; None: there is none."""
    account: frozenset[str] | None
    """The accounts whose jobs count; None: all."""
    user: str | None
    """The user whose jobs count; None: all users."""
    qos: str | None
    """The QOS whose jobs count; None: all."""
    partitions: frozenset[str] | None = None
    """The partitions whose jobs count; None: all."""


def submission_limits(
    machine: Machine, request: SubmitRequest, before: Iterable[SubmitRequest] = ()
) -> LimitReached | None:
    """Return the first limit on queued and running jobs that the request would exceed; None: it exceeds none.

    `before`: jobs of the same submission that were checked already, and are not in the state yet.
    """
    if Enforce.LIMITS not in enforced(machine.state.cluster.enforce):
        return None
    # Iterated once for each limit.
    before = tuple(before)
    for bound in _bounds(machine, request):
        if bound.allowed is None:
            continue
        present = _present(machine, in_partitions=bound.partitions is not None)
        used = sum(each.jobs for each in (*present, *before) if _counts(bound, each))
        if used + request.jobs > bound.allowed:
            return LimitReached(bound.holder, bound.limit, "", bound.allowed, used, request.jobs)
    return None


def _present(machine: Machine, *, in_partitions: bool) -> Iterator[SubmitRequest]:
    """Yield the numbers of queued and running jobs by account, user and QOS, and if wanted by partition too.

    Only the last needs a look at each job; few limits do.
    """
    jobs = machine.state.jobs
    for (account, user, qos), members in machine.indices.charged.groups().items():
        if not in_partitions:
            yield SubmitRequest(user, account, qos, "", len(members))
            continue
        counts = Counter(_partition(jobs[each]) for each in members)
        yield from (SubmitRequest(user, account, qos, partition, count) for partition, count in counts.items())


def _partition(job: Job) -> str:
    """Return the partition in which the job runs, else the first in which it may."""
    return job.attempt.partition if job.attempt is not None else next(iter(job.partitions), "")


def denied_by_qos(machine: Machine, charged: Charge, owner: Submitter, now: Millis) -> LimitReached | None:
    """Return the limit of a QOS with `DenyOnLimit` that the job alone exceeds; None: some partition would take it.

    `now`: the time of the submission.
    """
    state = machine.state
    if not any(qos.has(QosFlag.DENY_ON_LIMIT) for qos in state.accounts.qos.values()):
        return None
    # The rules judge jobs, and this one has no id yet; they read only what it asks for and whose it is.
    rules = Rulebook(state.cluster, state.accounts, 0)
    job = Job(
        id=JobId(0),
        spec=charged.spec,
        submitter=owner,
        project="",
        submitted_at=now,
        state_since=now,
        account=charged.account,
        qos=charged.qos,
    )
    denials = [rules.denied(job, partition) for partition in charged.partitions or (WHOLE_CLUSTER,)]
    return None if None in denials else denials[0]


def _counts(bound: _Bound, each: SubmitRequest) -> bool:
    """Tell whether these jobs count to the limit."""
    return (
        (bound.account is None or each.account in bound.account)
        and bound.user in {None, each.user}
        and bound.qos in {None, each.qos}
        and (bound.partitions is None or each.partition in bound.partitions)
    )


def _bounds(machine: Machine, request: SubmitRequest) -> Iterator[_Bound]:
    """Yield the limits that hold for the request: of its QOS first, then from its association up to the root."""
    accounts = machine.state.accounts
    yield from _bounds_of_qos(machine.state, request)
    association = accounts.of(request.account, request.user, request.partition) if request.account else None
    if association is None:
        return
    ancestry = (association, *accounts.above(association))
    yield _own_bound(ancestry, request)
    # `max_submit` above is the nearest value, `grp_submit` holds at every level, each counting all jobs below it.
    for each in ancestry:
        accounts_below = frozenset(_below(machine, each.account))
        yield _Bound(_who(each), "GrpSubmitJobs", each.limits.grp_submit, accounts_below, each.user or None, None)


def _bounds_of_qos(state: ClusterState, request: SubmitRequest) -> Iterator[_Bound]:
    """Yield the limits of the partition's QOS and the job's, in Slurm's order of precedence (`in_order`).

    A limit that the first of them sets hides that of the second.
    """
    partition = state.cluster.partition(request.partition)
    partition_qos = state.accounts.qos.get(partition.qos) if partition is not None else None
    limits_set = set()
    for holder, qos in in_order(state.accounts.qos.get(request.qos), partition_qos, request.partition):
        # A QOS that holds by way of the partition counts all jobs of its partitions, whatever QOS they name.
        by_partition = qos is partition_qos and qos.name != request.qos
        served = (
            frozenset(each.name for each in state.cluster.partitions if each.qos == qos.name) if by_partition else None
        )
        only, own = None if by_partition else qos.name, frozenset({request.account})
        for bound in (
            _Bound(holder, "GrpSubmitJobs", qos.limits.grp_submit, None, None, only, served),
            _Bound(holder, "MaxSubmitJobsPerAccount", qos.max_submit_per_account, own, None, only, served),
            _Bound(holder, "MaxSubmitJobsPerUser", qos.limits.max_submit, None, request.user, only, served),
        ):
            if bound.allowed is not None and bound.limit not in limits_set:
                limits_set.add(bound.limit)
                yield bound


def _own_bound(ancestry: tuple[Association, ...], request: SubmitRequest) -> _Bound:
    """Return the limit on the user's own jobs in the account: the nearest `max_submit` from the association up."""
    nearest = next((each for each in ancestry if each.limits.max_submit is not None), ancestry[0])
    limits: ResourceLimits = nearest.limits
    return _Bound(_who(nearest), "MaxSubmitJobs", limits.max_submit, frozenset({request.account}), request.user, None)


def _who(each: Association) -> str:
    """Return the association as a refusal names it."""
    return f"user {each.user} of account {each.account}" if each.user else f"account {each.account}"


def _below(machine: Machine, account: str) -> Iterator[str]:
    """Yield the account and all accounts below it."""
    yield account
    for each in machine.state.accounts.children.get(account, ()):
        if not each.user:
            yield from _below(machine, each.account)


def urgent_error(
    machine: Machine, actor: Actor, user: str, project: str, more: int, but: Iterable[JobId] = ()
) -> str | None:
    """Return the error if `more` urgent jobs of a user in a project would exceed the cluster's bound, else None.

    The error names the user's urgent jobs, as far as `actor` may see them. `but`: jobs that do not count.
    """
    bound = machine.state.cluster.urgent_jobs
    using = [job for job in machine.indices.urgent.of((user, project)) if job not in set(but)]
    if bound is None or not more or len(using) + more <= bound:
        return None
    shown = shown_to(actor, machine.state.jobs)
    # The hidden id is 0, so that a job which the actor may not see becomes "-".
    named = ", ".join(str(shown(job) or HIDDEN) for job in using[:_MOST_NAMED]) + (
        " …" if len(using) > _MOST_NAMED else ""
    )
    now = f"now they are {named}" if using else f"this asks for {more}"
    return (
        f"priority: at most {bound} of a user's jobs in a project may be urgent, queued and running together; {now}. "
        "Wait until one ends, or set one to normal"
    )


def is_urgent(word: PriorityWord) -> bool:
    """Tell whether a job with this priority word counts to the bound on urgent jobs."""
    return word is not PriorityWord.NORMAL
