"""How a cluster schedules, as its administrator says it: partitions, priority, backfill, preemption. Slurm's terms.

Every default is Slurm's, but a cluster without a configuration serves first come, first served (`priority/basic`).
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from cockpit.model.fleet import Member
from cockpit.model.ids import NodeName
from cockpit.model.spec import DAY_SECONDS
from cockpit.model.staging import Staging

Tres = dict[str, float]
"""Amounts of trackable resources by Slurm's names: `cpu`, `mem` (MiB), `node`, `billing`, `gres/gpu`,
`gres/gpu:<model>` (in lower case). Cards count whole: half a card is 0.5 `gres/gpu`."""


class PriorityKind(StrEnum):
    BASIC = "priority/basic"
    """In order of submission."""
    MULTIFACTOR = "priority/multifactor"


SLURMS_INCREMENT_ONLY = "INCR_ONLY"


class PriorityFlag(StrEnum):
    """slurm.conf's PriorityFlags."""

    ACCRUE_ALWAYS = "ACCRUE_ALWAYS"
    CALCULATE_RUNNING = "CALCULATE_RUNNING"
    DEPTH_OBLIVIOUS = "DEPTH_OBLIVIOUS"
    INCREMENT_ONLY = "INCREMENT_ONLY"
    MAX_TRES = "MAX_TRES"
    NO_FAIR_TREE = "NO_FAIR_TREE"
    NO_NORMAL_ALL = "NO_NORMAL_ALL"
    NO_NORMAL_ASSOC = "NO_NORMAL_ASSOC"
    NO_NORMAL_PART = "NO_NORMAL_PART"
    NO_NORMAL_QOS = "NO_NORMAL_QOS"
    NO_NORMAL_TRES = "NO_NORMAL_TRES"
    SMALL_RELATIVE_TO_TIME = "SMALL_RELATIVE_TO_TIME"

    @property
    def slurm(self) -> str:
        """As slurm.conf(5) writes it."""
        return SLURMS_INCREMENT_ONLY if self is PriorityFlag.INCREMENT_ONLY else self.value


class UsageReset(StrEnum):
    """PriorityUsageResetPeriod: when usage falls to nothing."""

    NONE = "NONE"
    NOW = "NOW"
    DAILY = "DAILY"
    WEEKLY = "WEEKLY"
    MONTHLY = "MONTHLY"
    QUARTERLY = "QUARTERLY"
    YEARLY = "YEARLY"


class Weights(msgspec.Struct, frozen=True, kw_only=True):
    """PriorityWeight*: what each factor counts."""

    age: int = 0
    assoc: int = 0
    fairshare: int = 0
    job_size: int = 0
    partition: int = 0
    qos: int = 0
    tres: Tres = {}


class Priority(msgspec.Struct, frozen=True, kw_only=True):
    """slurm.conf's Priority* parameters."""

    kind: PriorityKind = PriorityKind.BASIC
    weights: Weights = Weights()
    flags: tuple[PriorityFlag, ...] = ()
    favor_small: bool = False
    max_age_seconds: int = 7 * DAY_SECONDS
    calc_period_seconds: int = 300
    decay_half_life_seconds: int = 7 * DAY_SECONDS
    """0: usage never decays."""
    usage_reset: UsageReset = UsageReset.NONE
    dampening_factor: int = 1
    """FairShareDampeningFactor; classic fair share only."""

    @property
    def fair_tree(self) -> bool:
        """False: fair share by the classic formula, which DEPTH_OBLIVIOUS is a variant of."""
        return not {PriorityFlag.NO_FAIR_TREE, PriorityFlag.DEPTH_OBLIVIOUS}.intersection(self.flags)


class BackfillKind(StrEnum):
    __hash__ = str.__hash__  # as equality; Enum's own is made by name, in Python, once in every pass

    OFF = "off"
    """Nothing passes the first job that waits for room."""
    EASY = "easy"
    """The first job that waits for room is never delayed."""
    CONSERVATIVE = "conservative"
    """No job is delayed by one behind it."""


class Backfill(msgspec.Struct, frozen=True, kw_only=True):
    """Who may pass whom. Slurm's bf_window, bf_resolution, bf_max_job_test; 0: without bound."""

    kind: BackfillKind = BackfillKind.EASY
    window_seconds: int = 0
    """How far ahead reservations are planned."""
    resolution_seconds: int = 0
    """Moments of the plan are rounded up to multiples of this."""
    depth: int = 0
    """How many waiting jobs are looked at in one cycle, distinct shapes that already failed not counted."""


class PreemptType(StrEnum):
    NONE = "preempt/none"
    PARTITION = "preempt/partition_prio"
    QOS = "preempt/qos"


class Preemption(msgspec.Struct, frozen=True, kw_only=True):
    """slurm.conf's Preempt* parameters."""

    kind: str = PreemptType.NONE
    mode: tuple[str, ...] = ("OFF",)
    exempt_seconds: int = 0
    """So long a job runs before it is cancelled or requeued for another."""
    slice_seconds: int = 30
    """SchedulerTimeSlice: how long jobs that share CPUs by turns go on at a time."""


class PartitionState(StrEnum):
    UP = "up"
    DOWN = "down"
    """Takes submissions, starts nothing."""
    DRAIN = "drain"
    """Starts what it has, takes no submissions."""
    INACTIVE = "inactive"
    """Neither."""


class Partition(msgspec.Struct, frozen=True, kw_only=True):
    """A named set of nodes with rules. None or an empty tuple: no bound."""

    name: str
    pools: tuple[str, ...] = ()
    nodes: tuple[NodeName, ...] = ()
    """Its nodes: those of the pools and these; every node where both are empty."""
    default: bool = False
    state: PartitionState = PartitionState.UP
    max_time_seconds: int | None = None
    default_time_seconds: int | None = None
    min_nodes: int = 0
    max_nodes: int | None = None
    allow_accounts: tuple[str, ...] = ()
    deny_accounts: tuple[str, ...] = ()
    allow_qos: tuple[str, ...] = ()
    deny_qos: tuple[str, ...] = ()
    allow_users: tuple[str, ...] = ()
    qos: str = ""
    """The QOS whose limits hold for the partition as a whole."""
    priority_job_factor: int = 1
    priority_tier: int = 1
    """Jobs of a higher tier are considered before all others."""
    preempt_mode: str = ""
    grace_seconds: int = 0
    """Between the notice of a preemption (preempt/partition_prio) and the end."""
    billing_weights: Tres = {}
    """TRESBillingWeights; empty: one per CPU."""


class Enforce(StrEnum):
    """Parts of AccountingStorageEnforce."""

    ASSOCIATIONS = "associations"
    LIMITS = "limits"
    QOS = "qos"
    SAFE = "safe"


class Project(msgspec.Struct, frozen=True, kw_only=True):
    """A project and who is in it."""

    name: str
    users: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    """Groups of the system, all of whose members are."""


class Cluster(msgspec.Struct, frozen=True, kw_only=True):
    """The cluster's rules. Without partitions there is one unnamed one over every node, without bounds."""

    partitions: tuple[Partition, ...] = ()
    enforce: tuple[Enforce, ...] = ()
    """As written; what one part implies is `rules.enforced`'s to say."""
    priority: Priority = Priority()
    backfill: Backfill = Backfill()
    preemption: Preemption = Preemption()
    login_pool: str = ""
    """Its nodes run no jobs."""
    home: str = ""
    """The folder mounted at /home in every container; empty: the machine's own."""
    prolog_scripts: tuple[str, ...] = ()
    epilog_scripts: tuple[str, ...] = ()
    urgent_jobs: int | None = None
    """A user's urgent jobs within one project, queued and running together; None: no bound."""
    projects: tuple[Project, ...] = ()
    """Empty: a job may name any project, and none has members but its owner."""
    sharing: bool = True
    """False: no job is open to anybody but its owner."""
    staging: Staging | None = None
    """Where datasets are staged; None: nowhere."""
    max_resumes: int | None = None
    """So often a job may go on from its checkpoints; None: as often as it says."""
    max_grace_seconds: int | None = None
    """So much time such a job may have to end; None: as much as it says."""
    mutable: bool = True
    """False: fixed at `cluster init`; only another init changes it."""
    members: tuple[Member, ...] = ()
    """The clusters of a fleet, whose partitions they are; empty: it is no fleet."""

    def partition(self, name: str) -> Partition | None:
        return next((each for each in self.partitions if each.name == name), None)

    @property
    def default_partition(self) -> Partition | None:
        """Where a job goes that names none: the one marked so, else the first."""
        return next((each for each in self.partitions if each.default), self.partitions[0] if self.partitions else None)


class Reservation(msgspec.Struct, frozen=True, kw_only=True):
    """Nodes kept for somebody, or for maintenance, over a span of time (an advance reservation)."""

    name: str
    nodes: tuple[NodeName, ...]
    start_at: int
    """Milliseconds UTC."""
    end_at: int
    users: tuple[str, ...] = ()
    accounts: tuple[str, ...] = ()
    maintenance: bool = False
    """Nobody's jobs run in it."""
