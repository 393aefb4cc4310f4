"""Pods and pod templates. Source: core/v1 PodSpec, PodStatus, Container.

Environment variables are left out: they may hold secrets, and no list needs them.
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from cockpit.backends.kubernetes.objects.meta import Condition, ObjectMeta, condition
from cockpit.backends.kubernetes.objects.placing import Affinity, ContainerPort, SpreadConstraint, Volume

Quantities = dict[str, str | int | float]
"""Amounts by resource name, such as `{"cpu": "500m", "nvidia.com/gpu": 8}`."""


class Resources(msgspec.Struct, frozen=True, gc=False):
    """Requests and limits of a container."""

    requests: Quantities | None = None
    limits: Quantities | None = None


NO_RESOURCES = Resources()


class Container(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """A container of a pod."""

    name: str = ""
    image: str = ""
    command: tuple[str, ...] | None = None
    args: tuple[str, ...] | None = None
    resources: Resources | None = None
    restart_policy: str = ""
    """Of an init container: `Always` makes it a sidecar, which runs beside the others."""
    ports: tuple[ContainerPort, ...] | None = None
    image_pull_policy: str = ""
    """`Always`, `IfNotPresent` or `Never`; a server fills in the one that follows from the image's tag."""


class Toleration(msgspec.Struct, frozen=True, gc=False):
    """A toleration of taints."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""


class NameOnly(msgspec.Struct, frozen=True, gc=False):
    """A reference by name."""

    name: str = ""


class PodClaim(msgspec.Struct, frozen=True, rename="camel"):
    """A resource claim of the pod, by its name in the pod."""

    name: str = ""
    resource_claim_name: str | None = None
    """The claim itself; None: one that was made for the pod, which its status names."""
    resource_claim_template_name: str | None = None
    """The template of such a claim."""


class ExtendedClaim(msgspec.Struct, frozen=True, rename="camel"):
    """The claim that serves requests for resources which a driver serves in the place of a device plugin."""

    resource_claim_name: str = ""


class PodSpec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """What a pod is to be."""

    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] | None = None
    node_name: str = ""
    node_selector: dict[str, str] | None = None
    tolerations: tuple[Toleration, ...] | None = None
    priority: int | None = None
    priority_class_name: str = ""
    preemption_policy: str = ""
    """`Never`: it evicts no pods of a lower priority."""
    affinity: Affinity | None = None
    topology_spread_constraints: tuple[SpreadConstraint, ...] | None = None
    volumes: tuple[Volume, ...] | None = None
    scheduler_name: str = ""
    restart_policy: str = ""
    active_deadline_seconds: int | None = None
    overhead: Quantities | None = None
    scheduling_gates: tuple[NameOnly, ...] | None = None
    resource_claims: tuple[PodClaim, ...] | None = None


class StateWaiting(msgspec.Struct, frozen=True, gc=False):
    """A container that does not run yet, or waits to be started again."""

    reason: str = ""
    message: str = ""


class StateRunning(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """A container that runs."""

    started_at: datetime | None = None


class StateTerminated(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """A container that has ended."""

    exit_code: int = 0
    signal: int = 0
    reason: str = ""
    message: str = ""
    started_at: datetime | None = None
    finished_at: datetime | None = None


class ContainerState(msgspec.Struct, frozen=True, gc=False):
    """One of three states."""

    waiting: StateWaiting | None = None
    running: StateRunning | None = None
    terminated: StateTerminated | None = None


NO_STATE = ContainerState()


class ContainerStatus(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The state of a container."""

    name: str = ""
    state: ContainerState | None = None
    last_state: ContainerState | None = None
    restart_count: int = 0
    ready: bool = False


class PodStatus(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """What a pod is at present."""

    phase: str = "Pending"
    reason: str = ""
    """`Evicted`, `DeadlineExceeded`, `NodeLost` …"""
    message: str = ""
    conditions: tuple[Condition, ...] | None = None
    start_time: datetime | None = None
    container_statuses: tuple[ContainerStatus, ...] | None = None
    init_container_statuses: tuple[ContainerStatus, ...] | None = None
    resource_claim_statuses: tuple[PodClaim, ...] | None = None
    extended_resource_claim_status: ExtendedClaim | None = None


NO_STATUS = PodStatus()


class Pod(msgspec.Struct, frozen=True, gc=False):
    """A pod."""

    metadata: ObjectMeta
    spec: PodSpec = PodSpec()
    status: PodStatus | None = None

    @property
    def now(self) -> PodStatus:
        return self.status or NO_STATUS

    @property
    def has_ended(self) -> bool:
        return self.now.phase in {"Succeeded", "Failed"}

    @property
    def is_placed(self) -> bool:
        """Whether it occupies resources of a node."""
        return bool(self.spec.node_name) and not self.has_ended

    @property
    def claim_names(self) -> tuple[str, ...]:
        """The names of its resource claims, in its namespace."""
        extended = self.now.extended_resource_claim_status
        named = (*(self.spec.resource_claims or ()), *(self.now.resource_claim_statuses or ()))
        names = [each.resource_claim_name for each in named]
        return tuple(dict.fromkeys(filter(None, [*names, extended.resource_claim_name if extended else ""])))

    @property
    def unscheduled(self) -> Condition | None:
        """The scheduler's condition of a pod that it could not place; None: it was placed, or not looked at yet."""
        scheduled = condition(self.now.conditions, "PodScheduled")
        return scheduled if scheduled is not None and not scheduled.is_true else None


class TemplateMeta(msgspec.Struct, frozen=True, gc=False):
    """Metadata of a pod template."""

    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None


class PodTemplate(msgspec.Struct, frozen=True, gc=False):
    """The template of a workload's pods."""

    metadata: TemplateMeta | None = None
    spec: PodSpec = PodSpec()
