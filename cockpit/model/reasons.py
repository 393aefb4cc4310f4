"""The reasons why a queued job does not start, as types with data. Only `present.reasons` turns them into sentences."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from cockpit.model.ids import JobId, Millis, NodeName
from cockpit.model.pod_reasons import PodReason, QueueWaits
from cockpit.model.spec import DependencyKind


class Resource(StrEnum):
    """A resource of which a node may have too little."""

    CPUS = "cpus"
    MEMORY = "memory"
    CARDS = "cards"
    """Whole cards, counted in cards."""
    CARD_SHARE = "card_share"
    """A share of one card, counted in thousandths."""
    NODE = "node"
    """A whole node (exclusive), counted in nodes."""


class NodeShortfall(msgspec.Struct, frozen=True):
    """The first resource of which a node has too little for one replica."""

    node: NodeName
    resource: Resource
    free: int
    """The free amount of an acceptable model, in the resource's unit (CPUs, MiB, cards, thousandths of a card)."""


class Held(msgspec.Struct, frozen=True, cache_hash=True, tag="held"):
    """The job is held."""

    by: str
    """The user who holds it."""
    since: Millis | None
    """When it was held; None: unknown, as on clusters of other schedulers."""


class NotEvaluated(msgspec.Struct, frozen=True, cache_hash=True, tag="not_evaluated"):
    """No scheduling pass has considered the job yet, or considering it failed."""

    failure: str = ""
    """The exception, caused by a defect, that was raised for the job; empty: no pass has considered it yet."""


class NotEnoughFree(msgspec.Struct, frozen=True, cache_hash=True, tag="not_enough_free"):
    """Too few eligible nodes have enough free resources now."""

    resource: Resource
    """The resource that the nearest node lacks."""
    wanted: int
    """The amount that the job needs on each node, in the resource's unit."""
    card_models: tuple[str, ...]
    """The acceptable card models; empty: any."""
    nodes_wanted: int
    """The number of nodes that the job needs."""
    nodes_with_room: int
    """The number of nodes that have enough free."""
    nearest: tuple[NodeShortfall, ...]
    """The eligible nodes that lack least, best first, at most three."""
    # Apart from `nearest`, which counts acceptable models alone: it points to a way out.
    other_models_free: int = 0
    """The number of free whole cards of models that the job does not accept."""
    preemptable: int | None = None
    """The number of running jobs that it may preempt, which would not free enough; None: it may preempt none, or the
    pass did not try."""
    excluded: tuple[tuple[NodeName, str], ...] = ()
    """The nodes where this job's check failed, so that it may not use them for now, each with the cause."""


class NeverFits(msgspec.Struct, frozen=True, cache_hash=True, tag="never_fits"):
    """No eligible node could hold the job even when empty, or there are too few such nodes."""

    resource: Resource | None
    """The resource of which every node has too little; None: nodes are big enough, but there are too few."""
    wanted: int
    """The amount that the job needs on each node, or the number of nodes that it needs."""
    most: int
    """The most that any eligible node has in total, or the number of nodes that are big enough."""
    card_models: tuple[str, ...] = ()
    """The acceptable card models; empty: any."""
    taints: tuple[str, ...] = ()
    """The taints that the job does not tolerate, of nodes that could hold it."""
    dedicated: tuple[str, ...] = ()
    """The dedicated pools, which the job does not name, of nodes that could hold it."""
    partition: str = ""
    """The partition whose nodes are meant, where others of the cluster could hold the job; empty: none could."""


class NoEligibleNode(msgspec.Struct, frozen=True, cache_hash=True, tag="no_eligible_node"):
    """No node matches the names, pool, driver version and labels that the job asks for, or the matching ones are out
    of service, tainted or dedicated."""

    pins: tuple[NodeName, ...] = ()
    pool: str = ""
    driver_version: str = ""
    out_of_service: tuple[NodeName, ...] = ()
    """The matching nodes that are drained or down."""
    labels: tuple[str, ...] = ()
    """The labels that the job asks for, such as `disk=ssd`."""
    taints: tuple[str, ...] = ()
    """The taints of matching nodes that the job does not tolerate."""
    dedicated: tuple[str, ...] = ()
    """The dedicated pools of matching nodes, which the job does not name."""
    launcher: bool = False
    """Whether it is the job's launcher that has no eligible node."""
    why_out: tuple[str, ...] = ()
    """The state and its reason for each node that is out of service: `drained: fan broken`, `down`."""
    partition: str = ""
    """The partition whose nodes are meant, where others of the cluster match; empty: none does."""
    excluded: tuple[tuple[NodeName, str], ...] = ()
    """The matching nodes where this job's check failed, so that it may not use them for now, each with the cause."""
    prices: tuple[tuple[NodeName, int], ...] = ()
    """The cheapest of the matching nodes whose present prices are above the job's `max_price`, in thousandths."""


class WouldDelay(msgspec.Struct, frozen=True, cache_hash=True, tag="would_delay"):
    """The job would fit now, but would delay a job ahead of it that has a backfill reservation."""

    ahead: JobId
    reserved_at: Millis


class BeginsLater(msgspec.Struct, frozen=True, cache_hash=True, tag="begins_later"):
    """The job's begin time has not come yet."""

    begin_at: Millis


class WaitsForJob(msgspec.Struct, frozen=True, cache_hash=True, tag="waits_for_job"):
    """A dependency is not met yet; this is the first of them."""

    kind: DependencyKind
    job: JobId
    """The job or array that it waits for; 0 for a singleton whose predecessor is not known."""
    more: int = 0
    """The number of other dependencies that are not met."""
    task: int | None = None
    """The index of the task of array `job` that it waits for; None: the whole job or array."""


class DependencyNever(msgspec.Struct, frozen=True, cache_hash=True, tag="dependency_never"):
    """A dependency can never be met, because of how the other job ended."""

    kind: DependencyKind
    job: JobId
    task: int | None = None
    """The index of the task of array `job` that it depends on; None: the whole job or array."""


class ArrayFull(msgspec.Struct, frozen=True, cache_hash=True, tag="array_full"):
    """The most tasks of the job's array that may run at the same time are running."""

    array: JobId
    at_once: int


class PartitionRule(StrEnum):
    """A rule by which a partition may refuse a job."""

    STATE = "state"
    MAX_TIME = "max_time"
    MIN_NODES = "min_nodes"
    MAX_NODES = "max_nodes"
    ACCOUNT = "account"
    QOS = "qos"
    USER = "user"


class PartitionRefuses(msgspec.Struct, frozen=True, cache_hash=True, tag="partition_refuses"):
    """A rule of the job's partition forbids to start it, whatever resources are free."""

    partition: str
    rule: PartitionRule
    allowed: str = ""
    """The bound in seconds or nodes, or the allowed names, as text; for STATE the partition's state."""
    asked: str = ""
    """The job's own value, as text."""


class LimitReached(msgspec.Struct, frozen=True, cache_hash=True, tag="limit_reached"):
    """A limit of an association or QOS forbids to start the job."""

    holder: str
    """What the limit belongs to: `account nlp`, `user ann of account nlp`, `qos high`, `partition gpu`."""
    limit: str
    """The limit's name in sacctmgr: `MaxJobs`, `GrpTRES`, `MaxTRESPerUser`, …"""
    resource: str = ""
    """The TRES that the limit is on; empty: it is on no single one."""
    allowed: float = 0
    used: float = 0
    """The amount used by running jobs, or the decayed usage, whichever the limit counts."""
    asked: float = 0

    @property
    def never(self) -> bool:
        """Whether the job alone breaks the limit, so that waiting does not help."""
        # MinTRES is the one kind of limit that asks for more rather than less.
        return self.asked < self.allowed if self.limit.startswith("Min") else self.asked > self.allowed


class QuotaFull(msgspec.Struct, frozen=True, cache_hash=True, tag="quota_full"):
    """The maximum of the job's queue in the quota tree, or of a queue above it, would be exceeded."""

    queue: str
    """The path of the queue, such as `root/child-2`."""
    resource: str
    """The TRES."""
    allowed: float
    """The queue's maximum."""
    used: float
    """The amount used by all running jobs of the queue and those below it."""
    asked: float

    @property
    def never(self) -> bool:
        """Whether the job alone exceeds the maximum, so that waiting does not help."""
        return self.asked > self.allowed


class QuotaMaxJobs(msgspec.Struct, frozen=True, cache_hash=True, tag="quota_max_jobs"):
    """The most jobs of a queue of the quota tree that may run at the same time are running (`kube-queue/max-jobs`)."""

    queue: str
    at_once: int


class QuotaWaits(msgspec.Struct, frozen=True, cache_hash=True, tag="quota_waits"):
    """A queue manager keeps the job in its queue until it fits into the cluster's quota tree."""

    waits: QueueWaits
    limit: QuotaFull | QuotaMaxJobs
    """The first node, from the job's own upwards, whose maximum would be exceeded."""
    borrowers: tuple[tuple[str, float], ...] = ()
    """The leaves there that use more than their minimum of the resource, each with the amount, the largest first."""
    after: JobId | None = None
    """The running job with whose end the job would fit, if the jobs there use their whole time limits; None: it is not
    known, as some of them have no time limit."""
    fits_at: Millis | None = None
    """When that job ends at the latest."""

    @property
    def never(self) -> bool:
        """Whether the job alone exceeds the maximum, so that waiting does not help."""
        return isinstance(self.limit, QuotaFull) and self.limit.never


class NoAssociation(msgspec.Struct, frozen=True, cache_hash=True, tag="no_association"):
    """The cluster serves only users with an association, and the job's owner has none for it."""

    user: str
    account: str = ""
    """The account that the job names; empty: it names none."""
    partition: str = ""
    """The partition without association, for a user with associations in other partitions; else empty."""


class QosRefused(msgspec.Struct, frozen=True, cache_hash=True, tag="qos_refused"):
    """The owner's association does not allow the job's QOS."""

    qos: str
    allowed: tuple[str, ...]


class InReservation(msgspec.Struct, frozen=True, cache_hash=True, tag="in_reservation"):
    """The job's reservation has not begun, is too short, is over, does not exist, or is not for its owner."""

    name: str
    start_at: Millis | None = None
    """When it begins; None: it has begun, is over, does not exist, or is not for the owner."""
    end_at: Millis | None = None
    """When it ends, if it is too short for the job's time limit whenever the job starts; None: it is not."""


class NodesReserved(msgspec.Struct, frozen=True, cache_hash=True, tag="nodes_reserved"):
    """The job would run into an advance reservation, and outside its nodes the cluster has too few that are free, or
    too few at all."""

    name: str
    start_at: Millis
    end_at: Millis


class EvictionPending(msgspec.Struct, frozen=True, cache_hash=True, tag="making_room"):
    """Running jobs are being evicted for the job; it starts when they have ended."""

    jobs: tuple[JobId, ...]
    """The evicted jobs."""
    until: Millis | None
    """When the last of them ends at the latest; None: unknown."""


class SuspendedReason(msgspec.Struct, frozen=True, cache_hash=True, tag="stands_still"):
    """The job was running and is suspended. No other reason is about a job outside the queue."""

    by: str = ""
    """The user who suspended it; empty: it was suspended for other jobs."""
    jobs: tuple[JobId, ...] = ()
    """The jobs that it was suspended for."""


class BehindHead(msgspec.Struct, frozen=True, cache_hash=True, tag="behind_head"):
    """No job may overtake the first waiting one: the cluster has no backfill, or the job is beyond backfill's depth."""

    ahead: JobId


class ClusterShort(msgspec.Struct, frozen=True, cache_hash=True, tag="cluster_short"):
    """No cluster of the fleet has enough free by its totals; the reason is about the one that lacks least."""

    member: str
    resource: Resource
    wanted: int
    """The amount that the whole job needs, in the resource's unit."""
    free: int
    """The free amount of the whole cluster."""
    card_models: tuple[str, ...] = ()


class NoMemberPlacement(msgspec.Struct, frozen=True, cache_hash=True, tag="no_room_there"):
    """Clusters of the fleet have enough free by their totals, but could not place the job, and no resources were
    released there since."""

    members: tuple[str, ...]
    since: Millis
    """When the job's placement was last given up there."""


class NoQueue(msgspec.Struct, frozen=True, cache_hash=True, tag="no_queue"):
    """The job starts only out of a queue of the quota tree (`suspension.scheduling`), and its project has none."""

    project: str


class SchedulerReason(msgspec.Struct, frozen=True, cache_hash=True, tag="told"):
    """Another scheduler runs the cluster, and this is the reason that it gives, such as Slurm's reason codes."""

    code: str
    """The scheduler's word for the reason, known to cockpit or not."""
    about: str = ""
    """The QOS, account, licence or nodes that it is about; empty: unknown."""


Limit = LimitReached | QuotaFull | QuotaMaxJobs
"""Reasons by which a limit on running jobs forbids to start a job."""

OfOne = NotEnoughFree | NeverFits | NoEligibleNode | NodesReserved | Limit
"""Reasons that may apply to a single one of a job's alternative node specs."""


class NoAlternative(msgspec.Struct, frozen=True, cache_hash=True, tag="no_alternative"):
    """None of the job's alternative node specs can start, and not all for the same reason."""

    specs: tuple[OfOne, ...]
    """The reason for each of them, in the job's order."""


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
    | QuotaWaits
    | NoQueue
    | NoAssociation
    | QosRefused
    | InReservation
    | NodesReserved
    | BehindHead
    | ClusterShort
    | NoMemberPlacement
    | EvictionPending
    | SuspendedReason
    | SchedulerReason
    | PodReason
)


_STARTS_NOTHING = ("down", "inactive")
"""States of a partition in which it starts no jobs. `model.cluster` has an enumeration of them, but importing it would
delay the start of every command."""


def never_starts(reason: Reason) -> bool:
    """Tell whether the job could not start even on an empty cluster: the job, a rule or a node would have to change.

    Partitions that are down and nodes out of service are expected to return, exclusions of nodes to end, and present
    prices to change. So their reasons do not count.
    """
    match reason:
        case NoAlternative():
            # One alternative that may start is enough.
            return all(never_starts(one) for one in reason.specs)
        case NoEligibleNode():
            # Nodes out of service are eligible once they are back, excluded ones when that ends, dear ones when their
            # price falls.
            return not (reason.out_of_service or reason.excluded or reason.prices)
        case PartitionRefuses():
            return reason.rule is not PartitionRule.STATE or reason.allowed not in _STARTS_NOTHING
        case LimitReached() | QuotaFull() | QuotaWaits() | QueueWaits():
            return reason.never
        case InReservation():
            # A start in the future is the only case in which waiting helps.
            return reason.start_at is None or reason.end_at is not None
        case _:
            return isinstance(reason, DependencyNever | NeverFits | NoAssociation | QosRefused | NoQueue)


class Waited(msgspec.Struct, frozen=True):
    """The reason for which a job waited from a moment on, until the next entry or its start."""

    since: Millis
    reason: Reason | None
    """The reason; None: it was not recorded from then on."""
    ahead: tuple[JobId, ...] = ()
    """The first jobs of the queue that were before it then, the head first; empty: none was, or it was not recorded."""


class Explanation(msgspec.Struct, frozen=True):
    """The answer to "why does my job not start?", after the last scheduling pass."""

    job: JobId
    reason: Reason
    position: int
    """The job's position among the queued jobs that the scheduler considers, from 1."""
    ahead: tuple[JobId, ...]
    """Queued jobs before it, nearest to the head first, at most ten."""
    reserved_at: Millis | None = None
    """When its backfill reservation begins, its latest start by the plan; None: it has no reservation."""

    @property
    def place(self) -> int | None:
        """The position in the queue to show, from 1; None for a job that is held or can never start."""
        return None if isinstance(self.reason, Held) or never_starts(self.reason) else self.position
