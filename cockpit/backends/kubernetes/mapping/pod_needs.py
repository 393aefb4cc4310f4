"""What a pod needs of a node, as kube-scheduler's filters read it, and how labels are selected."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import NamedTuple

import msgspec

from cockpit.backends.kubernetes.mapping.quantities import ExactAmounts, exact_request
from cockpit.backends.kubernetes.objects.node import NodeTaint
from cockpit.backends.kubernetes.objects.placing import (
    LabelSelector,
    NodeSelectorTerm,
    PodAffinityTerm,
    Requirement,
    SpreadConstraint,
)
from cockpit.backends.kubernetes.objects.pod import PodSpec, Toleration

NAME_FIELD = "metadata.name"


class HostPort(NamedTuple):
    """A port of the node itself."""

    protocol: str
    address: str
    port: int

    def conflicts(self, other: HostPort) -> bool:
        anywhere = {self.address, other.address} & {"", "0.0.0.0"}  # noqa: S104 - compared, not bound
        same_address = anywhere or self.address == other.address
        return bool(same_address) and (self.protocol, self.port) == (other.protocol, other.port)


class PodNeeds(msgspec.Struct, frozen=True, dict=True):
    """Everything of a pod that decides where it may run, and before which others."""

    namespace: str
    labels: dict[str, str]
    request: ExactAmounts
    selector: dict[str, str] = {}
    terms: tuple[NodeSelectorTerm, ...] | None = None
    """The node affinity's terms, of which one must hold; None: it has none."""
    tolerations: tuple[Toleration, ...] = ()
    node_name: str = ""
    ports: tuple[HostPort, ...] = ()
    beside: tuple[PodAffinityTerm, ...] = ()
    """Pods beside which it must run."""
    apart: tuple[PodAffinityTerm, ...] = ()
    """Pods beside which it must not run."""
    spread: tuple[SpreadConstraint, ...] = ()
    volumes: tuple[tuple[NodeSelectorTerm, ...], ...] = ()
    """The nodes that can use each of its volumes, as terms of which one must hold."""
    priority: int = 0
    preempts: bool = True
    """Whether the scheduler may evict pods of a lower priority for it."""

    @cached_property
    def key(self) -> bytes:
        """Equal for pods that fit on the same nodes, whatever they may evict."""
        plain = msgspec.structs.replace(self, priority=0, preempts=True)
        return msgspec.msgpack.encode(plain, order="deterministic")

    @cached_property
    def anonymous_key(self) -> bytes:
        """Equal for pods that fit on the same nodes where no rule is about other pods."""
        return msgspec.structs.replace(self, namespace="", labels={}).key

    @cached_property
    def amounts(self) -> dict[str, int]:
        """The request by resource."""
        return dict(self.request)

    @property
    def depends_on_pods(self) -> bool:
        """Whether rules about other pods bind it."""
        return bool(self.beside or self.apart or self.spread)

    def amount(self, resource: str) -> int:
        return self.amounts.get(resource, 0)


def needs_of(spec: PodSpec, namespace: str, labels: Mapping[str, str] | None) -> PodNeeds:
    """Return what a pod of this specification needs."""
    affinity = spec.affinity
    node = affinity.node_affinity.required if affinity is not None and affinity.node_affinity is not None else None
    beside = affinity.pod_affinity.required if affinity is not None and affinity.pod_affinity is not None else None
    apart = affinity.pod_anti_affinity if affinity is not None else None
    return PodNeeds(
        namespace=namespace,
        labels=dict(labels or {}),
        request=exact_request(spec),
        selector=spec.node_selector or {},
        terms=(node.node_selector_terms or ()) if node is not None else None,
        tolerations=spec.tolerations or (),
        node_name=spec.node_name,
        ports=tuple(
            HostPort(port.protocol, port.host_ip, port.host_port)
            for container in spec.containers
            for port in container.ports or ()
            if port.host_port
        ),
        beside=beside or (),
        apart=(apart.required or ()) if apart is not None else (),
        spread=tuple(
            each for each in spec.topology_spread_constraints or () if each.when_unsatisfiable == "DoNotSchedule"
        ),
        priority=spec.priority or 0,
        preempts=spec.preemption_policy != "Never",
    )


def matches(selector: LabelSelector | None, labels: Mapping[str, str]) -> bool:
    """Return whether labels match; an absent selector matches nothing, an empty one everything (meta/v1)."""
    if selector is None:
        return False
    plain = all(labels.get(key) == value for key, value in (selector.match_labels or {}).items())
    return plain and all(_holds(each, labels) for each in selector.match_expressions or ())


def term_matches(term: NodeSelectorTerm, name: str, labels: Mapping[str, str]) -> bool:
    """Return whether a node matches; a term without conditions matches none."""
    if not (term.match_expressions or term.match_fields):
        return False
    return all(_holds(each, labels) for each in term.match_expressions or ()) and all(
        _holds(each, {NAME_FIELD: name}) for each in term.match_fields or ()
    )


def _holds(requirement: Requirement, labels: Mapping[str, str]) -> bool:
    value, values = labels.get(requirement.key), requirement.values or ()
    match requirement.operator:
        case "In":
            return value is not None and value in values
        case "NotIn":
            return value is None or value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt":
            return _is_beyond(value, values, above=requirement.operator == "Gt")
        case _:
            return False


def _is_beyond(value: str | None, values: tuple[str, ...], *, above: bool) -> bool:
    try:
        own, bound = int(value or ""), int(values[0])
    except (ValueError, IndexError):
        return False
    return own > bound if above else own < bound


def tolerates(tolerations: Iterable[Toleration], taint: NodeTaint) -> bool:
    """Return whether one of the tolerations covers the taint (core/v1, ToleratesTaint)."""
    return any(
        (not each.effect or each.effect == taint.effect)
        and (each.key == taint.key or (not each.key and each.operator == "Exists"))
        and (each.operator == "Exists" or (each.operator in {"", "Equal"} and each.value == taint.value))
        for each in tolerations
    )


def term_covers(term: PodAffinityTerm, own_namespace: str, namespace: str, labels: Mapping[str, str]) -> bool:
    """Return whether a term of a pod in `own_namespace` is about a pod with these labels."""
    named = term.namespaces or ()
    selector = term.namespace_selector
    # Without names and selector the term is about the pod's own namespace. An empty selector means all of them; what
    # another one selects follows from labels of namespaces, which are not read.
    if selector is not None and not (selector.match_labels or selector.match_expressions):
        inside = True
    else:
        inside = namespace in (named or (own_namespace,))
    return inside and matches(term.label_selector, labels)
