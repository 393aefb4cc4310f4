"""The events of the journal: facts in the past tense, which `engine.apply` applies without any decision.

A body is a tagged struct; `EventRecord` adds its time, actor and origin. A body may only gain fields that have
defaults, since today's types must decode the journal of any earlier version.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from cockpit.model.accounts import Association, AssocKey, Qos
from cockpit.model.alerts import Alert
from cockpit.model.attempt import EndCause, EvictionMode, ExitStatus, Grounds, RemotePart, Slow, Suspension
from cockpit.model.catalogue import AnyEntry
from cockpit.model.cluster import Cluster, Reservation
from cockpit.model.fleet import FleetPart
from cockpit.model.ids import JobId, Millis, NodeName
from cockpit.model.job import ArrayTask, JobState, Submitter
from cockpit.model.node import Node, Placement
from cockpit.model.quota import QuotaTree
from cockpit.model.spec import Dependency, JobSpec
from cockpit.model.steps import Interruption, StepReport
from cockpit.model.usage import ReplicaTotals

# Tags and field names are those of the journals on disk, so they stay as they are.
EVENT_VERSION = 1
FROM_USER = "socket"
"""The origin of events that a user's request caused."""
RECORDED = "recorded"
"""The origin of events that were derived from watching another scheduler's cluster; they are in no journal."""


# gc=False, here and below: a loaded journal has hundreds of thousands of these, no reference cycles can form among
# frozen values, and the garbage collector would traverse all of them again and again.
# With account, QOS and partitions as they were decided at the submission: later defaults do not change an accepted job.
class JobSubmitted(msgspec.Struct, frozen=True, tag="job_submitted", gc=False):
    """A job was submitted and is queued."""

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
    """A user held a queued job."""

    job: JobId
    by: str


class JobReleased(msgspec.Struct, frozen=True, tag="job_released"):
    """A user released a held job."""

    job: JobId


class JobEdited(msgspec.Struct, frozen=True, tag="job_edited"):
    """A queued job was given another specification."""

    job: JobId
    spec: JobSpec
    account: str = ""
    qos: str = ""
    partitions: tuple[str, ...] = ()


# An event of its own: by the time at which the other conditions are met, the other job may have been archived.
class DependencyMet(msgspec.Struct, frozen=True, tag="dependency_met"):
    """A dependency of a queued job was met."""

    job: JobId
    dependency: Dependency


class DependencyFailed(msgspec.Struct, frozen=True, tag="dependency_failed"):
    """A dependency of a queued job can never be met any more."""

    job: JobId
    dependency: Dependency
    because: JobId
    """The job or task whose end made it impossible."""


# An event, because priority depends on this moment: ages must not start again with the engine.
class AgeBegan(msgspec.Struct, frozen=True, tag="age_began"):
    """The age of a queued job began to count: only free resources and priority keep it from starting."""

    job: JobId


class PrioritySet(msgspec.Struct, frozen=True, tag="priority_set"):
    """An administrator set a queued job's priority, or (None) returned it to the computed one."""

    job: JobId
    priority: int | None


class SiteFactorSet(msgspec.Struct, frozen=True, tag="site_factor_set"):
    """An administrator set the number that is added to a queued job's computed priority."""

    job: JobId
    factor: int


class TimeLimitSet(msgspec.Struct, frozen=True, tag="time_limit_set"):
    """The time limit of a running job was changed; it counts from the job's start."""

    job: JobId
    seconds: int


# With the rules themselves and not the file's path: the journal has to say what applied at any time, whatever is in the
# file now.
class ClusterConfigured(msgspec.Struct, frozen=True, tag="cluster_configured"):
    """The cluster's rules were read from its file, and differ from those before."""

    cluster: Cluster


class AccountsChanged(msgspec.Struct, frozen=True, tag="accounts_changed"):
    """Associations and QOS were added, changed or removed."""

    associations: tuple[Association, ...] = ()
    qos: tuple[Qos, ...] = ()
    removed_associations: tuple[AssocKey, ...] = ()
    removed_qos: tuple[str, ...] = ()


class CatalogueChanged(msgspec.Struct, frozen=True, tag="catalogue_changed"):
    """Entries of the catalogue were added, changed or removed."""

    entries: tuple[AnyEntry, ...] = ()
    removed: tuple[AnyEntry, ...] = ()


class ReservationMade(msgspec.Struct, frozen=True, tag="reservation_made"):
    """A reservation was made, or replaced an earlier one of its name."""

    reservation: Reservation


class ReservationEnded(msgspec.Struct, frozen=True, tag="reservation_ended"):
    """A reservation ended or was removed."""

    name: str


class CopyRemoved(msgspec.Struct, frozen=True, tag="copy_removed"):
    """An administrator removed a staged copy before it expired."""

    what: str
    """The kind of copy: `dataset` or `image`."""
    source: str
    key: str


class NodeDrained(msgspec.Struct, frozen=True, tag="node_drained"):
    """A node was drained: no job starts there until it is resumed, and running jobs continue."""

    node: NodeName
    by: str
    reason: str
    gone_at: Millis | None = None
    """When the node's provider takes it back, which ends jobs that still run there; None: it does not."""
    notice_at: Millis | None = None
    """The moment in the provider's notice, by which the notice is known again; None: no notice was the reason."""


class NodeResumed(msgspec.Struct, frozen=True, tag="node_resumed"):
    """A drained node was resumed: jobs start there again."""

    node: NodeName
    by: str


class PricesChanged(msgspec.Struct, frozen=True, tag="prices_changed"):
    """The present prices of the nodes changed."""

    prices: dict[NodeName, int]
    """The price of each node in thousandths; nodes that are not named have the one of their label."""


class PrologFailed(msgspec.Struct, frozen=True, tag="prolog_failed"):
    """One of the cluster's prologs failed on a node before the attempt began. The job is queued again."""

    job: JobId
    attempt: int
    rank: int
    node: NodeName
    because: str


class PrecheckPassed(msgspec.Struct, frozen=True, tag="precheck_passed"):
    """The checks of a resumable job's nodes passed, and the job starts."""

    job: JobId
    attempt: int
    found: str
    """What the checks found on the nodes, as text."""


class PrecheckFailed(msgspec.Struct, frozen=True, tag="precheck_failed"):
    """A node lacks what it should have, so that the attempt never began. The job is queued again."""

    job: JobId
    attempt: int
    node: NodeName
    because: str


class NodeExcluded(msgspec.Struct, frozen=True, tag="node_excluded"):
    """A job may not run on a node until a moment, because the check before its start failed there. Other jobs may."""

    job: JobId
    node: NodeName
    because: str
    until: Millis


class NodeReadmitted(msgspec.Struct, frozen=True, tag="node_readmitted"):
    """A job may run again on a node that was excluded for it."""

    job: JobId
    node: NodeName
    by: str = ""
    """The user who resumed the node; empty: the time of the exclusion is over."""


class FaultFound(msgspec.Struct, frozen=True, tag="fault_found"):
    """A component of a node failed under a running job that can resume from its checkpoints."""

    job: JobId
    attempt: int
    node: NodeName
    because: str


class PerformanceFell(msgspec.Struct, frozen=True, tag="performance_fell"):
    """An iteration of a job was slower than its threshold, as its log says. Recorded once for each attempt."""

    job: JobId
    attempt: int
    slow: Slow
    threshold: float
    address: str = ""
    """The owner's e-mail address for the alert; empty: the catalogue has none."""
    elsewhere: tuple[NodeName, ...] = ()
    """The nodes of its pool to which the job is moved; empty: it stays where it is."""


class AlertRaised(msgspec.Struct, frozen=True, tag="alert_raised"):
    """An alert about a job was raised: its owner's cockpits show it, and it is sent where the settings say."""

    job: JobId
    alert: Alert


class ReceiverFailed(msgspec.Struct, frozen=True, tag="receiver_failed"):
    """A receiver of alerts began to fail. Alerts are sent to the others, and to this one again and again."""

    receiver: str
    because: str


class ReceiverRecovered(msgspec.Struct, frozen=True, tag="receiver_recovered"):
    """A receiver of alerts that had failed took one again."""

    receiver: str


class QuotaApplied(msgspec.Struct, frozen=True, tag="quota_applied"):
    """A tree of quotas was applied, in place of any earlier one."""

    tree: QuotaTree


class QuotaRemoved(msgspec.Struct, frozen=True, tag="quota_removed"):
    """The tree of quotas was removed: there are no quotas any more."""

    name: str


# An event, although it follows from the clock: a replay of the journal has to decay at the very same moments to come to
# the same priorities.
class UsageDecayed(msgspec.Struct, frozen=True, tag="usage_decayed"):
    """All usage was decayed: past usage weighs less, that of running jobs was added, and ages count to this moment."""

    reset: bool = False
    """Whether usage was reset to zero because its period is over."""


class JobDeleted(msgspec.Struct, frozen=True, tag="job_deleted"):
    """A user removed an ended job from the lists; its record stays in the accounting."""

    job: JobId


class JobPlaced(msgspec.Struct, frozen=True, tag="job_placed", gc=False):
    """The scheduler started an attempt of a job: from now on the job occupies the resources of the placement."""

    job: JobId
    attempt: int
    spec_index: int
    placement: Placement
    partition: str = ""
    billing: float = 0.0
    members: tuple[str, ...] = ()
    """On a fleet: the member cluster of each replica, by rank."""
    launcher: str = ""
    """The node of an elastic job's launcher; empty: it has none."""


class MemberPlaced(msgspec.Struct, frozen=True, tag="member_placed"):
    """A member cluster of the fleet placed its part of a job."""

    job: JobId
    attempt: int
    member: str
    placement: Placement
    """The placement of the replicas bound to this member, by their ranks in the job."""


class OthersHeld(msgspec.Struct, frozen=True, tag="others_held"):
    """The resources changed that jobs submitted directly to a member cluster occupy there."""

    member: str
    held: tuple[Placement, ...]
    """The placement of each of these jobs, with the node names that the fleet uses."""


class RemotePartChanged(msgspec.Struct, frozen=True, tag="remote_part_changed"):
    """A member over a link has answered for its part of a job, or will be told to start it or to end it."""

    job: JobId
    attempt: int
    part: RemotePart


class BindingGivenUp(msgspec.Struct, frozen=True, tag="binding_given_up"):
    """Member clusters did not find free resources for parts of a job in time: the whole job is queued again."""

    job: JobId
    attempt: int
    members: tuple[str, ...]
    """The clusters without enough free resources."""
    partitions: tuple[str, ...]
    """The partitions (member clusters) that the job may use from now on, in this order."""
    revoked: bool = False
    """Whether the job went back into its queue of the quota tree, which has to admit it again."""


class ReplicaStaged(msgspec.Struct, frozen=True, tag="replica_staged"):
    """All files that the replica's container needs were copied to its node."""

    job: JobId
    attempt: int
    rank: int


class ReplicaStarted(msgspec.Struct, frozen=True, tag="replica_started", gc=False):
    """The command of a replica was started."""

    job: JobId
    attempt: int
    rank: int
    limits: str = ""
    """How the replica's limits are enforced, as the runtime says it."""


class ReplicaEnded(msgspec.Struct, frozen=True, tag="replica_ended", gc=False):
    """The command of a replica ended, and no process of its container is left."""

    job: JobId
    attempt: int
    rank: int
    exit: ExitStatus
    used: ReplicaTotals | None = None
    """The resources that its processes used; None: they were not measured."""
    steps: StepReport | None = None
    """What a worker of an elastic job had reported of its training; None: nothing."""


class EndingBegan(msgspec.Struct, frozen=True, tag="ending_began"):
    """The replicas of a job were asked to end, and are killed at `kill_at`."""

    job: JobId
    cause: EndCause
    kill_at: Millis
    for_job: JobId | None = None
    """The queued job that it is evicted for; None: it is not evicted for one."""
    grounds: Grounds | None = None
    """The rule by which it is evicted; None: it is not."""
    requeue: bool = False
    """Whether it is requeued afterwards."""


class WorkersAdded(msgspec.Struct, frozen=True, tag="workers_added"):
    """A running elastic job grew: from now on the new workers occupy resources too."""

    job: JobId
    attempt: int
    placement: Placement
    """The placement of the new workers. Their ranks follow the highest one that the attempt has used."""
    billing: float
    """The billing weight of all resources of the job from now on."""


class WorkersRecalled(msgspec.Struct, frozen=True, tag="workers_recalled"):
    """A running elastic job shrinks: workers were asked to end, and are killed at `kill_at`."""

    job: JobId
    ranks: tuple[int, ...]
    kill_at: Millis
    for_job: JobId | None
    """The queued job that gets their resources; None: they are not recalled for one."""
    grounds: Grounds
    """The rule by which they are recalled."""


class WorkersLeft(msgspec.Struct, frozen=True, tag="workers_left"):
    """Workers left an elastic job, and their resources are free."""

    job: JobId
    ranks: tuple[int, ...]
    billing: float
    """The billing weight of the job's remaining resources."""
    because: str = ""
    """Why their nodes are on the job's block list; empty: they are not, as after a recall."""


class NodeUnblocked(msgspec.Struct, frozen=True, tag="node_unblocked"):
    """A user took a node off an elastic job's block list: workers of the job may run there again."""

    job: JobId
    node: NodeName


class WorkerReplaced(msgspec.Struct, frozen=True, tag="worker_replaced"):
    """A failed worker of an elastic job was replaced by a new one on the same resources."""

    job: JobId
    attempt: int
    rank: int
    by: int
    """The rank of the new worker; no rank is used twice."""
    retry: int
    """The number of this retry of the job, from 1."""


class TrainingResumed(msgspec.Struct, frozen=True, tag="training_resumed"):
    """The training of an elastic job went on after an interruption."""

    job: JobId
    attempt: int
    cause: Interruption
    workers_version: int
    """The version of the list of workers with which it went on."""
    reached: int | None
    """The steps that were done before; None: not known."""
    resumed: int
    """The steps with which it went on."""


class EvictionsDecided(msgspec.Struct, frozen=True, tag="room_made"):
    """Running jobs are evicted, shrunk or suspended for a queued one."""

    job: JobId
    others: tuple[JobId, ...]
    mode: EvictionMode
    grounds: Grounds


class JobSuspended(msgspec.Struct, frozen=True, tag="job_suspended"):
    """A running job was suspended: its CPUs are free, its memory and cards are not."""

    job: JobId
    suspension: Suspension


class JobResumed(msgspec.Struct, frozen=True, tag="job_resumed"):
    """A suspended job was resumed where it was stopped."""

    job: JobId


class JobRequeued(msgspec.Struct, frozen=True, tag="job_requeued"):
    """The attempt of a job ended and its resources are free; the job is queued again under the same id."""

    job: JobId
    cause: EndCause
    exit: ExitStatus | None = None
    retry: int = 0
    """The number of this retry after a failure, from 1; 0: it is no retry."""
    below_min: bool = False
    """Whether it is suspended for lack of workers: it resumes once its least number of workers can be placed."""


class WaitEnded(msgspec.Struct, frozen=True, tag="wait_ended"):
    """The longest wait of an elastic job suspended for lack of workers ended; it waits like any queued job now."""

    job: JobId


class JobWarned(msgspec.Struct, frozen=True, tag="job_warned"):
    """The batch script of a job was sent the signal that it wants before its time limit."""

    job: JobId


class ClusterReported(msgspec.Struct, frozen=True, tag="cluster_reported", kw_only=True):
    """Another cluster's own software reported something of a job, such as a Kubernetes Event; it is in no journal."""

    job: JobId
    about: str
    """What it is about: `Pod train-0`."""
    reason: str
    """The software's word for it: `FailedScheduling`."""
    message: str
    by: str = ""
    """The part of the software that reported it: `default-scheduler`."""
    count: int = 1
    """How often it was reported; the event's time is that of the last one."""


class GraceEnded(msgspec.Struct, frozen=True, tag="grace_ended"):
    """A grace period ended: the remaining replicas are killed, or only the recalled workers if the job keeps
    running."""

    job: JobId


class JobEnded(msgspec.Struct, frozen=True, tag="job_ended", gc=False):
    """A job ended and its resources are free, except for cards that its debug hold keeps."""

    job: JobId
    state: JobState
    cause: EndCause
    exit: ExitStatus | None = None
    held_until: Millis | None = None
    """The end of the debug hold of its containers; None: they are not held."""


class HoldExtended(msgspec.Struct, frozen=True, tag="hold_extended"):
    """The debug hold of a job was extended."""

    job: JobId
    held_until: Millis


class HoldEndCause(StrEnum):
    """Why a debug hold ended."""

    EXPIRED = "expired"
    """Its hold window was over."""
    ENDED = "ended"
    """A user ended it."""


class HoldEnded(msgspec.Struct, frozen=True, tag="hold_ended"):
    """A debug hold ended, and the held containers are removed."""

    job: JobId
    cause: HoldEndCause


class ShellOpened(msgspec.Struct, frozen=True, tag="shell_opened"):
    """A user opened a shell, or ran a command, in a replica's container."""

    job: JobId
    rank: int
    command: tuple[str, ...] = ()
    """The command; empty: an interactive shell."""


class JobArchived(msgspec.Struct, frozen=True, tag="job_archived", gc=False):
    """An ended job left the live state; the accounting tables still have it."""

    job: JobId


class NodesChanged(msgspec.Struct, frozen=True, tag="nodes_changed"):
    """The cluster's nodes changed, as the engine detects and configures them at its start."""

    nodes: tuple[Node, ...]


class EngineStarted(msgspec.Struct, frozen=True, tag="engine_started"):
    """The engine started."""

    version: str
    pid: int


class EngineStopAsked(msgspec.Struct, frozen=True, tag="engine_stop_asked"):
    """An administrator asked the engine to stop."""

    jobs: bool = False
    """Whether every job is stopped first."""


class EngineStopped(msgspec.Struct, frozen=True, tag="engine_stopped"):
    """The engine stopped in an orderly way."""

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
    | PricesChanged
    | QuotaApplied
    | QuotaRemoved
    | UsageDecayed
    | JobDeleted
    | JobPlaced
    | MemberPlaced
    | OthersHeld
    | BindingGivenUp
    | RemotePartChanged
    | PrologFailed
    | PrecheckPassed
    | PrecheckFailed
    | NodeExcluded
    | NodeReadmitted
    | FaultFound
    | PerformanceFell
    | AlertRaised
    | ReceiverFailed
    | ReceiverRecovered
    | ReplicaStaged
    | ReplicaStarted
    | ReplicaEnded
    | EndingBegan
    | WorkersAdded
    | WorkersRecalled
    | WorkersLeft
    | NodeUnblocked
    | WorkerReplaced
    | TrainingResumed
    | EvictionsDecided
    | JobSuspended
    | JobResumed
    | JobRequeued
    | WaitEnded
    | GraceEnded
    | JobWarned
    | ClusterReported
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
    """One entry of the journal."""

    seq: int
    """The sequence number, from 1 without gaps."""
    at: Millis
    """The time of the event."""
    actor: str
    """The user whose request caused it, or `engine`."""
    origin: str
    """The part of the engine that it comes from: `socket`, `scheduler`, `runtime`, `timer`, `engine`, or `RECORDED`."""
    request: str = ""
    """The id, made by the client, of the request that caused it; empty: no request did."""
    version: int = EVENT_VERSION
    body: EventBody
