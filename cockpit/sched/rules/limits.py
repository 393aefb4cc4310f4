"""Finds the limits that bind the jobs of a user in an account, under a QOS, in a partition. Precedence as in Slurm.

Resource limits take the first value found in this order (slurm.schedmd.com/resource_limits.html): the partition's QOS,
the job's QOS (the other way round under its flag `OverPartQOS`), the user's association, the accounts above it. What no
QOS limits, every account on the way up limits for all jobs below it; `max_*` of the nearest account limits each of its
users.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from cockpit.model.accounts import Accounts, Association, Qos, QosFlag, ResourceLimits
from cockpit.model.cluster import Tres
from cockpit.sched.rules.tres import ONE, thousandths

JOBS = "jobs"
"""The name of the count of running jobs, in thousandths like all amounts."""
WALL = "wall"

Counter = tuple[str, ...]
"""The name of a use that is counted, and of the resource: `("qos/user", "high", "ann", "cpu")`."""


class PerJobLimit(msgspec.Struct, frozen=True):
    """A limit on each job by itself, which no waiting can satisfy."""

    limit: str
    """The limit's name in sacctmgr."""
    holder: str
    resource: str
    """A TRES; empty for the time limit, which is in seconds."""
    allowed: int
    """The bound in thousandths; for `MinTRESPerJob` the least, else the most."""


class Running(msgspec.Struct, frozen=True):
    """A limit on what runs at once."""

    limit: str
    holder: str
    resource: str
    allowed: int
    counter: Counter


class Budget(msgspec.Struct, frozen=True):
    """A limit on decayed usage: minutes of a TRES, or seconds of wall clock (WALL)."""

    limit: str
    holder: str
    resource: str
    allowed: float
    counter: Counter
    """The usage that counts."""


class LimitScope(msgspec.Struct, frozen=True, cache_hash=True):
    """The limits that bind a set of jobs, and the counters to which these jobs count."""

    account: str = ""
    user: str = ""
    per_job: tuple[PerJobLimit, ...] = ()
    running: tuple[Running, ...] = ()
    budgets: tuple[Budget, ...] = ()
    counters: tuple[Counter, ...] = ()
    """The counters to which the jobs count, also where another limit has precedence."""
    charged: tuple[Counter, ...] = ()
    """The counters whose minutes the jobs use up."""
    factor: float = 1.0
    """The QOS's usage factor under `UsageFactorSafe`: what a minute counts to budgets and time limits."""
    denies: bool = False
    """Whether a job that by itself breaks a limit is refused at submission (`DenyOnLimit`)."""
    queue: str = ""
    """The leaf of the quota tree that the jobs belong to; empty: none."""


NO_SCOPE = LimitScope()
"""The scope of jobs that no limit binds."""


def scope(accounts: Accounts, association: Association, qos: Qos | None, partition: str, own: Qos | None) -> LimitScope:
    """Return the limits that bind an association's jobs. `qos`: the job's QOS; `own`: the partition's QOS."""
    line = (association, *accounts.above(association))
    several = in_order(qos, own, partition)
    account, user = association.account, association.user
    return LimitScope(
        account,
        user,
        tuple(_per_job_limits(line, several)),
        tuple(_running(line, several, account, user)),
        tuple(_budgets(line, several, free=qos is not None and qos.usage_factor == 0)),
        tuple(dict.fromkeys(_counters(line, several, account, user))),
        tuple((*holder, resource) for holder, limits in _groups(line, several) for resource in limits.grp_tres_minutes),
        qos.usage_factor if qos is not None and qos.has(QosFlag.USAGE_FACTOR_SAFE) else 1.0,
        any(each.has(QosFlag.DENY_ON_LIMIT) for _, each in several),
    )


def association_name(association: Association) -> str:
    """Return the association's name as a reason shows it."""
    if not association.user:
        return f"account {association.account}"
    where = f" in partition {association.partition}" if association.partition else ""
    return f"user {association.user} of account {association.account}{where}"


Held = tuple[str, Qos]
"""The name of a QOS as a reason shows it, and the QOS."""


def in_order(qos: Qos | None, own: Qos | None, partition: str) -> tuple[Held, ...]:
    """Return the QOS that bind the job, the one with precedence first."""
    both = [(f"qos {own.name} of partition {partition}", own)] if own else []
    if qos is not None and (own is None or own.name != qos.name):
        both.append((f"qos {qos.name}", qos))
        if qos.has(QosFlag.OVER_PART_QOS):
            both.reverse()
    return tuple(both)


def _per_job_limits(line: tuple[Association, ...], several: tuple[Held, ...]) -> Iterator[PerJobLimit]:
    """Yield the limits on each single job; of limits of one name and resource the first holder has precedence."""
    holders = [
        *((name, qos.limits) for name, qos in several),
        *((association_name(each), each.limits) for each in line),
    ]
    taken = set()
    for holder, limits in holders:
        for limit, resource, allowed in _each_job(limits):
            if (limit, resource) not in taken:
                taken.add((limit, resource))
                yield PerJobLimit(limit, holder, resource, allowed)


def _each_job(limits: ResourceLimits) -> Iterator[tuple[str, str, int]]:
    if limits.max_wall_seconds is not None:
        yield "MaxWall", "", ONE * limits.max_wall_seconds
    yield from _limits_of("MaxTRESPerJob", limits.max_tres_per_job)
    yield from _limits_of("MaxTRESPerNode", limits.max_tres_per_node)
    yield from _limits_of("MinTRESPerJob", limits.min_tres_per_job)


def _running(line: tuple[Association, ...], several: tuple[Held, ...], account: str, user: str) -> Iterator[Running]:
    """Yield the limits on what runs at once, by precedence: QOS, the user in the account, then the accounts upwards."""
    taken = set()
    for holder, qos in several:
        for limit, resource, allowed, counter in _of_qos(qos, account, user):
            if (limit, resource) not in taken:
                taken.add((limit, resource))
                yield Running(limit, holder, resource, allowed, (*counter, resource))
    # a QOS's limit on the jobs of each user has precedence over the association's
    if ("MaxJobsPerUser", JOBS) not in taken and (most := _most_jobs(line)) is not None:
        # the nearest value on the way up is inherited, but it counts the jobs of the association itself
        yield Running("MaxJobs", association_name(most[0]), JOBS, ONE * most[1], (*_association_counter(line[0]), JOBS))
    for each in line:
        for limit, resource, allowed in _of_group(each.limits):
            if (limit, resource) not in taken:
                yield Running(limit, association_name(each), resource, allowed, (*_association_counter(each), resource))


def _of_qos(qos: Qos, account: str, user: str) -> Iterator[tuple[str, str, int, Counter]]:
    """Yield a QOS's limits on what runs at once, each with the counter of the jobs that count to it."""
    group, each_user, each_account = _group(qos), ("qos/user", qos.name, user), ("qos/account", qos.name, account)
    for limit, resource, allowed in _of_group(qos.limits):
        yield limit, resource, allowed, group
    for limit, most, counter in (
        ("MaxJobsPerAccount", qos.max_jobs_per_account, each_account),
        ("MaxJobsPerUser", qos.limits.max_jobs, each_user),
    ):
        if most is not None:
            yield limit, JOBS, ONE * most, counter
    for limit, resource, allowed in _limits_of("MaxTRESPerAccount", qos.max_tres_per_account):
        yield limit, resource, allowed, each_account
    for limit, resource, allowed in _limits_of("MaxTRESPerUser", qos.max_tres_per_user):
        yield limit, resource, allowed, each_user


def _of_group(limits: ResourceLimits) -> Iterator[tuple[str, str, int]]:
    if limits.grp_jobs is not None:
        yield "GrpJobs", JOBS, ONE * limits.grp_jobs
    yield from _limits_of("GrpTRES", limits.grp_tres)


def _most_jobs(line: Iterable[Association]) -> tuple[Association, int] | None:
    # `line` leads upwards: the first value set is the nearest one
    return next(((each, most) for each in line if (most := each.limits.max_jobs) is not None), None)


def _budgets(line: tuple[Association, ...], several: tuple[Held, ...], *, free: bool) -> Iterator[Budget]:
    """Yield the budgets. `free`: the QOS has usage factor 0, so minutes use nothing up."""
    taken = set()
    for holder, qos in several:
        for limit, resource, allowed in _of_usage(qos.limits, free=free):
            if (limit, resource) not in taken:
                taken.add((limit, resource))
                yield Budget(limit, holder, resource, allowed, (*_group(qos), resource))
    for each in line:
        for limit, resource, allowed in _of_usage(each.limits, free=free):
            if (limit, resource) not in taken:
                yield Budget(limit, association_name(each), resource, allowed, (*_association_counter(each), resource))


def _groups(line: tuple[Association, ...], several: tuple[Held, ...]) -> Iterator[tuple[Counter, ResourceLimits]]:
    """Yield every QOS and account that may limit all jobs below it together."""
    yield from ((_group(qos), qos.limits) for _, qos in several)
    yield from ((_association_counter(each), each.limits) for each in line)


def _of_usage(limits: ResourceLimits, *, free: bool) -> Iterator[tuple[str, str, float]]:
    if limits.grp_wall_seconds is not None:
        yield "GrpWall", WALL, limits.grp_wall_seconds
    if not free:
        for resource, minutes in limits.grp_tres_minutes.items():
            yield "GrpTRESMins", resource, minutes


def _counters(line: tuple[Association, ...], several: tuple[Held, ...], account: str, user: str) -> Iterator[Counter]:
    for _, qos in several:
        for _, resource, _, counter in _of_qos(qos, account, user):
            yield (*counter, resource)
    if _most_jobs(line) is not None:
        yield (*_association_counter(line[0]), JOBS)
    for each in line:
        for _, resource, _ in _of_group(each.limits):
            yield (*_association_counter(each), resource)


def _limits_of(limit: str, tres: Tres) -> Iterator[tuple[str, str, int]]:
    for resource, amount in tres.items():
        yield limit, resource, thousandths(amount)


def _group(qos: Qos) -> Counter:
    return "qos", qos.name


def _association_counter(association: Association) -> Counter:
    return "association", association.key
