"""The rules of a cluster as a cluster.toml would say them."""

from __future__ import annotations

from collections.abc import Sequence

from cockpit.formats.cluster.fields import ClusterFile
from cockpit.formats.cluster.rule_fields import Accounting
from cockpit.model.cluster import Cluster
from cockpit.model.node import Node


def file_of_rules(cluster: Cluster, nodes: Sequence[Node]) -> ClusterFile:
    """The nodes tell which pools there are, beside those that the rules name."""
    named = [pool for partition in cluster.partitions for pool in partition.pools]
    pools: dict[str, tuple[str, ...]] = dict.fromkeys([*named, *filter(None, [cluster.login_pool])], ())
    for node in nodes:
        if node.pool:
            pools[node.pool] = (*pools.get(node.pool, ()), node.name)
    return ClusterFile(
        mutable=cluster.mutable,
        urgent_jobs=cluster.urgent_jobs,
        staging=cluster.staging,
        sharing=cluster.sharing,
        max_resumes=cluster.max_resumes,
        max_grace_seconds=cluster.max_grace_seconds,
        login_node_pool=cluster.login_pool,
        home_directory_storage=cluster.home,
        prolog_bash_scripts=cluster.prolog_scripts,
        epilog_bash_scripts=cluster.epilog_scripts,
        node_pools=pools,
        accounting=Accounting(cluster.enforce),
        priority=cluster.priority,
        backfill=cluster.backfill,
        preemption=cluster.preemption,
        partitions=cluster.partitions,
        projects=cluster.projects,
    )
