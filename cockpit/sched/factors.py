"""The multifactor priority of one job in one partition, factor by factor, in doubles, exactly as Slurm counts it.

P = W_age x age + W_assoc x assoc + W_fs x fairshare + W_js x size + W_part x partition + W_qos x qos
+ sum of W_tres,i x tres_i + site - nice; below 1 it becomes 1 (0 means held), above 2^32 - 1 that; then truncated.
Source: Slurm's `priority_multifactor.c` (set_priority_factors, _get_priority_internal).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from cockpit.model.accounts import Accounts, AssocKey
from cockpit.model.cluster import Cluster, PriorityFlag, Tres
from cockpit.model.ids import Millis, NodeName
from cockpit.model.job import OCCUPYING, Job
from cockpit.model.node import Node
from cockpit.model.priority import FactorName, Part
from cockpit.sched.index import suits
from cockpit.sched.partitions import nodes_of
from cockpit.sched.room import room_of, shortfall
from cockpit.sched.shape import shape_of
from cockpit.sched.share_tree import ShareTree
from cockpit.sched.tres import BILLING, CPU, MEMORY, NODE, allocated, billed, capacity, requested

MOST = 2**32 - 1
_FIRST_TRES = (CPU, MEMORY, NODE, BILLING)
"""Slurm adds resources up in the order of their ids: these, then all others."""


class Claim(msgspec.Struct, frozen=True):
    """The raw factors of a job in a partition that neither time nor usage moves, and what finds the other two."""

    since: Millis | None
    """Age counts from here; None: not yet."""
    association: AssocKey | None
    """Who has the fair share; None: nobody is charged."""
    assoc: float
    job_size: float
    partition: float
    qos: float
    site: int
    """What an administrator added; its weight is 1."""
    tres: tuple[float, ...]
    """In the order of `Scale.tres`."""


class Scale:
    """What jobs are measured against: the cluster's rules, its accounts and its nodes."""

    def __init__(self, cluster: Cluster, accounts: Accounts, nodes: Mapping[NodeName, Node]) -> None:
        self.cluster = cluster
        self.priority = cluster.priority
        self.accounts = accounts
        self.tree = ShareTree(accounts)
        weights = cluster.priority.weights.tres
        known = [name for name in _FIRST_TRES if name in weights]
        self.tres = (*known, *(name for name in weights if name not in known))
        """The weighted resources, in the order in which they add up."""
        self.tiers = {each.name: each.priority_tier for each in cluster.partitions}
        self._nodes = nodes
        workers = capacity(nodes_of(cluster, "", nodes.values()))
        self._node_count, self._cpus = workers.get(NODE, 0.0), workers.get(CPU, 0.0)
        self._factors = {each.name: each.priority_job_factor for each in cluster.partitions} or {"": 1}
        self._most_factor = max(1, *self._factors.values())
        self._most_qos = max((each.priority for each in accounts.qos.values()), default=0)
        self._most_assoc = max((each.priority for each in accounts.associations.values()), default=0)
        self._totals: dict[str, Tres] = {}
        self._whole_cpus: dict[object, float] = {}

    def claim(self, job: Job, partition: str) -> Claim:
        association = self.accounts.of(job.account, job.submitter.name, partition) if job.account else None
        qos = self.accounts.qos.get(job.qos)
        amounts = self._amounts(job)
        return Claim(
            since=job.submitted_at if self.has(PriorityFlag.ACCRUE_ALWAYS) else job.accrues_from,
            association=association.key if association is not None else None,
            assoc=self._of_most(association.priority, self._most_assoc, PriorityFlag.NO_NORMAL_ASSOC)
            if association is not None
            else 0.0,
            job_size=self._job_size(job, partition, amounts),
            partition=self._of_most(self._factors.get(partition, 0), self._most_factor, PriorityFlag.NO_NORMAL_PART),
            qos=self._of_most(qos.priority, self._most_qos, PriorityFlag.NO_NORMAL_QOS) if qos is not None else 0.0,
            site=job.site_factor,
            tres=tuple(self._tres(amounts, partition)) if self.tres else (),
        )

    def parts(self, claim: Claim, age: float, fairshare: float) -> tuple[Part, ...]:
        """Every factor with its weight, in `FactorName`'s order."""
        weights = self.priority.weights
        named = (
            (FactorName.SITE, float(claim.site), 1),
            (FactorName.AGE, age, weights.age),
            (FactorName.ASSOC, claim.assoc, weights.assoc),
            (FactorName.FAIRSHARE, fairshare, weights.fairshare),
            (FactorName.JOB_SIZE, claim.job_size, weights.job_size),
            (FactorName.PARTITION, claim.partition, weights.partition),
            (FactorName.QOS, claim.qos, weights.qos),
        )
        tres = zip(self.tres, claim.tres, strict=True)
        return (
            *(Part(name, raw, float(weight), raw * weight) for name, raw, weight in named),
            *(Part(FactorName.TRES, raw, w := weights.tres[name], raw * w, name) for name, raw in tres),
        )

    def has(self, flag: PriorityFlag) -> bool:
        return flag in self.priority.flags

    def _of_most(self, value: int, most: int, raw: PriorityFlag) -> float:
        if self.has(raw) or self.has(PriorityFlag.NO_NORMAL_ALL):
            return float(value)
        return value / most if most else 0.0

    def _amounts(self, job: Job) -> Tres:
        """Allocated, else requested; of several node specs the first."""
        if job.attempt is not None and job.state in OCCUPYING:
            return allocated(job.attempt.placement, self._nodes)
        return requested(job.spec)

    def _tres(self, amounts: Tres, partition: str) -> Iterator[float]:
        raw = self.has(PriorityFlag.NO_NORMAL_TRES) or self.has(PriorityFlag.NO_NORMAL_ALL)
        totals = self._partition_totals(partition)
        for name in self.tres:
            value = self._billed(amounts, partition) if name == BILLING else amounts.get(name, 0.0)
            total = totals.get(name, 0.0)
            yield value if raw else value / total if total else 0.0

    def _partition_totals(self, partition: str) -> Tres:
        if partition not in self._totals:
            amounts = capacity(nodes_of(self.cluster, partition, self._nodes.values()))
            self._totals[partition] = amounts | {BILLING: self._billed(amounts, partition)}
        return self._totals[partition]

    def _billed(self, amounts: Tres, partition: str) -> float:
        """As a resource, billing is whole."""
        return float(int(billed(amounts, self.cluster, partition)))

    def _job_size(self, job: Job, partition: str, amounts: Tres) -> float:
        if not self._node_count or not self._cpus:
            return 0.0
        exclusive = job.spec.exclusive and job.state not in OCCUPYING
        cpus = self._cpus_of_whole_nodes(job, partition) if exclusive else amounts[CPU]
        return min(1.0, max(0.0, self._size(float(job.spec.nodes), cpus, job.spec.time_limit_seconds)))

    def _size(self, nodes: float, cpus: float, limit_seconds: int) -> float:
        small = self.priority.favor_small
        if self.has(PriorityFlag.SMALL_RELATIVE_TO_TIME):
            minutes = -(-limit_seconds // 60)
            size = max(nodes * self._cpus / self._node_count, cpus) / minutes / self._cpus
            return 1.0 - size if small else size
        if small:
            return ((self._node_count - nodes) / self._node_count + (self._cpus - cpus) / self._cpus) / 2
        return (nodes / self._node_count + cpus / self._cpus) / 2

    def _cpus_of_whole_nodes(self, job: Job, partition: str) -> float:
        """What an attempt to start an exclusive job sets in Slurm: those of the biggest nodes that it fits."""
        shape = shape_of(job.spec)
        if (partition, shape) not in self._whole_cpus:
            fitting = [
                node.cpus
                for node in nodes_of(self.cluster, partition, self._nodes.values())
                if suits(node, shape)
                and (not shape.node_names or node.name in shape.node_names)
                and shortfall(room_of(node, 0, 0, ()), shape.specs[0], exclusive=True) is None
            ]
            biggest = sorted(fitting, reverse=True)[: shape.nodes]
            enough = len(biggest) == shape.nodes
            self._whole_cpus[partition, shape] = float(sum(biggest)) if enough else requested(job.spec)[CPU]
        return self._whole_cpus[partition, shape]


def age(since: Millis | None, at: Millis, max_age_seconds: int) -> float:
    """The part of PriorityMaxAge that has passed at `at`, at most 1. Ages count to the last pass over usage."""
    if since is None:
        return 0.0
    return min(max(0, at - since) / max(1, 1000 * max_age_seconds), 1.0)


def weighted_sum(parts: Iterable[Part], nice: int) -> float:
    """The priority before it is clamped and truncated, added up in Slurm's order (`sum` would round differently)."""
    named = tres = site = 0.0
    for part in parts:
        if part.name is FactorName.TRES:
            tres += part.contribution
        elif part.name is FactorName.SITE:
            site = part.contribution
        else:
            named += part.contribution
    return named + tres + site - nice


def clamped(priority: float) -> int:
    """1 to 2^32 - 1, truncated."""
    return int(min(max(priority, 1.0), float(MOST)))
