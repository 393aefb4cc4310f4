"""What a face is given: rows per table, and whole records for one thing. Facts only; `present` makes words of them."""

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
    """One occupied slice of a card: `1(1):app` on the screen."""

    card: int
    """From 0."""
    slot: int | None
    milli: int
    job: JobId
    name: str
    user: str
    held: bool = False
    """Kept by a failed job's container (`debug_hold: {cards: keep}`)."""


class CardLoad(msgspec.Struct, frozen=True):
    """How busy a card is, as its driver measures it: another thing than who it is given to."""

    card: int
    """From 0."""
    percent: int


class NodeRow(msgspec.Struct, frozen=True):
    """A node with what is used of it."""

    node: Node
    used_cpus: int
    used_memory_mib: int
    used_card_milli: int
    used_cards: int
    """Cards that are not free for a job that wants whole ones."""
    slices: tuple[SliceUse, ...]
    jobs: tuple[JobId, ...]
    loads: tuple[CardLoad, ...] = ()
    """Of the cards that somebody measures; of the others nothing is known."""
    binding: BindingMode | None = None
    """On a fleet: how its cluster is bound to."""
    reserved: tuple[str, ...] = ()
    """Names of the reservations that keep it now."""
    login: bool = False
    """People log in there, and no job runs."""
    plain: bool = False
    """It lets its engine make no containers: jobs run there as plain processes."""


class HoldRow(msgspec.Struct, frozen=True):
    """A failed container that is kept."""

    job: JobId
    name: str
    user: str
    state: JobState
    exit_code: int | None
    nodes: tuple[NodeName, ...]
    ended_at: Millis
    held_until: Millis
    keeps_card_milli: int
    keeps_cpus: int = 0
    """Of a cluster that keeps whole allocations."""


class PriorityRow(msgspec.Struct, frozen=True):
    """A queued job in one of its partitions, where it stands in the order that the cluster goes by."""

    job: JobId
    """0: a job that the asker may not see, of which only the place is told."""
    name: str
    user: str
    account: str
    qos: str
    partition: str
    position: int | None
    """From 1: behind so many other jobs, less one. None: held, and not considered."""
    breakdown: Breakdown | None
    """None for a job that the asker may not see."""
    position_before: int | None = None
    """With the cluster's own weights, where others are tried out."""
    total_before: int | None = None
    """None on a cluster without priorities too."""
    task: ArrayTask | None = None
    uncounted: Reason | None = None
    """Why another scheduler, whose cluster this is, counts no factors of the job yet: it waits for this first."""
    tasks: tuple[int, ...] = ()
    """As `JobRow.tasks`."""
    told: Breakdown | None = None
    """What the cluster's own scheduler prints, where `breakdown` is cockpit's count of the same job. Its figures are
    rounded."""


class Priorities(msgspec.Struct, frozen=True):
    """The queue in its order, and what makes the order."""

    kind: PriorityKind
    weights: Weights
    """Those that the rows are counted by: the cluster's, or others that are tried out."""
    rows: tuple[PriorityRow, ...]
    """The first considered first, held jobs last."""


class WeightsSet(msgspec.Struct, frozen=True):
    """What became of other weights: they are in force, and whether they are when the engine starts again."""

    weights: Weights
    file: str = ""
    """The cluster.toml that says the same now; empty: there is none."""
    trouble: str = ""
    """Why it does not: what it says is in force again from the engine's next start."""


class Overview(msgspec.Struct, frozen=True):
    """The header of every face."""

    cluster: str
    jobs_by_state: dict[str, int]
    held: int
    """Kept containers."""
    nodes: int
    cpus: int
    used_cpus: int
    memory_mib: int
    used_memory_mib: int
    card_milli: int
    used_card_milli: int
    trouble: tuple[str, ...] = ()
    """What is wrong with the engine just now, in sentences."""
    admin: bool = True
    """The asker may change what is everybody's."""
    plain: bool = False
    """There are no containers: jobs run as plain processes."""
    demand: dict[str, int] = {}
    """Thousandths of cards that queued jobs ask for, by model; empty: any."""


class ClusterState(StrEnum):
    """How a cluster of the list of clusters answers."""

    CONNECTING = "connecting"
    """Nothing is known of it yet."""
    LIVE = "live"
    STILL = "still"
    """A snapshot or a recording: it is as it was."""
    SILENT = "no answer"
    """What is known of it is as old as `ClusterRow.heard_at`, if anything is."""


class ClusterRow(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster among those that this person uses."""

    name: str
    way: str
    """How it is reached: `ssh://ann@login`, `local`."""
    state: ClusterState
    reason: str = ""
    """Why it does not answer, as a sentence."""
    heard_at: Millis | None = None
    """How fresh is what is known of it; None: nothing is."""
    overview: Overview | None = None
    """As last heard."""
    fleet: str = ""
    """The fleet that it is a member of, where it cannot be opened by itself; empty: it is opened by its name."""


class AccountRow(msgspec.Struct, frozen=True):
    """An account, or a user in one, with what it holds."""

    association: Association
    depth: int
    """0: root."""
    used: float
    """Billing-seconds times usage factor, decayed: sshare's RawUsage."""
    queued: int
    running: int
    norm_shares: float = 0.0
    """Its part of the shares: with Fair Tree of its siblings', else of all."""
    norm_usage: float = 0.0
    """Its part of all usage."""
    effective_usage: float = 0.0
    """What fair share goes by: with Fair Tree its part of the usage of the account above."""
    level_fs: float | None = None
    """Shares by usage: below 1 it used more than its share; infinity: nothing yet. None without Fair Tree."""
    fair_share: float | None = None
    """The factor. None: it has none, or the cluster counts no priorities."""


class AccountsShown(msgspec.Struct, frozen=True):
    """The tree as the asker may see it, parents before what is below them."""

    rows: tuple[AccountRow, ...]
    qos: tuple[Qos, ...]
    admin: bool = False
    """The asker may change everything here."""
    coordinated: tuple[str, ...] = ()
    """Accounts below which the asker may change users and accounts."""
    missing: str = ""
    """Why rows or QOS are unknown, as a sentence; empty: they are known."""


class QueueKind(StrEnum):
    QUOTA = "quota"
    """A node of the quota tree."""
    PARTITION = "partition"
    LICENCE = "licence"
    """Of another scheduler's cluster: what jobs wait for beside nodes."""


class QueueRow(msgspec.Struct, frozen=True, kw_only=True):
    """Where jobs wait and count: a node of the quota tree with all below it, a partition, or a licence."""

    kind: QueueKind
    path: str
    """`root/child-2`; of a partition its name, empty where the cluster has none."""
    name: str
    """The queue's: `root-child-2-v5zxz`; of a partition as the path."""
    level: int
    """How deep it stands in the tree; 0: root, or a partition."""
    since: Millis | None
    """When it came; None: nobody knows."""
    waiting: int
    running: int
    used: Amounts
    """Held now, by resource: CPUs, memory and cards."""
    min: Amounts
    """Guaranteed; absent: nothing."""
    max: Amounts
    """Never passed, of a partition what its nodes have; absent: unlimited."""
    max_jobs: int | None = None
    """So many run at once."""
    projects: tuple[str, ...] = ()
    """Of a leaf: whose jobs wait here."""
    bounded: tuple[str, ...] = ()
    """Resources that its tree speaks of: nothing else is borrowed."""


class QueuesShown(msgspec.Struct, frozen=True):
    """The tree, parents first, then the partitions."""

    rows: tuple[QueueRow, ...]
    tree: str = ""
    """The quota tree's name; empty: there is none."""
    admin: bool = False
    """The asker may apply and remove it."""


class EngineStatus(msgspec.Struct, frozen=True):
    """`cockpit engine status`."""

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
    """How containers are made: `root overlay`, `user overlay`, or what is done instead and what it lacks."""
    trouble: tuple[str, ...] = ()
    """What is wrong just now (disk full, runtime missing …), one sentence each."""
    asker: str = ""
    """Who asked, as the engine knows them; empty where nobody was asked."""
