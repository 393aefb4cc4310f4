"""Computes the priority of one job at one moment: the factors that depend on the cluster's rules, accounts and nodes
(`PriorityContext`), then all of them with age and usage (`PriorityCalculator`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar

import msgspec

from cockpit.model.accounts import Accounts, AssocKey, Usage
from cockpit.model.cluster import Cluster, PriorityFlag, Tres
from cockpit.model.ids import Millis, NodeName
from cockpit.model.job import OCCUPYING, Job
from cockpit.model.node import Node
from cockpit.model.priority import Breakdown, FactorName, Part
from cockpit.model.spec import JobSpec
from cockpit.sched.nodes.eligibility import suits
from cockpit.sched.nodes.node_free import node_free_of, shortfall
from cockpit.sched.priority.factors import Size, age, clamped, job_size, job_size_by_time, normalised, weighted_sum
from cockpit.sched.priority.share_tree import ShareTree, classic_share, fair_tree
from cockpit.sched.rules.partitions import nodes_of
from cockpit.sched.rules.tres import BILLING, CPU, MEMORY, NODE, allocated, billed, capacity, requested
from cockpit.sched.shape import shape_of

_FIRST_TRES = (CPU, MEMORY, NODE, BILLING)
"""Slurm adds resources in the order of their ids: these first, then all others."""

_Name = TypeVar("_Name", bound=str)


class PriorityInputs(msgspec.Struct, frozen=True):
    """The factors of a job in a partition that neither time nor usage changes, and the keys of the two that do."""

    since: Millis | None
    """The moment from which age counts; None: not yet."""
    association: AssocKey | None
    """The association whose fair share counts; None: no association is charged."""
    assoc: float
    job_size: float
    partition: float
    qos: float
    site: int
    """The number that an administrator has added; its weight is 1."""
    tres: tuple[float, ...]
    """Factors of the weighted TRES, in the order of `PriorityContext.tres`."""


class PriorityContext:
    """The context holds until rules or nodes change; it caches the factors of equal requests."""

    def __init__(self, cluster: Cluster, accounts: Accounts, nodes: Mapping[NodeName, Node]) -> None:
        self.cluster = cluster
        self.priority = cluster.priority
        self.accounts = accounts
        self.tree = ShareTree(accounts)
        weights = cluster.priority.weights.tres
        known = [name for name in _FIRST_TRES if name in weights]
        self.tres = (*known, *(name for name in weights if name not in known))
        """The weighted TRES, in the order in which they are added."""
        self.tiers = {each.name: each.priority_tier for each in cluster.partitions}
        self._nodes = nodes
        workers = capacity(nodes_of(cluster, "", nodes.values()))
        self._cluster_size = Size(workers.get(NODE, 0.0), workers.get(CPU, 0.0))
        # a cluster without partitions has the unnamed one
        jobs = {each.name: each.priority_job_factor for each in cluster.partitions} or {"": 1}
        self._partitions = _normalised(jobs, max(1, *jobs.values()), raw=self._raw(PriorityFlag.NO_NORMAL_PART))
        qos = {name: each.priority for name, each in accounts.qos.items()}
        self._qos = _normalised(qos, max(qos.values(), default=0), raw=self._raw(PriorityFlag.NO_NORMAL_QOS))
        users = {key: accounts.priority_of(each) for key, each in accounts.associations.items()}
        self._assoc = _normalised(users, max(users.values(), default=0), raw=self._raw(PriorityFlag.NO_NORMAL_ASSOC))
        self._accrues_always = self.has(PriorityFlag.ACCRUE_ALWAYS)
        self._by_time = self.has(PriorityFlag.SMALL_RELATIVE_TO_TIME)
        self._totals: dict[str, Tres] = {}
        self._requests: dict[object, tuple[Tres, tuple[float, ...]]] = {}
        self._exclusive: dict[object, float] = {}

    def has(self, flag: PriorityFlag) -> bool:
        return flag in self.priority.flags

    def inputs(self, job: Job, partition: str) -> PriorityInputs:
        """Return what the priority of the job in the partition depends on, beside time and usage."""
        association = self.accounts.of(job.account, job.submitter.name, partition) if job.account else None
        amounts, tres = self._resources(job, partition)
        return PriorityInputs(
            since=job.submitted_at if self._accrues_always else job.accrues_from,
            association=association.key if association is not None else None,
            assoc=self._assoc[association.key] if association is not None else 0.0,
            job_size=self._job_size(job, partition, amounts[CPU]),
            partition=self._partitions.get(partition, 0.0),
            qos=self._qos.get(job.qos, 0.0),
            site=job.site_factor,
            tres=tres,
        )

    def parts(self, inputs: PriorityInputs, age: float, fairshare: float) -> tuple[Part, ...]:
        """Return every factor with its weight, in the order of `FactorName`."""
        weights = self.priority.weights
        named = (
            (FactorName.SITE, float(inputs.site), 1),
            (FactorName.AGE, age, weights.age),
            (FactorName.ASSOC, inputs.assoc, weights.assoc),
            (FactorName.FAIRSHARE, fairshare, weights.fairshare),
            (FactorName.JOB_SIZE, inputs.job_size, weights.job_size),
            (FactorName.PARTITION, inputs.partition, weights.partition),
            (FactorName.QOS, inputs.qos, weights.qos),
        )
        tres = ((name, raw, weights.tres[name]) for name, raw in zip(self.tres, inputs.tres, strict=True))
        return (
            *(Part(name, raw, float(weight), raw * weight) for name, raw, weight in named),
            *(Part(FactorName.TRES, raw, weight, raw * weight, name) for name, raw, weight in tres),
        )

    def _raw(self, flag: PriorityFlag) -> bool:
        return self.has(flag) or self.has(PriorityFlag.NO_NORMAL_ALL)

    def _resources(self, job: Job, partition: str) -> tuple[Tres, tuple[float, ...]]:
        """Return the allocated amounts of a running job, else the requested ones (of the first alternative), and the
        weighted factors."""
        if job.attempt is not None and job.state in OCCUPYING:
            amounts = allocated(job.attempt.placement, self._nodes)
            return amounts, tuple(self._tres(amounts, partition))
        # waiting jobs of equal requests share their factors; a running job holds its own nodes
        key = (partition, job.spec.nodes, job.spec.specs[0])
        if key not in self._requests:
            amounts = requested(job.spec)
            self._requests[key] = amounts, tuple(self._tres(amounts, partition))
        return self._requests[key]

    def _tres(self, amounts: Tres, partition: str) -> Iterator[float]:
        raw = self._raw(PriorityFlag.NO_NORMAL_TRES)
        totals = self._partition_totals(partition)
        for name in self.tres:
            value = self._billed(amounts, partition) if name == BILLING else amounts.get(name, 0.0)
            total = totals.get(name, 0.0)
            yield value if raw else min(1.0, value / total) if total else 0.0  # more than all never starts here

    def _partition_totals(self, partition: str) -> Tres:
        if partition not in self._totals:
            amounts = capacity(nodes_of(self.cluster, partition, self._nodes.values()))
            self._totals[partition] = amounts | {BILLING: self._billed(amounts, partition)}
        return self._totals[partition]

    def _billed(self, amounts: Tres, partition: str) -> float:
        """Return the billing as a TRES, which Slurm truncates to an integer."""
        return float(int(billed(amounts, self.cluster, partition)))

    def _job_size(self, job: Job, partition: str, cpus: float) -> float:
        spec, small = job.spec, self.priority.favor_small
        if spec.exclusive and job.state not in OCCUPYING:
            cpus = self._cpus_of_whole_nodes(spec, partition)
        size = Size(float(spec.nodes), cpus)
        if self._by_time:
            return job_size_by_time(size, self._cluster_size, spec.time_limit_seconds, small=small)
        return job_size(size, self._cluster_size, small=small)

    def _cpus_of_whole_nodes(self, spec: JobSpec, partition: str) -> float:
        """Return the CPUs of an exclusive job that waits: those of the biggest nodes that it fits, as Slurm sets them
        when it tries to start the job."""
        shape = shape_of(spec)
        if (partition, shape) not in self._exclusive:
            fitting = [
                node.cpus
                for node in nodes_of(self.cluster, partition, self._nodes.values())
                if suits(node, shape)
                and (not shape.node_names or node.name in shape.node_names)
                and shortfall(node_free_of(node, 0, 0, ()), shape.specs[0], exclusive=True) is None
            ]
            biggest = sorted(fitting, reverse=True)[: shape.nodes]
            enough = len(biggest) == shape.nodes
            self._exclusive[partition, shape] = float(sum(biggest)) if enough else requested(spec)[CPU]
        return self._exclusive[partition, shape]


def _normalised(priorities: Mapping[_Name, int], most: int, *, raw: bool) -> dict[_Name, float]:
    return {name: normalised(value, most, raw=raw) for name, value in priorities.items()}


Shares = Mapping[AssocKey, float]
"""Fair-share factors by association."""


class PriorityCalculator:
    """The calculator holds for every job until rules, nodes or usage change."""

    def __init__(self, context: PriorityContext, shares: Shares, at: Millis) -> None:
        self.context = context
        self.shares = shares
        self.at = at
        """The last update of usage; ages count to it."""

    def breakdown(self, job: Job, partition: str) -> Breakdown:
        """Return the priority with all its factors; for a running job, by what it holds."""
        if job.direct_priority is not None:
            total = 0 if job.held_by else job.direct_priority
            return Breakdown(job.id, partition, total, (), job.spec.nice, direct=True)
        inputs = self.context.inputs(job, partition)
        fairshare = 0.0 if inputs.association is None else self.shares.get(inputs.association, 0.0)
        parts = self.context.parts(inputs, age(inputs.since, self.at, self.context.priority.max_age_seconds), fairshare)
        total = 0 if job.held_by else clamped(weighted_sum(parts, job.spec.nice))
        return Breakdown(job.id, partition, total, parts, job.spec.nice)


def shares_of(context: PriorityContext, usage: Mapping[AssocKey, Usage]) -> Shares:
    """Return the factors that the cluster's own scheduler reports, if it does; else those of Fair Tree, or of the
    classic formula if the cluster is configured so."""
    reported = {key: each.fair_share for key, each in usage.items() if each.fair_share is not None}
    # the cluster's scheduler has computed them, from usage that need not be known here in full
    if reported:
        return reported
    if context.priority.fair_tree:
        return fair_tree(context.tree, usage)
    return classic_share(
        context.tree,
        usage,
        dampening=context.priority.dampening_factor,
        depth_oblivious=context.has(PriorityFlag.DEPTH_OBLIVIOUS),
    )
