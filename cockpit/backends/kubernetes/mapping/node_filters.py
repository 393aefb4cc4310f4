"""Which nodes can take a pod, by the rules of kube-scheduler's filters, computed from the objects.

Each node is asked in the scheduler's order, and the first filter that refuses it names the obstacle, so that the counts
compare with those of the scheduler's message: cordon, node name, taints, node affinity and selector, host ports,
resources (each one that is short), volumes, topology spread, rules about other pods.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from cockpit.backends.kubernetes.mapping.pod_needs import (
    HostPort,
    PodNeeds,
    matches,
    term_covers,
    term_matches,
    tolerates,
)
from cockpit.backends.kubernetes.mapping.quantities import exact_amounts
from cockpit.backends.kubernetes.objects.node import KubeNode, NodeTaint
from cockpit.backends.kubernetes.objects.placing import NodeSelectorTerm, PodAffinityTerm, SpreadConstraint
from cockpit.model.ids import JobId, Millis
from cockpit.model.pod_reasons import Obstacle

PODS = "pods"
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
_NOT_READY = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_CORDON = NodeTaint(UNSCHEDULABLE, effect="NoSchedule")
_KEEPS_OFF = frozenset({"NoSchedule", "NoExecute"})


class PlacedPod(NamedTuple):
    """A pod that occupies a node."""

    needs: PodNeeds
    job: JobId
    """The job that it belongs to; 0: none."""
    since: Millis = Millis(0)
    """When it began to occupy its node."""


class NodeObstacle(NamedTuple):
    """Why one node cannot take a pod."""

    obstacle: Obstacle
    about: str = ""
    """The resource, the taint, or the label that is missing."""
    free: int = 0
    """Of a resource: what the node has free, in the units of `exact_request`."""


class NodePods:
    """A node with the pods on it. A simulation changes copies of it."""

    __slots__ = ("allocatable", "apart", "free", "name", "pods", "spec", "taints")

    def __init__(self, node: KubeNode, pods: Iterable[PlacedPod] = ()) -> None:
        self.spec, self.name = node, node.metadata.name
        self.taints = tuple(each for each in node.spec.taints or () if each.effect in _KEEPS_OFF)
        self.allocatable = exact_amounts(node.status.allocatable)
        self.free = dict(self.allocatable)
        self.pods: list[PlacedPod] = []
        self.apart = 0
        """The number of its pods with rules against other pods."""
        for each in pods:
            self.add(each)

    @property
    def labels(self) -> Mapping[str, str]:
        return self.spec.metadata.labels or {}

    def copy(self) -> NodePods:
        other: NodePods = object.__new__(NodePods)
        other.spec, other.name, other.taints, other.allocatable = self.spec, self.name, self.taints, self.allocatable
        other.free, other.pods, other.apart = dict(self.free), list(self.pods), self.apart
        return other

    def has_room(self, needs: PodNeeds) -> bool:
        """Return whether enough of every resource is free: the quickest of all tests."""
        free = self.free
        return free.get(PODS, 0) > 0 and all(free.get(name, 0) >= amount for name, amount in needs.request)

    def add(self, pod: PlacedPod) -> None:
        self.pods.append(pod)
        self._take(pod, 1)

    def remove(self, pod: PlacedPod) -> None:
        self.pods.remove(pod)
        self._take(pod, -1)

    def _take(self, pod: PlacedPod, sign: int) -> None:
        for name, amount in pod.needs.request:
            self.free[name] = self.free.get(name, 0) - sign * amount
        self.free[PODS] = self.free.get(PODS, 0) - sign
        if pod.needs.apart:
            self.apart += sign


def obstacles(needs: PodNeeds, node: NodePods, others: Mapping[str, NodePods]) -> list[NodeObstacle]:
    """Return why the node cannot take the pod now; empty: it can. `others`: all nodes with their pods, by name."""
    fixed = fixed_obstacle(needs, node)
    if fixed is not None:
        return [fixed]
    if any(own.conflicts(used) for own in needs.ports for used in _ports(node)):
        return [NodeObstacle(Obstacle.PORTS, str(needs.ports[0].port))]
    if short := list(_short(needs, node)):
        return short
    if not all(_one_matches(terms, node) for terms in needs.volumes):
        return [NodeObstacle(Obstacle.VOLUME)]
    if any(not _spreads(each, needs, node, others) for each in needs.spread):
        return [NodeObstacle(Obstacle.SPREAD)]
    return [] if _suits_pods(needs, node, others) else [NodeObstacle(Obstacle.ANTI_AFFINITY)]


def fixed_obstacle(needs: PodNeeds, node: NodePods) -> NodeObstacle | None:
    """Return what keeps the pod off the node whichever pods are there; None: nothing does."""
    if node.spec.spec.unschedulable and not tolerates(needs.tolerations, _CORDON):
        return NodeObstacle(Obstacle.CORDONED)
    if needs.node_name and needs.node_name != node.name:
        return NodeObstacle(Obstacle.SELECTOR, needs.node_name)
    for taint in node.taints:
        if not tolerates(needs.tolerations, taint):
            return _taint_obstacle(taint)
    for key, value in needs.selector.items():
        if node.labels.get(key) != value:
            return NodeObstacle(Obstacle.SELECTOR, f"{key}={value}")
    if needs.terms is not None and not _one_matches(needs.terms, node):
        return NodeObstacle(Obstacle.AFFINITY)
    return None


def could_hold(needs: PodNeeds, node: NodePods) -> bool:
    """Return whether the node could take the pod if it were empty."""
    small = any(node.allocatable.get(name, 0) < amount for name, amount in needs.request)
    return fixed_obstacle(needs, node) is None and not small and all(_one_matches(each, node) for each in needs.volumes)


def fits(needs: PodNeeds, node: NodePods, others: Mapping[str, NodePods]) -> bool:
    return not obstacles(needs, node, others)


def _taint_obstacle(taint: NodeTaint) -> NodeObstacle:
    if taint.key == UNSCHEDULABLE:
        return NodeObstacle(Obstacle.CORDONED)
    if taint.key in _NOT_READY:
        return NodeObstacle(Obstacle.NOT_READY)
    return NodeObstacle(Obstacle.TAINT, f"{taint.key}={taint.value}" if taint.value else taint.key)


def _ports(node: NodePods) -> Iterator[HostPort]:
    for pod in node.pods:
        yield from pod.needs.ports


def _short(needs: PodNeeds, node: NodePods) -> Iterator[NodeObstacle]:
    """Yield each resource of which the node has too little free."""
    if node.free.get(PODS, 0) < 1:
        yield NodeObstacle(Obstacle.PODS)
    for name, amount in needs.request:
        free = node.free.get(name, 0)
        if amount > free:
            yield NodeObstacle(Obstacle.RESOURCE, name, max(0, free))


def _one_matches(terms: tuple[NodeSelectorTerm, ...], node: NodePods) -> bool:
    return any(term_matches(each, node.name, node.labels) for each in terms)


def _spreads(constraint: SpreadConstraint, needs: PodNeeds, node: NodePods, others: Mapping[str, NodePods]) -> bool:
    """Return whether the node keeps the pods spread evenly enough (PodTopologySpread)."""
    key = constraint.topology_key
    if key not in node.labels:
        return False
    counts: Counter[str] = Counter()
    for each in others.values():
        domain = each.labels.get(key)
        if domain is None or not _counts(constraint, needs, each):
            continue
        alike = (pod for pod in each.pods if pod.needs.namespace == needs.namespace)
        counts[domain] += sum(matches(constraint.label_selector, pod.needs.labels) for pod in alike)
    least = min(counts.values(), default=0)
    # With fewer domains than the job wants, the emptiest one is one that does not exist.
    if constraint.min_domains is not None and len(counts) < constraint.min_domains:
        least = 0
    own = 1 if matches(constraint.label_selector, needs.labels) else 0
    return counts[node.labels[key]] + own - least <= constraint.max_skew


def _counts(constraint: SpreadConstraint, needs: PodNeeds, node: NodePods) -> bool:
    """Return whether the node's domain is one of those over which the pods are spread."""
    if constraint.node_taints_policy == "Honor" and any(not tolerates(needs.tolerations, each) for each in node.taints):
        return False
    if constraint.node_affinity_policy != "Honor":
        return True
    selected = all(node.labels.get(name) == value for name, value in needs.selector.items())
    return selected and (needs.terms is None or _one_matches(needs.terms, node))


def _suits_pods(needs: PodNeeds, node: NodePods, others: Mapping[str, NodePods]) -> bool:
    """Return whether the rules about other pods, its own and theirs, allow the node (InterPodAffinity)."""
    for term in needs.apart:
        if any(term_covers(term, needs.namespace, *_whose(pod)) for pod in _domain_pods(term, node, others)):
            return False
    for each in (each for each in others.values() if each.apart):
        for pod in each.pods:
            for term in pod.needs.apart:
                if _same_domain(term, node, each) and term_covers(
                    term, pod.needs.namespace, needs.namespace, needs.labels
                ):
                    return False
    return all(_is_beside(term, needs, node, others) for term in needs.beside)


def _is_beside(term: PodAffinityTerm, needs: PodNeeds, node: NodePods, others: Mapping[str, NodePods]) -> bool:
    if term.topology_key not in node.labels:
        return False
    if any(term_covers(term, needs.namespace, *_whose(pod)) for pod in _domain_pods(term, node, others)):
        return True
    # The first of pods that want to be together may run anywhere.
    anywhere = any(
        term_covers(term, needs.namespace, *_whose(pod))
        for each in others.values()
        if term.topology_key in each.labels
        for pod in each.pods
    )
    return not anywhere and term_covers(term, needs.namespace, needs.namespace, needs.labels)


def _whose(pod: PlacedPod) -> tuple[str, Mapping[str, str]]:
    return pod.needs.namespace, pod.needs.labels


def _domain_pods(term: PodAffinityTerm, node: NodePods, others: Mapping[str, NodePods]) -> Iterator[PlacedPod]:
    for each in others.values():
        if _same_domain(term, node, each):
            yield from each.pods


def _same_domain(term: PodAffinityTerm, node: NodePods, other: NodePods) -> bool:
    domain = node.labels.get(term.topology_key)
    return domain is not None and other.labels.get(term.topology_key) == domain
