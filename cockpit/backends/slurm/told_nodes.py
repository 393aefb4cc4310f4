"""Finds the nodes that Slurm means by `ReqNodeNotAvail` or `Nodes required for job are DOWN …`, and why they
are down."""

from __future__ import annotations

from collections.abc import Iterator

from cockpit.backends.slurm.mapping.cluster import Everything
from cockpit.backends.slurm.mapping.hostlist import hosts
from cockpit.model.ids import NodeName
from cockpit.model.job import Job
from cockpit.model.node import NodeState
from cockpit.model.reasons import Reason, Told

CODES = ("ReqNodeNotAvail", "Nodes required for job", "NodeDown")


def told_unavailable(reason: Reason, job: Job, everything: Everything) -> Iterator[tuple[NodeName, str]]:
    """Return the nodes that the code lists, else those that the job requests by name, else those of its partitions."""
    if not isinstance(reason, Told) or not reason.code.replace("_", " ").startswith(CODES):
        return
    _, listed, names = reason.code.partition("UnavailableNodes:")
    of_partitions = {name for each in everything.rules.partitions if each.name in job.partitions for name in each.nodes}
    nodes: set[NodeName] = (
        set(hosts(names) if listed else ()) or set(map(NodeName, job.spec.node_names)) or of_partitions
    )
    for seen in everything.nodes:
        if seen.node.name in nodes and seen.node.state is not NodeState.UP:
            yield seen.node.name, seen.node.why_out
