"""What of a pod's specification says on which nodes it may run. Source: core/v1 Affinity, TopologySpreadConstraint,
ContainerPort, Volume."""

from __future__ import annotations

import msgspec


class Requirement(msgspec.Struct, frozen=True):
    """A condition on one label: a node selector's or a label selector's."""

    key: str
    operator: str
    """`In`, `NotIn`, `Exists`, `DoesNotExist`; of nodes also `Gt` and `Lt`."""
    values: tuple[str, ...] | None = None


class LabelSelector(msgspec.Struct, frozen=True, rename="camel"):
    """Conditions on labels that must all hold; without any, every object matches."""

    match_labels: dict[str, str] | None = None
    match_expressions: tuple[Requirement, ...] | None = None


class NodeSelectorTerm(msgspec.Struct, frozen=True, rename="camel"):
    """Conditions on a node that must all hold; without any, no node matches."""

    match_expressions: tuple[Requirement, ...] | None = None
    match_fields: tuple[Requirement, ...] | None = None


class NodeSelector(msgspec.Struct, frozen=True, rename="camel"):
    """Terms of which one must hold."""

    node_selector_terms: tuple[NodeSelectorTerm, ...] | None = None


class NodeAffinity(msgspec.Struct, frozen=True):
    """The nodes that a pod must run on. Preferred ones are left out: they keep it off no node."""

    required: NodeSelector | None = msgspec.field(default=None, name="requiredDuringSchedulingIgnoredDuringExecution")


class PodAffinityTerm(msgspec.Struct, frozen=True, rename="camel"):
    """Pods beside which, or not beside which, a pod must run, within a domain of nodes."""

    topology_key: str = ""
    """The label of nodes whose equal values make a domain."""
    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] | None = None
    namespace_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] | None = None


class PodAffinity(msgspec.Struct, frozen=True):
    """Rules about other pods, for or against running beside them."""

    required: tuple[PodAffinityTerm, ...] | None = msgspec.field(
        default=None, name="requiredDuringSchedulingIgnoredDuringExecution"
    )


class Affinity(msgspec.Struct, frozen=True, rename="camel"):
    """All rules of a pod about nodes and other pods."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class SpreadConstraint(msgspec.Struct, frozen=True, rename="camel"):
    """How evenly pods must be spread over domains of nodes."""

    topology_key: str = ""
    max_skew: int = 1
    when_unsatisfiable: str = "DoNotSchedule"
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    node_affinity_policy: str = "Honor"
    node_taints_policy: str = "Ignore"


class ContainerPort(msgspec.Struct, frozen=True, rename="camel"):
    """A port of a container."""

    host_port: int = 0
    host_ip: str = msgspec.field(default="", name="hostIP")
    protocol: str = "TCP"


class ClaimSource(msgspec.Struct, frozen=True, rename="camel"):
    """A volume that a PersistentVolumeClaim provides."""

    claim_name: str


class Volume(msgspec.Struct, frozen=True, rename="camel"):
    """A volume of a pod; sources that keep it off no node are left out."""

    name: str = ""
    persistent_volume_claim: ClaimSource | None = None
