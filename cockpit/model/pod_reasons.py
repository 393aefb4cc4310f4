"""Reasons of jobs on Kubernetes: what a cluster's own schedulers and kubelets report of a job's pods, with figures."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from cockpit.model.fleet_placement import FleetWaits
from cockpit.model.ids import JobId, Millis


class Obstacle(StrEnum):
    """Why a node cannot take a pod, by the scheduler's message about it."""

    __hash__ = str.__hash__

    RESOURCE = "resource"
    """It has too little free of a resource."""
    TAINT = "taint"
    """It has a taint that the pod does not tolerate."""
    SELECTOR = "selector"
    """It does not match the pod's node selector or, where the scheduler says no more, its node affinity."""
    AFFINITY = "affinity"
    """It does not match the pod's node affinity."""
    CORDONED = "cordoned"
    """It is unschedulable."""
    NOT_READY = "not_ready"
    ANTI_AFFINITY = "anti_affinity"
    """Rules about other pods forbid it: affinity or anti-affinity."""
    SPREAD = "spread"
    """The pods would be spread too unevenly (topology spread constraints)."""
    VOLUME = "volume"
    """A volume of the pod cannot be used there."""
    PORTS = "ports"
    """A host port of the pod is in use there."""
    PODS = "pods"
    """It has as many pods as it may."""
    OTHER = "other"
    """Another plugin's words."""


class NodesExcluded(msgspec.Struct, frozen=True):
    """Nodes that cannot take a pod for the same cause."""

    nodes: int
    obstacle: Obstacle
    about: str = ""
    """The resource, the taint, the label that is missing, or the words of an unknown cause."""
    free: int | None = None
    """Of a resource, by cockpit's own look: what each of them has free, in thousandths of a CPU, bytes or whole units.
    None: not known."""
    at_most: bool = False
    """Whether `free` is the most that any of them has free."""
    model: str = ""
    """Of cards: their model; empty: unknown."""


class NodesLookedAt(msgspec.Struct, frozen=True, cache_hash=True):
    """Cockpit's own look at the nodes, by the rules of the scheduler's filters."""

    nodes: int
    """The number of nodes."""
    fitting: int
    """The number of nodes that could take one of the waiting pods now."""
    when_empty: int
    """The number of nodes that could take one if no other pod were on them."""
    wanted: tuple[tuple[str, int], ...]
    """What a pod wants of each resource that is short somewhere, in the units of `NodesExcluded.free`."""
    excluded: tuple[NodesExcluded, ...] = ()
    """The nodes by cause; of a resource, those with most free first. A node that lacks several is counted with each."""


class ClaimTrouble(StrEnum):
    """Why a volume claim has no volume."""

    __hash__ = str.__hash__

    ABSENT = "absent"
    """There is no claim of this name."""
    NO_CLASS = "no_class"
    """Its storage class does not exist, or it names none and the cluster has no default."""
    UNBOUND = "unbound"
    """Its volume has not been provided yet."""


class ClaimWaits(msgspec.Struct, frozen=True):
    """A volume claim of the pods that keeps them back."""

    claim: str
    trouble: ClaimTrouble
    storage_class: str = ""
    """The storage class that it names; empty: none."""


class Unschedulable(msgspec.Struct, frozen=True, cache_hash=True, tag="unschedulable"):
    """The cluster's scheduler finds no node for some of the job's pods."""

    pods: int
    """The number of pods that wait."""
    wanted: int
    """The number of pods that the job has."""
    nodes: int | None
    """The number of nodes that the scheduler looked at; None: its message has another form."""
    excluded: tuple[NodesExcluded, ...] = ()
    """The nodes by cause, most nodes first."""
    message: str = ""
    """The scheduler's own message where it has another form."""
    preemption: str = ""
    """Why preempting other pods would not help, in the scheduler's words; empty: it does not say."""
    by_nodes: NodesLookedAt | None = None
    """What the nodes' own objects say; None: they were not looked at."""
    message_at: Millis | None = None
    """When the scheduler last said so; None: unknown."""
    claims: tuple[ClaimWaits, ...] = ()
    """The volume claims that keep the pods back."""


class QuotaUse(msgspec.Struct, frozen=True):
    """A quota of the namespace of which too little is left for the job."""

    quota: str
    resource: str
    """As pods request it; `pods`: the number of pods."""
    wanted: int
    """What the job's pods request together, like the two below in thousandths of a CPU, bytes or whole units."""
    used: int
    most: int


class PodsNotCreated(msgspec.Struct, frozen=True, cache_hash=True, tag="pods_not_created"):
    """The job has no pods yet: its controller has not made them, or cannot."""

    kind: str
    """The kind of the job, whose controller makes the pods."""
    message: str = ""
    """The controller's own words; empty: it says nothing."""
    quotas: tuple[QuotaUse, ...] = ()
    """The quotas of the namespace that keep the pods from being created."""


class FlavorObstacle(StrEnum):
    """Why a flavor's quota does not serve a job."""

    __hash__ = str.__hash__

    SHORT = "short"
    """Less is free than it asks for."""
    TOO_LARGE = "too_large"
    """It asks for more than its queue could ever use."""
    EXCLUDED = "excluded"
    """Its pods cannot run on the flavor's nodes."""
    NO_QUOTA = "no_quota"
    """Its queue has no quota for the resource at all."""


class FlavorTried(msgspec.Struct, frozen=True):
    """A flavor that the queue manager tried, and why it does not serve the job."""

    flavor: str
    obstacle: FlavorObstacle
    resource: str = ""
    """The resource that is short; empty where the nodes are the obstacle."""
    missing: str = ""
    """How much more is needed, in the manager's notation; empty: it does not say."""
    most: str = ""
    """The most that the queue could ever use; empty: it does not say."""
    about: str = ""
    """The taint or the rule that excludes the flavor."""


class QuotaBorrower(msgspec.Struct, frozen=True):
    """A queue that uses quota of others."""

    queue: str
    amount: str
    reclaim: str
    """Which of its jobs may be preempted to take the quota back: the policy's name, `Never`, `Any` or
    `LowerPriority`."""


class QuotaInUse(msgspec.Struct, frozen=True):
    """A quota that is short, and who uses it."""

    queue: str
    """The queue with the quota, for Kueue its cluster queue."""
    flavor: str
    resource: str
    asked: str
    free: str
    """What the job could use now, with what it may borrow."""
    used: str
    """What the queue uses now."""
    nominal: str
    """The queue's own quota."""
    borrowers: tuple[QuotaBorrower, ...] = ()
    """Other queues that use more than their own."""


class QueueWaits(msgspec.Struct, frozen=True, cache_hash=True, tag="queue_waits"):
    """A queue manager, such as Kueue, has not admitted the job."""

    manager: str
    queue: str
    """The queue that the job names."""
    code: str = ""
    """The manager's word, such as `Pending` or `Preempted`; empty: it has not looked at the job yet."""
    message: str = ""
    """The manager's own sentence."""
    never: bool = False
    """Whether the queue can never admit the job as it is."""
    flavors: tuple[FlavorTried, ...] = ()
    """The flavors that were tried, in their order."""
    until: Millis | None = None
    """Until when it is not looked at again; None: it is not put back."""
    quotas: tuple[QuotaInUse, ...] = ()
    """The quotas that are short, as far as the user may read them; only where one job is explained."""
    judged: bool = False
    """Whether cockpit found the reason from the quotas: the manager has said nothing of this job by itself."""
    share: int | None = None
    """How much of its cohort its queue uses for its weight, where that decides who comes first; None: it does not."""
    position_in_queue: int | None = None
    """The position in the queue that the job names, from 1, where that is not the queue of the explanation."""
    jobs: tuple[JobId, ...] = ()
    """The jobs that were preempted for it and still end, as far as they are known."""
    ending: int = 0
    """The number of all such jobs."""


class Gated(msgspec.Struct, frozen=True, cache_hash=True, tag="scheduling_gated"):
    """Scheduling gates keep the pods off the scheduler until a controller removes them."""

    gates: tuple[str, ...]


class StartStep(StrEnum):
    """What a placed pod has to do before its command runs."""

    IMAGE = "image"
    VOLUME = "volume"
    INIT = "init"
    CONFIG = "config"
    """Its configuration: a Secret or ConfigMap that it names."""
    CONTAINER = "container"
    RESTART = "restart"
    """Its command failed, and is started again after a pause."""


class PullPolicy(StrEnum):
    """A container's `imagePullPolicy`, where it is why the container lacks its image."""

    NEVER = "Never"
    """Nothing pulls the image, and the node does not have it."""
    ALWAYS = "Always"
    """The registry, which does not answer, is asked even if the node has the image."""


class PodsStarting(msgspec.Struct, frozen=True, cache_hash=True, tag="pods_starting"):
    """Pods have a node, and their command does not run yet."""

    step: StartStep
    pods: int
    code: str = ""
    """Kubernetes' word, such as `ImagePullBackOff`."""
    message: str = ""
    """Kubernetes' sentence about it."""
    pulls: PullPolicy | None = None
    """The policy for which an image is missing; None: another cause, or not known."""


class MemberState(StrEnum):
    """Why a member of a gang does not run."""

    NOT_CREATED = "not_created"
    """Its controller has not created it."""
    NO_NODE = "no_node"
    """The scheduler finds no node for it."""
    WOULD_FIT = "would_fit"
    """The scheduler has a node for it, and waits for the others."""
    NOT_CONSIDERED = "not_considered"
    """The scheduler has not reported on it."""
    GATED = "gated"
    """Scheduling gates keep it back."""
    STARTING = "starting"
    """It has a node, and its command does not run yet."""


class MissingMembers(msgspec.Struct, frozen=True, cache_hash=True):
    """Members of a gang that do not run, for the same cause."""

    count: int
    state: MemberState
    names: tuple[str, ...] = ()
    """The names of the first of these pods; empty for pods that do not exist."""
    role: str = ""
    """The role of pods that do not exist, such as `Worker`; empty: it is not known."""
    reason: Unschedulable | Gated | PodsStarting | None = None
    """What is reported of these pods; None: no more than the state says."""


class MembersPlaced(msgspec.Struct, frozen=True):
    """Nodes that could each take the same number of a gang's missing members now."""

    members: int
    """The number of members on each of them."""
    nodes: int
    names: tuple[str, ...] = ()
    """The names of the first of these nodes."""


class MembersToPlace(msgspec.Struct, frozen=True, cache_hash=True):
    """Where the missing members of a gang fit, by cockpit's own look at the nodes."""

    missing: int
    """The number of members without a node that the gang needs to start."""
    fitting: int
    """How many of them the nodes could take now together."""
    places: tuple[MembersPlaced, ...] = ()
    """The nodes that could take them."""
    when_empty: int = 0
    """The most members that a node could take, were it empty."""
    looked_at: NodesLookedAt | None = None
    """Why the other nodes can take no member of those that are left over; None: none is."""


class GangIncomplete(msgspec.Struct, frozen=True, cache_hash=True, tag="gang_incomplete"):
    """The job's pods start together or not at all, and some of them are missing."""

    gang: str
    """The name of the pod group; empty: the gang is the job's own pods."""
    least: int
    """The number of pods without which none starts."""
    ready: int
    """The number of pods that have a node or have ended well."""
    missing: tuple[MissingMembers, ...] = ()
    """The pods that do not run, those that the scheduler refuses first."""
    message: str = ""
    """The scheduler's own sentence about the group; empty: it says nothing, or no more than the pods do."""
    by_nodes: MembersToPlace | None = None
    """What the nodes could take of the missing pods; only where one job is explained."""


PodReason = QueueWaits | Unschedulable | PodsNotCreated | Gated | PodsStarting | GangIncomplete | FleetWaits
