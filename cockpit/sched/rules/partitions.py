"""Finds the nodes of a partition, and the jobs that it refuses."""

from __future__ import annotations

from collections.abc import Iterable

from cockpit.model.accounts import Qos, QosFlag
from cockpit.model.cluster import Cluster, Partition, PartitionState
from cockpit.model.fleet import OVER_CLUSTERS, BindingMode
from cockpit.model.ids import NodeName
from cockpit.model.job import Job
from cockpit.model.node import Node
from cockpit.model.reasons import PartitionRefuses, PartitionRule
from cockpit.model.spec import JobSpec

WHOLE_CLUSTER = ""
"""The unnamed partition without rules, for jobs submitted while the cluster had no partitions."""

_LIFTS_NOTHING = Qos(name="")
_STARTS_NOTHING = (PartitionState.DOWN, PartitionState.INACTIVE)


def memberships(cluster: Cluster, nodes: Iterable[Node]) -> list[tuple[str, ...]]:
    """Return for each node the names of its partitions in the cluster's order, the unnamed one first; none for login
    nodes."""
    named = [(each, frozenset(each.nodes)) for each in cluster.partitions]
    return [
        ()
        if for_login(cluster, node)
        else (WHOLE_CLUSTER, *(each.name for each, names in named if _has(each, names, node)))
        for node in nodes
    ]


def nodes_of(cluster: Cluster, partition: str, nodes: Iterable[Node]) -> tuple[Node, ...]:
    """Return the nodes that run the partition's jobs, in the cluster's order; login nodes are in none."""
    named = cluster.partition(partition)
    workers = (node for node in nodes if not for_login(cluster, node))
    if named is None:
        return tuple(workers)
    names = frozenset(named.nodes)
    return tuple(node for node in workers if _has(named, names, node))


def totalled(cluster: Cluster) -> frozenset[str]:
    """Return the partitions whose jobs are placed by totals: those of fleet members without reservation, and the
    partition of all members unless each of them has it."""
    names = {each.name for each in cluster.members if each.mode is BindingMode.TOTALS}
    return frozenset(names | {OVER_CLUSTERS} if names else ())


def refusal(cluster: Cluster, name: str, job: Job, qos: Qos | None = None) -> PartitionRefuses | None:
    """Return the first of the partition's rules that the job breaks; its state comes last, since it passes. A QOS may
    lift the limits on time and nodes (`PartitionTimeLimit`, `PartitionMinNodes`, `PartitionMaxNodes`)."""
    if name == WHOLE_CLUSTER:
        return None
    partition = cluster.partition(name)
    if partition is None:
        # counted as a state, which passes: a partition that was deleted may be defined again
        return PartitionRefuses(name, PartitionRule.STATE, "not there")
    if name == OVER_CLUSTERS and cluster.members and not job.spec.divide_over_clusters:
        return PartitionRefuses(name, PartitionRule.STATE, "for jobs that may be divided")
    excluded = about_owner(partition, job.submitter.name, job.account, job.qos)
    refused = excluded or about_size(partition, job.spec, qos)
    if refused is None and partition.state in _STARTS_NOTHING:
        return PartitionRefuses(name, PartitionRule.STATE, partition.state)
    return refused


def about_owner(partition: Partition, user: str, account: str, qos: str) -> PartitionRefuses | None:
    """Return the rule by which the partition refuses this user, account or QOS. If a list of allowed ones is set, the
    denied ones are ignored, as in Slurm."""
    for rule, who, allow, deny in (
        (PartitionRule.USER, user, partition.allow_users, ()),
        (PartitionRule.ACCOUNT, account, partition.allow_accounts, partition.deny_accounts),
        (PartitionRule.QOS, qos, partition.allow_qos, partition.deny_qos),
    ):
        if (allow and who not in allow) or (not allow and who in deny):
            return PartitionRefuses(partition.name, rule, ", ".join(allow), who)
    return None


def about_size(partition: Partition, spec: JobSpec, qos: Qos | None = None) -> PartitionRefuses | None:
    """Return the rule on time or number of nodes by which the partition refuses the job; None: none does."""
    qos = qos or _LIFTS_NOTHING
    most, longest = partition.max_nodes, partition.max_time_seconds
    if longest is not None and spec.time_limit_seconds > longest and not qos.has(QosFlag.PARTITION_TIME_LIMIT):
        return _size(partition, PartitionRule.MAX_TIME, longest, spec.time_limit_seconds)
    # an elastic job may start with its fewest workers, so these decide
    nodes = spec.least_nodes
    if nodes < partition.min_nodes and not qos.has(QosFlag.PARTITION_MIN_NODES):
        return _size(partition, PartitionRule.MIN_NODES, partition.min_nodes, nodes)
    if most is not None and nodes > most and not qos.has(QosFlag.PARTITION_MAX_NODES):
        return _size(partition, PartitionRule.MAX_NODES, most, nodes)
    return None


def _size(partition: Partition, rule: PartitionRule, allowed: int, requested: int) -> PartitionRefuses:
    return PartitionRefuses(partition.name, rule, str(allowed), str(requested))


def for_login(cluster: Cluster, node: Node) -> bool:
    """Return whether it is a login node, which runs no jobs."""
    return bool(cluster.login_pool) and node.pool == cluster.login_pool


def _has(partition: Partition, names: frozenset[NodeName], node: Node) -> bool:
    if not partition.pools and not names:
        return True
    return node.pool in partition.pools or node.name in names
