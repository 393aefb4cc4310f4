"""Changes of a waiting job's pods with which its pods might be placed sooner.

Each changes one thing that an obstacle names: fewer cards, CPUs or less memory, down to what a node has free; another
label or none where the node selector excludes nodes; a toleration; no rule about other pods, no host port; fewer pods;
a higher priority class. Which of them help is found by simulating them (`pod_scheduling`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from msgspec.structs import replace

from cockpit.backends.kubernetes.mapping.cards.device_plugins import CARDS
from cockpit.backends.kubernetes.mapping.cards.models import MODEL_LABELS
from cockpit.backends.kubernetes.mapping.node_filters import NodeObstacle, NodePods, obstacles
from cockpit.backends.kubernetes.mapping.planning import HOSTNAME
from cockpit.backends.kubernetes.mapping.pod_needs import PodNeeds
from cockpit.backends.kubernetes.mapping.quantities import CPU, MEMORY
from cockpit.backends.kubernetes.objects.pod import Toleration as PodToleration
from cockpit.model.forecast import Change
from cockpit.model.labels import Toleration
from cockpit.model.pod_reasons import Obstacle
from cockpit.model.spec import WHOLE_CARD, JobSpec, NodeSpec

MOST_VALUES = 4
"""Other values of a label that are tried."""
_MIB = 1024**2
_RULES = (Obstacle.ANTI_AFFINITY, Obstacle.SPREAD)


class PodChange(NamedTuple):
    """One thing changed in all waiting pods of a job."""

    change: Change
    before: str
    after: str
    changed: Callable[[PodNeeds], PodNeeds]
    spec: JobSpec
    """The job's specification with the change."""


def pod_changes(
    pods: Sequence[PodNeeds],
    spec: JobSpec,
    nodes: Mapping[str, NodePods],
    classes: Mapping[str, int],
    bounds: Mapping[str, int],
) -> Iterator[PodChange]:
    """Yield the changes; of those that change the same, the smallest change first. `classes`: the values of the
    cluster's priority classes. `bounds`: what quotas leave for each pod, by resource."""
    different = list({each.key: each for each in pods}.values())
    for needs in different:
        refused = [obstacles(needs, node, nodes) for node in nodes.values()]
        yield from _less(needs, spec, refused, bounds)
        yield from _tolerating(refused, spec)
        yield from _other_labels(needs, spec, nodes)
        yield from _without_rules(needs, spec, refused)
    yield from _higher(pods, spec, classes)


def _less(
    needs: PodNeeds, spec: JobSpec, refused: list[list[NodeObstacle]], bounds: Mapping[str, int]
) -> Iterator[PodChange]:
    """Yield the pods with less of one resource: as much as a node has free that lacks nothing else, as a
    quota leaves, and halves."""
    for name, amount in needs.request:
        free = {
            found[0].free
            for found in refused
            if len(found) == 1 and found[0].obstacle is Obstacle.RESOURCE and found[0].about == name
        }
        halves = (amount // 2, amount // 4, 1) if name in CARDS else ()
        for less in sorted({*free, *halves, bounds.get(name, 0)}, reverse=True):
            if 0 < less < amount:
                yield from with_amount(name, amount, less, spec)


def with_amount(name: str, amount: int, less: int, spec: JobSpec) -> Iterator[PodChange]:
    """Yield the pods with at most so much of a resource, rounded down to what a user writes; none for a resource that a
    specification does not name. `amount`: the most that a pod requests now."""
    if name in CARDS:
        fields, shown, unit = {"card_milli": less * WHOLE_CARD}, Change.CARDS, 1
    elif name == CPU:
        less = less // 1000 * 1000
        fields, shown, unit = {"cpus": less // 1000}, Change.CPUS, 1000
    elif name == MEMORY:
        less = less // _MIB * _MIB
        fields, shown, unit = {"memory_mib": less // _MIB}, Change.MEMORY, _MIB
    else:
        return
    if less <= 0:
        return
    yield PodChange(
        shown,
        str(-(-amount // unit)),
        str(less // unit),
        partial(bound, name, less),
        replace(spec, specs=tuple(_with_fields(each, fields) for each in spec.specs)),
    )


def bound(name: str, most: int, needs: PodNeeds) -> PodNeeds:
    """Return the needs with at most so much of a resource."""
    request = ((each, min(amount, most) if each == name else amount) for each, amount in needs.request)
    return replace(needs, request=tuple(request))


def _tolerate(toleration: PodToleration, needs: PodNeeds) -> PodNeeds:
    return replace(needs, tolerations=(*needs.tolerations, toleration))


def _select(label: Mapping[str, str], needs: PodNeeds) -> PodNeeds:
    return replace(needs, selector={**needs.selector, **label})


def _unselect(key: str, needs: PodNeeds) -> PodNeeds:
    return replace(needs, selector=_without(needs.selector, key))


def _raise(priority: int, needs: PodNeeds) -> PodNeeds:
    return replace(needs, priority=priority, preempts=True)


def _with_fields(spec: NodeSpec, fields: Mapping[str, int]) -> NodeSpec:
    return replace(spec, **{name: min(getattr(spec, name), value) for name, value in fields.items()})


def _tolerating(refused: list[list[NodeObstacle]], spec: JobSpec) -> Iterator[PodChange]:
    taints = dict.fromkeys(each.about for found in refused for each in found if each.obstacle is Obstacle.TAINT)
    for text in taints:
        key, _, value = text.partition("=")
        tolerated = PodToleration(key=key, operator="Equal", value=value)
        yield PodChange(
            Change.TOLERATION,
            "",
            text,
            partial(_tolerate, tolerated),
            replace(spec, tolerations=(*spec.tolerations, Toleration(key, value))),
        )


def _other_labels(needs: PodNeeds, spec: JobSpec, nodes: Mapping[str, NodePods]) -> Iterator[PodChange]:
    """Yield the pods with another card model, without each label of the node selector, and without node affinity."""
    for key, value in needs.selector.items():
        known = {node.labels.get(key, "") for node in nodes.values()} - {value, ""}
        # Another host name or zone is as good as none, while another model of cards is a decision.
        for other in sorted(known)[:MOST_VALUES] if key in MODEL_LABELS else ():
            yield PodChange(
                Change.LABEL,
                f"{key}={value}",
                f"{key}={other}",
                partial(_select, {key: other}),
                replace(spec, node_selector={**spec.node_selector, key: other}),
            )
        yield PodChange(
            Change.LABEL,
            f"{key}={value}",
            "",
            partial(_unselect, key),
            # A job that names its node by its label is shown with the node's name.
            replace(
                spec,
                node_selector=_without(spec.node_selector, key),
                node_names=() if key == HOSTNAME else spec.node_names,
            ),
        )
    if needs.terms is not None:
        yield PodChange(Change.NODE_AFFINITY, "", "", lambda needs: replace(needs, terms=None), spec)


def _without(labels: Mapping[str, str], key: str) -> dict[str, str]:
    return {each: value for each, value in labels.items() if each != key}


def _without_rules(needs: PodNeeds, spec: JobSpec, refused: list[list[NodeObstacle]]) -> Iterator[PodChange]:
    found = {each.obstacle for one in refused for each in one}
    if found & set(_RULES) and needs.depends_on_pods:
        yield PodChange(Change.POD_RULES, "", "", lambda needs: replace(needs, beside=(), apart=(), spread=()), spec)
    if Obstacle.PORTS in found:
        port = str(needs.ports[0].port)
        yield PodChange(Change.HOST_PORT, port, "", lambda needs: replace(needs, ports=()), spec)


def _higher(pods: Sequence[PodNeeds], spec: JobSpec, classes: Mapping[str, int]) -> Iterator[PodChange]:
    own = max((each.priority for each in pods), default=0)
    names = {value: name for name, value in classes.items()}
    for name, value in higher_classes(own, classes):
        before = names.get(own, str(own))
        yield PodChange(Change.PRIORITY_CLASS, before, name, partial(_raise, value), replace(spec, qos=name))


def higher_classes(own: int, classes: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    """Yield the classes above a priority with their values, the lowest first."""
    for name, value in sorted(classes.items(), key=lambda each: each[1]):
        # Those of Kubernetes itself are for its own pods.
        if value > own and not name.startswith("system-"):
            yield name, value
