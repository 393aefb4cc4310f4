"""Where a fleet has sent a job, by which policy, and why it is not on the other member clusters."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from cockpit.model.ids import Millis


class MemberObstacle(StrEnum):
    """Why a member cluster does not get a job, by what the fleet knows of the member."""

    __hash__ = str.__hash__

    NOT_READY = "not_ready"
    """It does not answer the fleet."""
    EXCLUDED = "excluded"
    """The policy does not name it."""
    TAINT = "taint"
    """It has a taint that the policy does not tolerate."""
    KIND = "kind"
    """It does not serve the kind of the job."""
    SHORT = "short"
    """Its totals have too little free."""
    SHORT_NODES = "short_nodes"
    """Its totals suffice, and by its resource models too few of its nodes have enough free."""
    EVICTED = "evicted"
    """The job has been taken away from it."""
    OTHER_CHOSEN = "other_chosen"
    """Nothing is known against it: the fleet has chosen another member."""
    UNKNOWN = "unknown"
    """Nothing is known against it, and the fleet has chosen none."""


class AmountThere(msgspec.Struct, frozen=True):
    """What a job asks of a resource, and what a member has free, in thousandths of a CPU, bytes or whole units."""

    resource: str
    asked: int
    free: int


class MemberLookedAt(msgspec.Struct, frozen=True):
    """A member cluster that does not have the job."""

    cluster: str
    obstacle: MemberObstacle
    about: str = ""
    """The taint, the kind, or the fleet's own words."""
    amounts: tuple[AmountThere, ...] = ()
    """What the whole job asks, and what is free there by the member's totals; empty: the member tells no totals."""
    replicas: int = 0
    """The replicas of the job that ask for the same; 0: its resource models say nothing of them."""
    fitting: int = 0
    """How many of them find a node by the member's resource models."""


class FleetStep(StrEnum):
    """How far a fleet has brought a job that does not run."""

    __hash__ = str.__hash__

    NO_POLICY = "no_policy"
    """No policy selects it."""
    UNSEEN = "unseen"
    """The fleet has not bound it yet, and has said nothing."""
    SUSPENDED = "suspended"
    """Its policy suspends its scheduling until it is dequeued."""
    UNSCHEDULED = "unscheduled"
    """The fleet's scheduler finds no cluster."""
    NOT_SENT = "not_sent"
    """It is bound, and its policy suspends that it is sent there."""
    NOT_APPLIED = "not_applied"
    """A member has not taken it."""
    FAILED_THERE = "failed_there"
    """It has failed there, and the fleet gives the placement up after a time."""
    SENT = "sent"
    """A member has it, and does not run it yet."""


class FleetWaits(msgspec.Struct, frozen=True, cache_hash=True, tag="fleet_waits"):
    """A fleet of Kubernetes clusters has not brought the job to run on a member."""

    step: FleetStep
    policy: str = ""
    """The name of its policy; empty: it has none."""
    clusters: tuple[str, ...] = ()
    """The members to which it is bound."""
    message: str = ""
    """The fleet's own words; empty: it says nothing."""
    seconds: int | None = None
    """After how many seconds a failed placement is given up."""
    members: tuple[MemberLookedAt, ...] = ()
    """The members that do not have it."""


class FleetPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """The PropagationPolicy of a job."""

    name: str
    namespace: str
    """Empty: the policy is for all namespaces."""
    api_version: str
    division: str = ""
    """`Divided` over members, or `Duplicated` on each."""
    gang: bool = False
    """Whether its replicas start together or not at all (`customSchedulingType: Gang`)."""
    propagates_dependencies: bool = False
    suspended: str = ""
    """What it suspends, `scheduling` or `dispatching`; empty: nothing."""
    toleration_seconds: int | None = None
    """How long a failed placement is tolerated; None: it is never given up."""
    purge_mode: str = ""
    """How a placement that is given up is removed."""


class BoundCluster(msgspec.Struct, frozen=True, kw_only=True):
    """A member to which a job is bound."""

    cluster: str
    replicas: int
    """0: the fleet counts none of this kind."""
    roles: tuple[tuple[str, int], ...] = ()
    """The replicas by role, as far as the fleet tells them."""
    state: str = ""
    """The member's own word for the job's state; empty: it has reported none."""
    applied: bool = False
    """Whether the member has the object."""
    message: str = ""
    """Why the member does not have it."""
    health: str = ""
    """The fleet's verdict: Healthy, Unhealthy or Unknown."""


class Eviction(msgspec.Struct, frozen=True, kw_only=True):
    """A placement that the fleet takes back."""

    cluster: str
    reason: str
    message: str = ""
    at: Millis | None = None


class FleetPlacement(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a fleet tells of one job."""

    state: str
    """The state of the fleet's own object, in its own word."""
    policy: FleetPolicy | None
    bound: tuple[BoundCluster, ...] = ()
    event: str = ""
    """The message of the event in which the scheduler last reported the binding."""
    elsewhere: tuple[MemberLookedAt, ...] = ()
    """The other members, with the reason."""
    evictions: tuple[Eviction, ...] = ()
