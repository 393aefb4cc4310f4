"""The members of a fleet as the nodes of its host: what each has in all, what is taken, and whether it answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.backends.kubernetes.mapping.quantities import tres_amounts
from cockpit.backends.kubernetes.objects.fleet import ResourceSummary
from cockpit.model.fleet import BindingMode
from cockpit.model.ids import NodeName
from cockpit.model.node import Card, Node, NodeState
from cockpit.model.view import NodeRow

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cockpit.backends.kubernetes.objects.fleet import MemberCluster
    from cockpit.model.jobrow import JobRow

_CARDS = "gres/gpu"
_NO_SUMMARY = ResourceSummary()


def member_row(member: MemberCluster, rows: Iterable[JobRow]) -> NodeRow:
    """Return a member with its totals. `rows`: all jobs of the host.

    The host tells no settings of the members' schedulers, so that the mode is that of totals: whether a member reserves
    for the fleet is not known.
    """
    name = member.metadata.name
    summary = member.status.resource_summary or _NO_SUMMARY
    used = tres_amounts(summary.allocated or {})
    cards = used.get(_CARDS, 0)
    return NodeRow(
        member_node(member),
        -(-used.get("cpu", 0) // 1000),
        used.get("mem", 0) // 1000,
        cards,
        -(-cards // 1000),
        (),
        tuple(row.id for row in _on(name, rows)),
        binding=BindingMode.TOTALS,
    )


def member_node(member: MemberCluster) -> Node:
    """Return a member as one node with everything that its nodes have."""
    summary, ready = member.status.resource_summary or _NO_SUMMARY, member.ready
    there = tres_amounts(summary.allocatable or {})
    is_ready = ready is not None and ready.is_true
    version = member.status.kubernetes_version
    return Node(
        name=NodeName(member.metadata.name),
        cpus=there.get("cpu", 0) // 1000,
        memory_mib=there.get("mem", 0) // 1000,
        cards=tuple(Card(index=index, model="") for index in range(there.get(_CARDS, 0) // 1000)),
        labels=dict(member.metadata.labels or {}),
        os=f"Kubernetes {version}" if version else "",
        state=NodeState.UP if is_ready else NodeState.DOWN,
        state_reason="" if is_ready else (ready.message if ready is not None else "it has never answered the fleet"),
    )


def _on(name: str, rows: Iterable[JobRow]) -> Iterable[JobRow]:
    return (row for row in rows if name in row.clusters and row.holds)
