"""Why a queued job does not start: typed, with data. `present.reasons` alone turns them into sentences."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from cockpit.model.ids import JobId, Millis, NodeName
from cockpit.model.spec import DependencyKind


class Resource(StrEnum):
    """What can be short on a node."""

    CPUS = "cpus"
    MEMORY = "memory"
    CARDS = "cards"
    """Whole cards, counted in cards."""
    CARD_SHARE = "card_share"
    """A share of one card, counted in thousandths."""
    NODE = "node"
    """A node for itself (exclusive), counted in nodes."""


class NodeShortfall(msgspec.Struct, frozen=True):
    """What one node lacks for one replica: the first resource it is short of."""

    node: NodeName
    resource: Resource
    free: int
    """Free and of an acceptable model, in the resource's unit (CPUs, MiB, cards, thousandths of a card)."""


class Held(msgspec.Struct, frozen=True, cache_hash=True, tag="held"):
    """A person holds the job back."""

    by: str
    since: Millis | None
    """None: nobody knows; another scheduler does not tell."""


class NotEvaluated(msgspec.Struct, frozen=True, cache_hash=True, tag="not_evaluated"):
    """No scheduling cycle has looked at it yet, or judging it failed."""

    failure: str = ""
    """The exception that a defect raised while the job was judged; empty: its turn has not come yet."""


class NotEnoughFree(msgspec.Struct, frozen=True, cache_hash=True, tag="not_enough_free"):
    """Too few eligible nodes have room right now."""

    resource: Resource
    """The resource that the nearest node lacks."""
    wanted: int
    """Per node, in the resource's unit."""
    card_models: tuple[str, ...]
    """Acceptable models; empty: any."""
    nodes_wanted: int
    nodes_with_room: int
    nearest: tuple[NodeShortfall, ...]
    """Eligible nodes that come nearest, best first, at most three."""
    other_models_free: int = 0
    """Free whole cards on models that the job does not accept."""
    preemptable: int | None = None
    """Running jobs that it may preempt, all of which would not be enough; None: it may preempt nobody, or its turn to
    did not come."""


class NeverFits(msgspec.Struct, frozen=True, cache_hash=True, tag="never_fits"):
    """No eligible node could hold it even when empty, or there are too few such nodes."""

    resource: Resource | None
    """None: every node is big enough, there are just too few."""
    wanted: int
    most: int
    """The most that any eligible node has in all (or the number of nodes that are big enough)."""
    card_models: tuple[str, ...] = ()
    taints: tuple[str, ...] = ()
    """Of nodes that could hold it: what the job does not tolerate of them."""
    dedicated: tuple[str, ...] = ()
    """Pools of nodes that could hold it, which are for jobs that name them."""


class NoEligibleNode(msgspec.Struct, frozen=True, cache_hash=True, tag="no_eligible_node"):
    """Nothing matches the pins, pool, driver version, labels or state asked for, or what does keeps the job off."""

    pins: tuple[NodeName, ...] = ()
    pool: str = ""
    driver_version: str = ""
    out_of_service: tuple[NodeName, ...] = ()
    """Nodes that match but are drained or down."""
    labels: tuple[str, ...] = ()
    """Asked for: `disk=ssd`."""
    taints: tuple[str, ...] = ()
    """Of nodes that match: what the job does not tolerate of them."""
    dedicated: tuple[str, ...] = ()
    """Pools of nodes that match, which are for jobs that name them."""
    launcher: bool = False
    """It is the launcher of the job that may be on none."""
    why_out: tuple[str, ...] = ()
    """State and its reason of each node that is out of service: `drained: fan broken`, `down`."""


class WouldDelay(msgspec.Struct, frozen=True, cache_hash=True, tag="would_delay"):
    """It fits now, but would delay a job ahead of it that has a reservation."""

    ahead: JobId
    reserved_at: Millis


class BeginsLater(msgspec.Struct, frozen=True, cache_hash=True, tag="begins_later"):
    """Its owner wants it to start no sooner."""

    begin_at: Millis


class WaitsForJob(msgspec.Struct, frozen=True, cache_hash=True, tag="waits_for_job"):
    """A dependency has not come true yet: the first of them."""

    kind: DependencyKind
    job: JobId
    """0 for a singleton whose predecessor is not known."""
    more: int = 0
    """How many other conditions are left."""
    task: int | None = None
    """Of the array `job`: the one that is meant."""


class DependencyNever(msgspec.Struct, frozen=True, cache_hash=True, tag="dependency_never"):
    """A dependency can never come true: that job ended otherwise."""

    kind: DependencyKind
    job: JobId
    task: int | None = None
    """Of the array `job`: the one that is meant."""


class ArrayFull(msgspec.Struct, frozen=True, cache_hash=True, tag="array_full"):
    """As many tasks of its array run as may at once."""

    array: JobId
    at_once: int


class PartitionRule(StrEnum):
    """What a partition may say no to."""

    STATE = "state"
    MAX_TIME = "max_time"
    MIN_NODES = "min_nodes"
    MAX_NODES = "max_nodes"
    ACCOUNT = "account"
    QOS = "qos"
    USER = "user"


class PartitionRefuses(msgspec.Struct, frozen=True, cache_hash=True, tag="partition_refuses"):
    """A rule of its partition stops it, whatever is free."""

    partition: str
    rule: PartitionRule
    allowed: str = ""
    """The bound, seconds or nodes, or the names allowed, as text; the state for STATE."""
    asked: str = ""


class LimitReached(msgspec.Struct, frozen=True, cache_hash=True, tag="limit_reached"):
    """A limit of an association or QOS stops it."""

    holder: str
    """Whose limit: `account nlp`, `user ann of account nlp`, `qos high`, `partition gpu`."""
    limit: str
    """sacctmgr's name: `MaxJobs`, `GrpTRES`, `MaxTRESPerUser`, …"""
    resource: str = ""
    """The TRES, for limits on one."""
    allowed: float = 0
    used: float = 0
    """By jobs that run now, or decayed, as the limit counts."""
    asked: float = 0

    @property
    def never(self) -> bool:
        """It asks for more (of a least: for less) than the limit allows in all: waiting does not help."""
        return self.asked < self.allowed if self.limit.startswith("Min") else self.asked > self.allowed


class QuotaFull(msgspec.Struct, frozen=True, cache_hash=True, tag="quota_full"):
    """A node of the quota tree may not hold so much: its own leaf, or one above it."""

    queue: str
    """The node's path, `root/child-2`."""
    resource: str
    """The TRES."""
    allowed: float
    """The node's max."""
    used: float
    """By all that runs below the node."""
    asked: float

    @property
    def never(self) -> bool:
        """It asks for more than the node may hold in all: waiting does not help."""
        return self.asked > self.allowed


class QuotaMaxJobs(msgspec.Struct, frozen=True, cache_hash=True, tag="quota_max_jobs"):
    """As many jobs of a node of the quota tree run as may at once (`kube-queue/max-jobs`)."""

    queue: str
    at_once: int


class NoAssociation(msgspec.Struct, frozen=True, cache_hash=True, tag="no_association"):
    """The cluster serves users with an association only, and this one has none."""

    user: str
    account: str = ""
    partition: str = ""
    """Where that is, for a user with associations in other partitions; else empty."""


class QosRefused(msgspec.Struct, frozen=True, cache_hash=True, tag="qos_refused"):
    """The association does not allow this QOS."""

    qos: str
    allowed: tuple[str, ...]


class InReservation(msgspec.Struct, frozen=True, cache_hash=True, tag="in_reservation"):
    """The reservation it names has not begun, is over or too soon, is not there, or is not for its owner."""

    name: str
    start_at: Millis | None = None
    """When it begins; None: it has, or is over, gone, or not for the owner."""
    end_at: Millis | None = None
    """When it ends, where that is too soon for the job's time limit, however early in it the job starts."""


class NodesReserved(msgspec.Struct, frozen=True, cache_hash=True, tag="nodes_reserved"):
    """There would be room but for nodes kept for a reservation that it would run into."""

    name: str
    start_at: Millis
    end_at: Millis


class MakingRoom(msgspec.Struct, frozen=True, cache_hash=True, tag="making_room"):
    """Others give way for it; it starts when they are gone."""

    jobs: tuple[JobId, ...]
    until: Millis | None
    """When the last of them is gone; None: nobody knows."""


class StandsStill(msgspec.Struct, frozen=True, cache_hash=True, tag="stands_still"):
    """It was running, and is suspended: the one reason of a job that does not wait in the queue."""

    by: str = ""
    """The person who wants it; empty: other jobs have its CPUs."""
    jobs: tuple[JobId, ...] = ()


class BehindHead(msgspec.Struct, frozen=True, cache_hash=True, tag="behind_head"):
    """Nothing passes the first job that waits, on a cluster without backfill, or beyond the depth of it."""

    ahead: JobId


class ClusterShort(msgspec.Struct, frozen=True, cache_hash=True, tag="cluster_short"):
    """No cluster of the fleet has so much free in all, as far as totals go; this one comes nearest."""

    member: str
    resource: Resource
    wanted: int
    """By the whole job, in the resource's unit."""
    free: int
    card_models: tuple[str, ...] = ()


class NoRoomThere(msgspec.Struct, frozen=True, cache_hash=True, tag="no_room_there"):
    """Clusters of the fleet have enough free in all, but had no room for such a job, and nothing came free since."""

    members: tuple[str, ...]
    since: Millis
    """When it was given up there last."""


class NoQueue(msgspec.Struct, frozen=True, cache_hash=True, tag="no_queue"):
    """It starts only out of a queue (`suspension.scheduling`), and its project has none."""

    project: str


class Told(msgspec.Struct, frozen=True, cache_hash=True, tag="told"):
    """The cluster is another scheduler's, and this is why it says that the job waits: its own word, as Slurm's reason
    codes. Words that nobody knows stay as they are."""

    code: str
    about: str = ""
    """What it is about, where more is known: a QOS, an account, a licence, nodes."""


Limit = LimitReached | QuotaFull | QuotaMaxJobs
"""What a bound on what runs says."""

OfOne = NotEnoughFree | NeverFits | NoEligibleNode | NodesReserved | Limit
"""What may stop one of a job's node specs by itself."""


class NoAlternative(msgspec.Struct, frozen=True, cache_hash=True, tag="no_alternative"):
    """None of the job's node specs can start, and not all of them for the same reason."""

    specs: tuple[OfOne, ...]
    """Of each of them, in the job's order."""


Reason = (
    Held
    | NotEvaluated
    | NotEnoughFree
    | NeverFits
    | NoEligibleNode
    | NoAlternative
    | WouldDelay
    | BeginsLater
    | WaitsForJob
    | DependencyNever
    | ArrayFull
    | PartitionRefuses
    | LimitReached
    | QuotaFull
    | QuotaMaxJobs
    | NoQueue
    | NoAssociation
    | QosRefused
    | InReservation
    | NodesReserved
    | BehindHead
    | ClusterShort
    | NoRoomThere
    | MakingRoom
    | StandsStill
    | Told
)


_STARTS_NOTHING = ("down", "inactive")
"""States of a partition that is there; `model.cluster` is not imported, since it takes a command longer to start."""


def never_starts(reason: Reason) -> bool:
    """Whether no free state of the cluster could start the job: the job, the rules or the nodes would have to change.

    A partition that is down and nodes that are out of service come back as they are, so they do not count.
    """
    match reason:
        case NoAlternative():
            return all(never_starts(one) for one in reason.specs)
        case NoEligibleNode():
            return not reason.out_of_service
        case PartitionRefuses():
            return reason.rule is not PartitionRule.STATE or reason.allowed not in _STARTS_NOTHING
        case LimitReached() | QuotaFull():
            return reason.never
        case InReservation():
            return reason.start_at is None or reason.end_at is not None
        case _:
            return isinstance(reason, DependencyNever | NeverFits | NoAssociation | QosRefused | NoQueue)


class Waited(msgspec.Struct, frozen=True):
    """What a job waited for, from a moment on until the next such moment or its start."""

    since: Millis
    reason: Reason | None
    """None: nobody looked from then on."""


class Explanation(msgspec.Struct, frozen=True):
    """The answer to "why does my job not start?", derived for the cycle just ended."""

    job: JobId
    reason: Reason
    position: int
    """Behind so many less one that are considered."""
    ahead: tuple[JobId, ...]
    """Queued jobs before it, nearest to the head first, at most ten."""
    reserved_at: Millis | None = None
    """When the plan starts it at the latest, if it has a reservation."""

    @property
    def place(self) -> int | None:
        """In the queue, from 1; None: a job that a person holds back, or that never starts, has none."""
        return None if isinstance(self.reason, Held) or never_starts(self.reason) else self.position
