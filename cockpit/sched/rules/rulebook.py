"""The cluster's rules in a form that can be tested quickly.

It answers which reasons the rules alone give, which limits bind a job, which jobs a job may preempt, and what happens
to a preempted job.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy

from msgspec.structs import replace

from cockpit.model.accounts import NORMAL, Accounts, Association, Qos
from cockpit.model.attempt import EvictionMode
from cockpit.model.cluster import Cluster, Enforce, Partition, PreemptType
from cockpit.model.job import Job
from cockpit.model.quota import QuotaTree
from cockpit.model.reasons import LimitReached, NoAssociation, QosRefused, Reason, never_starts
from cockpit.model.spec import JobSpec
from cockpit.sched.rules import partitions
from cockpit.sched.rules.limits import JOBS, NO_SCOPE, LimitScope, PerJobLimit, scope
from cockpit.sched.rules.quotas import NO_LEAF, QUOTA, Quotas
from cockpit.sched.rules.tres import BILLING, ONE, Amounts, asked, billed
from cockpit.sched.shape import Shape, shape_of

WITHIN = "WITHIN"
"""The PreemptMode word by which jobs of one QOS preempt each other, in the order of their priorities."""
GANG = "GANG"
NO_PARTITION = Partition(name="")
NO_QOS = Qos(name="")
_MODES = {mode.value.upper(): mode for mode in (EvictionMode.CANCEL, EvictionMode.REQUEUE, EvictionMode.SUSPEND)}


def preemption_key(cluster: Cluster, accounts: Accounts, job: Job, partition: str) -> str:
    """Return a key of what decides which jobs it may preempt, beside its partition; empty: none."""
    match cluster.preemption.kind:
        case PreemptType.QOS:
            own = accounts.qos.get(job.qos, NO_QOS)
            return own.name if own.preempt or WITHIN in cluster.preemption.mode else ""
        case PreemptType.PARTITION:
            least = min((each.priority_tier for each in cluster.partitions), default=1)
            tier = (cluster.partition(partition) or NO_PARTITION).priority_tier
            # Below the least tier there is nothing to preempt.
            return f"tier {tier}" if tier > least else ""
    return ""


def mode_of(cluster: Cluster, accounts: Accounts, job: Job) -> EvictionMode | None:
    """Return what happens to the running job when it is preempted; None: it cannot be.

    A partition's own mode counts with preempt/partition_prio, a QOS's with preempt/qos, where OFF is the same as no
    mode. A job that resumes from checkpoints, or is suspended below its minimum, is not cancelled but requeued.
    """
    mode = _configured_mode(cluster, accounts, job)
    waits = job.spec.resume is not None or job.spec.suspends
    return EvictionMode.REQUEUE if mode is EvictionMode.CANCEL and waits else mode


def _configured_mode(cluster: Cluster, accounts: Accounts, job: Job) -> EvictionMode | None:
    preemption = cluster.preemption
    usual = next((_MODES[word] for word in preemption.mode if word in _MODES), None)
    if preemption.kind == PreemptType.QOS:
        return _MODES.get(accounts.qos.get(job.qos, NO_QOS).preempt_mode, usual)
    own = partition_of(cluster, job).preempt_mode
    # GANG alone only lets jobs take turns.
    return _MODES.get(own) if own not in ("", GANG) else usual


def partition_of(cluster: Cluster, job: Job) -> Partition:
    """Return the partition in which the job runs."""
    name = job.attempt.partition if job.attempt is not None else ""
    return cluster.partition(name) or NO_PARTITION


class Rulebook:
    """A version of the rules, with caches of what follows from them."""

    def __init__(self, cluster: Cluster, accounts: Accounts, version: int, quota: QuotaTree | None = None) -> None:
        self.version = version
        self.cluster = cluster
        self.accounts = accounts
        self.quotas = Quotas(quota)
        self.enforced = enforced(cluster.enforce)
        self.safe = Enforce.SAFE in self.enforced
        self.binding = Enforce.LIMITS in self.enforced or quota is not None
        """Whether there may be limits on running jobs for any user."""
        self.may_evict = cluster.preemption.kind != PreemptType.NONE or bool(self.quotas.guarantees)
        """Whether some rule lets a job evict others (preemption or guaranteed quota)."""
        self.distinguishes_owners = bool(self.enforced or self.binding or self.may_evict or cluster.partitions)
        """Whether two jobs with the same request may be treated differently because of their user, account, QOS or
        partition."""
        self._forget()

    def _forget(self) -> None:
        self.requested = _RequestedAmounts(self)
        self._scopes: dict[tuple[str, str, str, str, str], LimitScope] = {}

    def with_own_caches(self) -> Rulebook:
        """Return the same rules with caches of their own."""
        other = copy(self)
        other._forget()  # noqa: SLF001 - same class
        return other

    def scope(self, job: Job, partition: str) -> LimitScope:
        """Return the limits that bind the job in that partition."""
        if not self.binding:
            return NO_SCOPE
        leaf = self.quotas.leaf(job.project)
        # everything that a scope depends on: jobs of one owner share it
        key = (job.account, job.submitter.name, job.qos, partition, leaf)
        if key not in self._scopes:
            self._scopes[key] = self._scope(*key)
        return self._scopes[key]

    def with_cluster(self, cluster: Cluster) -> Rulebook:
        """Return the same rules with another preemption configuration."""
        other = self.with_own_caches()
        other.cluster = cluster
        other.may_evict = cluster.preemption.kind != PreemptType.NONE or bool(self.quotas.guarantees)
        return other

    def preemption_key(self, job: Job, partition: str) -> str:
        """Return a key of what decides which jobs the job may evict; empty: none."""
        leaf = self.quotas.leaf(job.project) if self.quotas.guarantees else NO_LEAF
        return " ".join(filter(None, (preemption_key(self.cluster, self.accounts, job, partition), leaf)))

    def refusal(self, job: Job, partition: str) -> Reason | None:
        """Return the first rule that stops the job whatever runs and is free: partition, association, QOS, and the
        limits on a single job. A reason that passes, such as a partition that is down, comes after all others."""
        qos = self.accounts.qos.get(job.qos)
        refused = partitions.refusal(self.cluster, partition, job, qos)
        if refused is not None and never_starts(refused):
            return refused
        # a partition that is down comes back: reasons that never pass say more
        never = self._no_permission(job, partition) or self._too_much(job, self.scope(job, partition), partition)
        return never or refused

    def denied(self, job: Job, partition: str) -> LimitReached | None:
        """Return the first limit on resources that the job by itself breaks, under `DenyOnLimit`. As in Slurm
        (acct_policy.c, `_qos_policy_validate`), limits on the number of jobs and on usage do not count."""
        bound = self.scope(job, partition)
        if not bound.denies:
            return None
        # The quota tree is not Slurm's, and its flag says nothing about it.
        limits = (each for each in bound.running if each.limit != QUOTA)
        whole = (PerJobLimit(each.limit, each.holder, each.resource, each.allowed) for each in limits)
        on_resources = tuple(each for each in whole if each.resource != JOBS)
        return self._too_much(job, replace(bound, per_job=(*bound.per_job, *on_resources)), partition)

    def billed(self, amounts: Amounts, partition: str) -> Amounts:
        """Return the amounts with their billing."""
        return amounts | {BILLING: round(billed(amounts, self.cluster, partition))}

    def _scope(self, account: str, user: str, qos: str, partition: str, leaf: str) -> LimitScope:
        bound = self._limited(account, user, qos, partition) if Enforce.LIMITS in self.enforced else NO_SCOPE
        return bound if leaf == NO_LEAF else self.quotas.joined(bound, leaf)

    def _limited(self, account: str, user: str, qos: str, partition: str) -> LimitScope:
        """Return the limits of accounts and QOS."""
        association = self.accounts.of(account, user, partition)
        if association is None:
            return NO_SCOPE
        where = self.cluster.partition(partition)
        # the partition's QOS binds its jobs beside their own
        own = self.accounts.qos.get(where.qos) if where is not None and where.qos else None
        return scope(self.accounts, association, self.accounts.qos.get(qos), partition, own)

    def _no_permission(self, job: Job, partition: str) -> Reason | None:
        """Return why the owner may not use the account, partition or QOS; None: they may, or it is not enforced."""
        if Enforce.ASSOCIATIONS not in self.enforced:
            return None
        association = self.accounts.of(job.account, job.submitter.name, partition)
        if association is None:
            bound = self.accounts.is_bound(job.account, job.submitter.name)
            return NoAssociation(job.submitter.name, job.account, partition if bound else "")
        allowed = allowed_qos(self.accounts, association)
        if Enforce.QOS in self.enforced and (job.qos or NORMAL) not in allowed:
            return QosRefused(job.qos, allowed)
        return None

    def _too_much(self, job: Job, bound: LimitScope, partition: str) -> LimitReached | None:
        """Return the first limit that each of the job's alternatives breaks, as the first alternative breaks it."""
        if not bound.per_job:
            return None
        broken = [
            next((limit for each in bound.per_job if (limit := _broken(each, job.spec, bound.factor, amounts))), None)
            for amounts in self.requested[shape_of(job.spec, partition)]
        ]
        return None if None in broken else broken[0]


class _RequestedAmounts(dict[Shape, list[Amounts]]):
    """A cache of the amounts that each alternative of a shape requests, with billing. Entries are made on first
    access."""

    def __init__(self, rules: Rulebook) -> None:
        super().__init__()
        self._rules = rules

    def __missing__(self, shape: Shape) -> list[Amounts]:
        whole = [asked(spec, shape.nodes, shape.helpers, shape.spread) for spec in shape.specs]
        for each in shape.components:
            other = asked(each.specs[0], each.nodes, each.helpers, each.spread)
            whole = [{name: one.get(name, 0) + other.get(name, 0) for name in {*one, *other}} for one in whole]
        amounts = self[shape] = [self._rules.billed(each, shape.partition) | {JOBS: ONE} for each in whole]
        return amounts


def _broken(bound: PerJobLimit, job: JobSpec, factor: float, amounts: Amounts) -> LimitReached | None:
    """Return the limit if the job breaks it. `factor`: the usage factor, by which seconds are multiplied."""
    if not bound.resource:
        wanted = round(ONE * job.time_limit_seconds * factor)
    else:
        wanted = amounts.get(bound.resource, 0)
        if bound.limit == "MaxTRESPerNode":
            # the requested amounts are those of all nodes
            wanted //= job.least_nodes
    within = wanted >= bound.allowed if bound.limit == "MinTRESPerJob" else wanted <= bound.allowed
    if within:
        return None
    return LimitReached(bound.holder, bound.limit, bound.resource, bound.allowed / ONE, 0, wanted / ONE)


_IMPLIES = {
    Enforce.ASSOCIATIONS: (),
    Enforce.LIMITS: (Enforce.ASSOCIATIONS,),
    Enforce.QOS: (Enforce.ASSOCIATIONS,),
    Enforce.SAFE: (Enforce.ASSOCIATIONS, Enforce.LIMITS),
}
"""The words that each word implies. Source: slurm.conf(5), AccountingStorageEnforce."""


def enforced(written: Iterable[Enforce]) -> frozenset[Enforce]:
    """Return the configured words with all that they imply. Without any word nothing is enforced."""
    parts = frozenset(written)
    return parts.union(*(_IMPLIES[part] for part in parts))


def allowed_qos(accounts: Accounts, association: Association) -> tuple[str, ...]:
    """Return the QOS that an association may use: its own list, else that of the nearest account above with one."""
    lines = (association, *accounts.above(association))
    return next((line.qos for line in lines if line.qos), (NORMAL,))
