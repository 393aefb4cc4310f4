"""The rows and records that clients get from a backend. They are data; `present` turns them into text."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from cockpit.model.accounts import Association, Qos
from cockpit.model.cluster import PriorityKind, Weights
from cockpit.model.fleet import BindingMode
from cockpit.model.ids import JobId, Millis, NodeName
from cockpit.model.job import ArrayTask, JobState
from cockpit.model.node import Node
from cockpit.model.priority import Breakdown
from cockpit.model.quota import Amounts
from cockpit.model.reasons import Reason


class SliceUse(msgspec.Struct, frozen=True):
    """An occupied card or slice of a card, shown as `1(1):app`."""

    card: int
    """The index of the card, from 0."""
    slot: int | None
    """The number of the slice, from 0; None: the whole card."""
    milli: int
    job: JobId
    name: str
    user: str
    held: bool = False
    """Whether a failed job's held container keeps it (`debug_hold: {cards: keep}`)."""
    assumed: bool = False
    """Whether the card and the slice are only assumed: the cluster does not tell which card it is."""


class CardLoad(msgspec.Struct, frozen=True):
    """The measured utilisation of a card, whatever it is allocated to."""

    card: int
    """The index of the card, from 0."""
    percent: int


class NodeRow(msgspec.Struct, frozen=True):
    """A node and its occupied resources."""

    node: Node
    used_cpus: int
    used_memory_mib: int
    used_card_milli: int
    # Does not follow from the thousandths: two halves may lie on one card or on two.
    used_cards: int
    """The number of cards of which at least a part is occupied."""
    slices: tuple[SliceUse, ...]
    jobs: tuple[JobId, ...]
    """The jobs on the node that the user may see."""
    loads: tuple[CardLoad, ...] = ()
    """The utilisation of those cards where it is measured."""
    binding: BindingMode | None = None
    """On a fleet: how jobs are bound to the node's cluster."""
    reserved: tuple[str, ...] = ()
    """The names of the advance reservations that have the node now."""
    login: bool = False
    """Whether it is a login node, on which no jobs run."""
    plain: bool = False
    """Whether its engine cannot make containers, so that jobs run as plain processes."""
    excluded_for: int = 0
    """The number of jobs that may not use it for now, since their checks failed there."""


class HoldRow(msgspec.Struct, frozen=True):
    """The debug hold of a failed job's container."""

    job: JobId
    name: str
    user: str
    state: JobState
    exit_code: int | None
    nodes: tuple[NodeName, ...]
    ended_at: Millis
    held_until: Millis
    keeps_card_milli: int
    """The cards that the hold keeps, in thousandths."""
    keeps_cpus: int = 0
    """The CPUs that the hold keeps, on clusters where it keeps the whole allocation."""


class PriorityRow(msgspec.Struct, frozen=True):
    """The position and priority of a queued job in one of its partitions."""

    job: JobId
    """The job; 0: one that the user may not see, of which only the position is shown."""
    name: str
    user: str
    account: str
    qos: str
    partition: str
    position: int | None
    """The position in the queue, from 1; None: the job is held."""
    breakdown: Breakdown | None
    """The factors of its priority; None: the user may not see the job."""
    position_before: int | None = None
    """The position with the cluster's own weights, when others are tried out; None: none are."""
    total_before: int | None = None
    """The priority with the cluster's own weights, when others are tried out; None: none are, or the cluster has no
    priorities."""
    task: ArrayTask | None = None
    uncounted: Reason | None = None
    """Why the cluster's own scheduler does not compute the job's factors yet; None: it does, or the cluster is
    cockpit's."""
    tasks: tuple[int, ...] = ()
    """The indices of the tasks that the row describes, as in `JobRow.tasks`."""
    reported: Breakdown | None = msgspec.field(default=None, name="told")
    """The rounded factors that the cluster's own scheduler prints, where `breakdown` is cockpit's computation."""


class Priorities(msgspec.Struct, frozen=True):
    """The queue in its order, with the priorities that it follows from."""

    kind: PriorityKind
    weights: Weights
    """The weights of the rows' priorities: the cluster's, or others that are tried out."""
    rows: tuple[PriorityRow, ...]
    """The rows in the order in which the scheduler considers the jobs; held jobs come last."""


class WeightsSet(msgspec.Struct, frozen=True):
    """The result of a change of priority weights, which are in force until the engine stops."""

    weights: Weights
    file: str = ""
    """The cluster.toml into which they were written; empty: there is none."""
    trouble: str = ""
    """Why they were not written, so that the file's old weights return with the engine's next start; empty: they were.
    """


class Overview(msgspec.Struct, frozen=True):
    """The figures of a screen's header."""

    cluster: str
    jobs_by_state: dict[str, int]
    held: int
    """The number of jobs with held containers."""
    nodes: int
    cpus: int
    used_cpus: int
    memory_mib: int
    used_memory_mib: int
    card_milli: int
    used_card_milli: int
    trouble: tuple[str, ...] = ()
    """The engine's current problems, as sentences."""
    hidden: bool = False
    """Whether `trouble` only says what of the cluster the user does not see, and nothing is out of order."""
    admin: bool = True
    """Whether the user may change what belongs to the whole cluster."""
    plain: bool = False
    """Whether the engine cannot make containers, so that jobs run as plain processes."""
    demand: dict[str, int] = {}
    """The cards that queued jobs request, in thousandths by model; the empty model means any."""
    pass_ms: float | None = None
    """The duration of the last scheduling pass in milliseconds; None: there was none, or the cluster does not tell."""


class ClusterState(StrEnum):
    """Whether a cluster in the list of clusters answers."""

    CONNECTING = "connecting"
    """No answer has come yet."""
    LIVE = "live"
    STILL = "still"
    """It is a snapshot or a recording, which does not change."""
    SILENT = "no answer"
    """It does not answer any more; `ClusterRow.heard_at` is the age of what is known about it."""


class ClusterRow(msgspec.Struct, frozen=True, kw_only=True):
    """One of the user's clusters."""

    name: str
    way: str
    """The address by which it is reached, such as `ssh://ann@login` or `local`."""
    state: ClusterState
    reason: str = ""
    """Why it does not answer, as a sentence; empty: it does."""
    heard_at: Millis | None = None
    """When it last answered; None: never."""
    overview: Overview | None = None
    """The figures of its last answer; None: it never answered."""
    fleet: str = ""
    """The fleet of which it is a member, if it can only be opened through it; empty: it is opened by its name."""


class AccountRow(msgspec.Struct, frozen=True):
    """An account, or a user in one, with its usage and fair share."""

    association: Association
    depth: int
    """The depth in the tree; 0: root."""
    used: float
    """The decayed usage, in billing-seconds times usage factor: sshare's RawUsage."""
    queued: int
    running: int
    norm_shares: float = 0.0
    """The fraction of the shares: among its siblings with Fair Tree, else of all."""
    norm_usage: float = 0.0
    """The fraction of all usage."""
    effective_usage: float = 0.0
    """The usage that fair share is computed from: with Fair Tree its fraction of the parent account's usage."""
    level_fs: float | None = None
    """Shares divided by usage: below 1 it used more than its share; infinity: no usage yet. None: no Fair Tree."""
    fair_share: float | None = None
    """The fair-share factor; None: it has none, or the cluster has no priorities."""


class AccountsShown(msgspec.Struct, frozen=True):
    """The tree of accounts as the user may see it, parents before their children."""

    rows: tuple[AccountRow, ...]
    qos: tuple[Qos, ...]
    admin: bool = False
    """Whether the user may change everything in it."""
    coordinated: tuple[str, ...] = ()
    """The accounts below which the user may change users and accounts."""
    missing: str = ""
    """Why rows or QOS are unknown, as a sentence; empty: they are known."""


class QueueKind(StrEnum):
    """The kind of a queue."""

    QUOTA = "quota"
    """A node of the quota tree."""
    PARTITION = "partition"
    LICENCE = "licence"
    """A licence of another scheduler's cluster, which jobs wait for besides nodes."""


class QueueRow(msgspec.Struct, frozen=True, kw_only=True):
    """A queue: a node of the quota tree with all nodes below it, a partition, or a licence."""

    kind: QueueKind
    path: str
    """The path in the tree, such as `root/child-2`; a partition's name, empty if the cluster has no partitions."""
    name: str
    """The name of the queue, such as `root-child-2-v5zxz`; for a partition the same as `path`."""
    level: int
    """The depth in the tree; 0: root, or a partition."""
    since: Millis | None
    """When it was added; None: unknown."""
    waiting: int
    running: int
    used: Amounts
    """The occupied resources: CPUs, memory and cards."""
    min: Amounts
    """The guaranteed amounts; absent: none."""
    max: Amounts
    """The largest amounts, for a partition those of its nodes; absent: unlimited."""
    max_jobs: int | None = None
    """The most jobs that run at the same time; None: unlimited."""
    projects: tuple[str, ...] = ()
    """The projects whose jobs wait in this leaf of the tree."""
    bounded: tuple[str, ...] = ()
    """The resources that its tree has quotas for; no other is borrowed."""
    by_name: bool = False
    """Whether jobs name the queue, which is then their partition, and not their projects choose it."""
    stopped: str = ""
    """Why it lets no job start at present; empty: it does."""
    alone: bool = False
    """Of a queue at level 0: whether it has a guarantee of its own, instead of being what all queues share."""

    @property
    def is_shared(self) -> bool:
        """Whether it is the root of a quota tree, or a partition: neither can borrow or lend."""
        return not self.level and not self.alone


class QueuesShown(msgspec.Struct, frozen=True):
    """All queues: the quota tree, parents first, then the partitions."""

    rows: tuple[QueueRow, ...]
    tree: str = ""
    """The quota tree's name; empty: there is none."""
    admin: bool = False
    """Whether the user may apply and remove the tree."""


class EngineStatus(msgspec.Struct, frozen=True):
    """The result of `cockpit engine status`."""

    running: bool
    pid: int | None
    socket: str
    state_folder: str
    version: str
    protocol: str
    system: bool
    started_at: Millis | None
    jobs: int
    containers: str = ""
    """How containers are made: `root overlay`, `user overlay`, or the substitute and what it lacks."""
    trouble: tuple[str, ...] = ()
    """The engine's current problems (disk full, runtime missing …), one sentence each."""
    user: str = msgspec.field(default="", name="asker")
    """The user as the engine identifies them; empty: no engine was asked."""
