"""What happened, in the past tense. The journal keeps these and nothing else; applying them needs no decision.

A body is a tagged struct; `EventRecord` adds where and when. Bodies only ever gain fields with defaults: an old journal
must decode with today's types.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from cockpit.model.accounts import Association, AssocKey, Qos
from cockpit.model.attempt import EndCause, ExitStatus, Slow, Suspension
from cockpit.model.catalogue import AnyEntry
from cockpit.model.cluster import Cluster, Reservation
from cockpit.model.eviction import EvictionMode, Grounds
from cockpit.model.fleet import FleetPart
from cockpit.model.ids import JobId, Millis, NodeName
from cockpit.model.job import ArrayTask, JobState, Submitter
from cockpit.model.node import Node, Placement
from cockpit.model.quota import QuotaTree
from cockpit.model.spec import Dependency, JobSpec
from cockpit.model.usage import Used

EVENT_VERSION = 1
FROM_USER = "socket"
"""The origin of what a user asked for."""
RECORDED = "recorded"
"""The origin of what a cockpit saw of another scheduler's cluster: it is in no journal."""


class JobSubmitted(msgspec.Struct, frozen=True, tag="job_submitted", gc=False):
    job: JobId
    spec: JobSpec
    submitter: Submitter
    project: str
    account: str = ""
    qos: str = ""
    partitions: tuple[str, ...] = ()
    array: ArrayTask | None = None
    part: FleetPart | None = None


class JobHeld(msgspec.Struct, frozen=True, tag="job_held"):
    """A person holds a queued job back."""

    job: JobId
    by: str


class JobReleased(msgspec.Struct, frozen=True, tag="job_released"):
    job: JobId


class JobEdited(msgspec.Struct, frozen=True, tag="job_edited"):
    """A queued job asks for something else from now on."""

    job: JobId
    spec: JobSpec
    account: str = ""
    qos: str = ""
    partitions: tuple[str, ...] = ()


class DependencyMet(msgspec.Struct, frozen=True, tag="dependency_met"):
    """One of a queued job's conditions has come true."""

    job: JobId
    dependency: Dependency


class DependencyFailed(msgspec.Struct, frozen=True, tag="dependency_failed"):
    """One of a queued job's conditions can never come true any more."""

    job: JobId
    dependency: Dependency
    because: JobId


class AgeBegan(msgspec.Struct, frozen=True, tag="age_began"):
    """From here a queued job's age counts: nothing but room and priority holds it back."""

    job: JobId


class PrioritySet(msgspec.Struct, frozen=True, tag="priority_set"):
    """An administrator gives a queued job a priority, or (None) the computed one back."""

    job: JobId
    priority: int | None


class SiteFactorSet(msgspec.Struct, frozen=True, tag="site_factor_set"):
    """An administrator adds something to a queued job's computed priority."""

    job: JobId
    factor: int


class TimeLimitSet(msgspec.Struct, frozen=True, tag="time_limit_set"):
    """A running job may run for so long, counted from its start."""

    job: JobId
    seconds: int


class ClusterConfigured(msgspec.Struct, frozen=True, tag="cluster_configured"):
    """The cluster's rules, as read from its file."""

    cluster: Cluster


class AccountsChanged(msgspec.Struct, frozen=True, tag="accounts_changed"):
    """Associations and QOS that are new or other than before, and those that are gone."""

    associations: tuple[Association, ...] = ()
    qos: tuple[Qos, ...] = ()
    removed_associations: tuple[AssocKey, ...] = ()
    removed_qos: tuple[str, ...] = ()


class CatalogueChanged(msgspec.Struct, frozen=True, tag="catalogue_changed"):
    """Entries that are new or other than before, and those that are gone."""

    entries: tuple[AnyEntry, ...] = ()
    removed: tuple[AnyEntry, ...] = ()


class ReservationMade(msgspec.Struct, frozen=True, tag="reservation_made"):
    """Also in place of an earlier one of its name."""

    reservation: Reservation


class ReservationEnded(msgspec.Struct, frozen=True, tag="reservation_ended"):
    name: str


class CopyRemoved(msgspec.Struct, frozen=True, tag="copy_removed"):
    """An administrator has removed a staged copy before its time."""

    what: str
    """`dataset`, `image`."""
    source: str
    key: str


class NodeDrained(msgspec.Struct, frozen=True, tag="node_drained"):
    """Nothing more starts there until it is given back; what runs goes on."""

    node: NodeName
    by: str
    reason: str
    gone_at: Millis | None = None
    """When it is taken back from whoever runs there still; None: it is not."""


class NodeResumed(msgspec.Struct, frozen=True, tag="node_resumed"):
    """Jobs start there again."""

    node: NodeName
    by: str


class PrologFailed(msgspec.Struct, frozen=True, tag="prolog_failed"):
    """The attempt never began: one of the cluster's prologs failed on a node. The job is queued again."""

    job: JobId
    attempt: int
    rank: int
    node: NodeName
    because: str


class PrecheckPassed(msgspec.Struct, frozen=True, tag="precheck_passed"):
    """Nothing is wrong with the nodes of a job that is about to go on from its checkpoints: it starts."""

    job: JobId
    attempt: int
    found: str
    """What they have, in words."""


class PrecheckFailed(msgspec.Struct, frozen=True, tag="precheck_failed"):
    """The attempt never began: a node has not what it promised. The job is queued again."""

    job: JobId
    attempt: int
    node: NodeName
    because: str


class FaultFound(msgspec.Struct, frozen=True, tag="fault_found"):
    """Something of a node has failed under a running job that goes on from its checkpoints."""

    job: JobId
    attempt: int
    node: NodeName
    because: str


class PerformanceFell(msgspec.Struct, frozen=True, tag="performance_fell"):
    """A job's log says that an iteration was slower than it lets pass; told once of each attempt."""

    job: JobId
    attempt: int
    slow: Slow
    threshold: float
    address: str = ""
    """Of its owner, who is written to; empty: the catalogue has none."""
    elsewhere: tuple[NodeName, ...] = ()
    """The nodes of its pool on which it is to go on; empty: it goes on where it is."""


class QuotaApplied(msgspec.Struct, frozen=True, tag="quota_applied"):
    """The tree of quotas, also in place of an earlier one."""

    tree: QuotaTree


class QuotaRemoved(msgspec.Struct, frozen=True, tag="quota_removed"):
    """From here on there are no quotas."""

    name: str


class UsageDecayed(msgspec.Struct, frozen=True, tag="usage_decayed"):
    """A pass over all usage: what was used weighs less, what runs has used more, and ages count to this moment."""

    reset: bool = False
    """The period is over: usage begins at nothing."""


class JobDeleted(msgspec.Struct, frozen=True, tag="job_deleted"):
    """An ended job is taken off the lists; its record stays in accounting."""

    job: JobId


class JobPlaced(msgspec.Struct, frozen=True, tag="job_placed", gc=False):
    """The scheduler's decision, with its data: from here the resources are taken and the attempt has a name."""

    job: JobId
    attempt: int
    spec_index: int
    placement: Placement
    partition: str = ""
    billing: float = 0.0
    members: tuple[str, ...] = ()
    """On a fleet, by rank: the cluster that the replica is bound to."""
    launcher: str = ""
    """The node of an elastic job's launcher; empty: it has none."""


class MemberPlaced(msgspec.Struct, frozen=True, tag="member_placed"):
    """A cluster of the fleet found room for its part of a job that was bound to it."""

    job: JobId
    attempt: int
    member: str
    placement: Placement
    """Of the replicas that are bound to it, by their ranks in the job."""


class OthersHeld(msgspec.Struct, frozen=True, tag="others_held"):
    """What a cluster of the fleet gives to jobs of its own from now on."""

    member: str
    held: tuple[Placement, ...]
    """One for each of them, with nodes as the fleet calls them."""


class BindingGivenUp(msgspec.Struct, frozen=True, tag="binding_given_up"):
    """Clusters of the fleet had no room for parts of a job: all of it comes back, and it waits again."""

    job: JobId
    attempt: int
    members: tuple[str, ...]
    """Those that had none."""
    partitions: tuple[str, ...]
    """Where it may go from now on, in this order."""
    revoked: bool = False
    """It went back to its queue, from which it has to be let out again."""


class ReplicaStaged(msgspec.Struct, frozen=True, tag="replica_staged"):
    """Everything that the replica's container needs to have copied is there."""

    job: JobId
    attempt: int
    rank: int


class ReplicaStarted(msgspec.Struct, frozen=True, tag="replica_started", gc=False):
    job: JobId
    attempt: int
    rank: int
    limits: str = ""


class ReplicaEnded(msgspec.Struct, frozen=True, tag="replica_ended", gc=False):
    """The command ended and every process of its container is gone."""

    job: JobId
    attempt: int
    rank: int
    exit: ExitStatus
    used: Used | None = None
    """By all its processes, if anybody measured."""


class EndingBegan(msgspec.Struct, frozen=True, tag="ending_began"):
    """The job's replicas are asked to end, and killed at `kill_at`."""

    job: JobId
    cause: EndCause
    kill_at: Millis
    for_job: JobId | None = None
    """Whose room it makes, where it gives way to another."""
    grounds: Grounds | None = None
    requeue: bool = False
    """It waits again afterwards."""


class WorkersAdded(msgspec.Struct, frozen=True, tag="workers_added"):
    """A running elastic job grows: from here these hold resources too."""

    job: JobId
    attempt: int
    placement: Placement
    """Of the new workers; their ranks go on from those that the attempt has had."""
    billing: float
    """Of all that the job holds from now on, as its partition weighs it."""


class WorkersRecalled(msgspec.Struct, frozen=True, tag="workers_recalled"):
    """A running elastic job shrinks: these of its workers are asked to end, and killed at `kill_at`."""

    job: JobId
    ranks: tuple[int, ...]
    kill_at: Millis
    for_job: JobId | None
    """Whose room they make; None: nobody's."""
    grounds: Grounds


class WorkersLeft(msgspec.Struct, frozen=True, tag="workers_left"):
    """Workers of an elastic job are gone, and what they held is free."""

    job: JobId
    ranks: tuple[int, ...]
    billing: float
    """Of what the job still holds."""
    because: str = ""
    """Why they are put on the job's block list: they do not answer; empty: they were recalled, or never began."""


class WorkerReplaced(msgspec.Struct, frozen=True, tag="worker_replaced"):
    """A worker of an elastic job has failed, and another takes its place, on what it held."""

    job: JobId
    attempt: int
    rank: int
    by: int
    """The rank of the new one: none is given twice."""
    retry: int
    """The job's how manieth this is, from 1."""


class RoomMade(msgspec.Struct, frozen=True, tag="room_made"):
    """Running jobs give way for the sake of a queued one."""

    job: JobId
    others: tuple[JobId, ...]
    mode: EvictionMode
    grounds: Grounds


class JobSuspended(msgspec.Struct, frozen=True, tag="job_suspended"):
    """A running job stands still: its CPUs are free, its memory and cards are not."""

    job: JobId
    suspension: Suspension


class JobResumed(msgspec.Struct, frozen=True, tag="job_resumed"):
    """It goes on where it stood still."""

    job: JobId


class JobRequeued(msgspec.Struct, frozen=True, tag="job_requeued"):
    """Its attempt is over and everything it held is free; it waits again, under its id."""

    job: JobId
    cause: EndCause
    exit: ExitStatus | None = None
    retry: int = 0
    """Which of those times this is, from 1, in which it begins again by itself after a failure; 0: it is none."""
    below_min: bool = False
    """It is suspended: it goes on by itself once its fewest workers have room."""


class WaitEnded(msgspec.Struct, frozen=True, tag="wait_ended"):
    """It was suspended below its min for as long as it wants to be, and waits as any queued job does."""

    job: JobId


class JobWarned(msgspec.Struct, frozen=True, tag="job_warned"):
    """Its batch script is sent the signal that it wants before its time limit."""

    job: JobId


class GraceEnded(msgspec.Struct, frozen=True, tag="grace_ended"):
    """The grace period is over: what still runs is killed; of a job that goes on, its workers that were recalled."""

    job: JobId


class JobEnded(msgspec.Struct, frozen=True, tag="job_ended", gc=False):
    """All replicas are gone and the resources are free (cards only if the hold does not keep them)."""

    job: JobId
    state: JobState
    cause: EndCause
    exit: ExitStatus | None = None
    held_until: Millis | None = None


class HoldExtended(msgspec.Struct, frozen=True, tag="hold_extended"):
    job: JobId
    held_until: Millis


class HoldEndCause(StrEnum):
    EXPIRED = "expired"
    """The window is over."""
    ENDED = "ended"
    """A person ended it."""


class HoldEnded(msgspec.Struct, frozen=True, tag="hold_ended"):
    """The kept containers are removed."""

    job: JobId
    cause: HoldEndCause


class ShellOpened(msgspec.Struct, frozen=True, tag="shell_opened"):
    """Someone entered a replica's container."""

    job: JobId
    rank: int
    command: tuple[str, ...] = ()
    """Empty: an interactive shell."""


class JobArchived(msgspec.Struct, frozen=True, tag="job_archived", gc=False):
    """The ended job is in the accounting tables and leaves the live state."""

    job: JobId


class NodesChanged(msgspec.Struct, frozen=True, tag="nodes_changed"):
    """The cluster's nodes, as probed and configured when the engine started."""

    nodes: tuple[Node, ...]


class EngineStarted(msgspec.Struct, frozen=True, tag="engine_started"):
    version: str
    pid: int


class EngineStopAsked(msgspec.Struct, frozen=True, tag="engine_stop_asked"):
    """An administrator wants the engine to end."""

    jobs: bool = False
    """After stopping every job."""


class EngineStopped(msgspec.Struct, frozen=True, tag="engine_stopped"):
    version: str


EventBody = (
    JobSubmitted
    | JobHeld
    | JobReleased
    | JobEdited
    | DependencyMet
    | DependencyFailed
    | AgeBegan
    | PrioritySet
    | SiteFactorSet
    | TimeLimitSet
    | ClusterConfigured
    | AccountsChanged
    | CatalogueChanged
    | ReservationMade
    | ReservationEnded
    | CopyRemoved
    | NodeDrained
    | NodeResumed
    | QuotaApplied
    | QuotaRemoved
    | UsageDecayed
    | JobDeleted
    | JobPlaced
    | MemberPlaced
    | OthersHeld
    | BindingGivenUp
    | PrologFailed
    | PrecheckPassed
    | PrecheckFailed
    | FaultFound
    | PerformanceFell
    | ReplicaStaged
    | ReplicaStarted
    | ReplicaEnded
    | EndingBegan
    | WorkersAdded
    | WorkersRecalled
    | WorkersLeft
    | WorkerReplaced
    | RoomMade
    | JobSuspended
    | JobResumed
    | JobRequeued
    | WaitEnded
    | GraceEnded
    | JobWarned
    | JobEnded
    | HoldExtended
    | HoldEnded
    | ShellOpened
    | JobArchived
    | NodesChanged
    | EngineStarted
    | EngineStopAsked
    | EngineStopped
)


class EventRecord(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One line of the journal."""

    seq: int
    """From 1, without gaps."""
    at: Millis
    actor: str
    """The user who asked, or `engine`."""
    origin: str
    """Where it came from: `socket`, `scheduler`, `runtime`, `timer`, `engine`, or `RECORDED`."""
    request: str = ""
    """The client-made id of the request that caused it; empty when none did."""
    version: int = EVENT_VERSION
    body: EventBody
