"""Why no node can take a job's waiting pods, by groups of nodes, from the nodes' own objects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from cockpit.backends.kubernetes.mapping.cards.device_plugins import CARDS
from cockpit.backends.kubernetes.mapping.cards.models import card_model
from cockpit.backends.kubernetes.mapping.node_filters import NodeObstacle, NodePods, could_hold, obstacles
from cockpit.backends.kubernetes.mapping.pod_needs import PodNeeds
from cockpit.model.ids import JobId
from cockpit.model.pod_reasons import NodesExcluded, NodesLookedAt, Obstacle

LEVELS = 2
"""Groups of nodes by what they have free of one resource; all with less are one more group."""


class _Cause(NamedTuple):
    obstacle: Obstacle
    about: str
    model: str


def look_at_nodes(needs: PodNeeds, nodes: Mapping[str, NodePods]) -> NodesLookedAt:
    """Return why each node cannot take the pod, as counts of nodes."""
    fitting = 0
    found: dict[_Cause, Counter[int]] = {}
    for node in nodes.values():
        refused = obstacles(needs, node, nodes)
        fitting += not refused
        for each in refused:
            found.setdefault(_cause(each, node), Counter())[each.free] += 1
    groups = [group for cause, counts in found.items() for group in _groups(cause, counts)]
    groups.sort(key=_position)
    short = {each.about for each in groups if each.obstacle is Obstacle.RESOURCE}
    wanted = tuple((name, amount) for name, amount in needs.request if name in short)
    when_empty = sum(could_hold(needs, node) for node in nodes.values())
    return NodesLookedAt(len(nodes), fitting, when_empty, wanted, tuple(groups))


def holders(needs: PodNeeds, nodes: Mapping[str, NodePods]) -> list[JobId]:
    """Return the jobs that use what the pod lacks on the nodes that only lack resources, the largest first."""
    used: Counter[JobId] = Counter()
    for node in nodes.values():
        refused = obstacles(needs, node, nodes)
        if not refused or any(each.obstacle is not Obstacle.RESOURCE for each in refused):
            continue
        if not could_hold(needs, node):
            continue
        for pod in node.pods:
            used[pod.job] += sum(pod.needs.amount(each.about) for each in refused)
    return [job for job, amount in sorted(used.items(), key=lambda each: (-each[1], each[0])) if job and amount]


def _cause(each: NodeObstacle, node: NodePods) -> _Cause:
    is_card = each.obstacle is Obstacle.RESOURCE and each.about in CARDS
    return _Cause(each.obstacle, each.about, card_model(node.labels) if is_card else "")


def _groups(cause: _Cause, counts: Counter[int]) -> Iterator[NodesExcluded]:
    if cause.obstacle is not Obstacle.RESOURCE:
        yield NodesExcluded(counts.total(), cause.obstacle, cause.about)
        return
    levels = sorted(counts, reverse=True)
    # A single level more is a group like the others.
    shown = levels if len(levels) <= LEVELS + 1 else levels[:LEVELS]
    for free in shown:
        yield NodesExcluded(counts[free], cause.obstacle, cause.about, free, model=cause.model)
    if rest := levels[len(shown) :]:
        total = sum(counts[free] for free in rest)
        yield NodesExcluded(total, cause.obstacle, cause.about, rest[0], at_most=True, model=cause.model)


def _position(each: NodesExcluded) -> tuple[bool, str, int, int]:
    """Resources first, those with most free first; then the most nodes."""
    is_resource = each.obstacle is Obstacle.RESOURCE
    return not is_resource, each.about if is_resource else "", -(each.free or 0), -each.nodes
