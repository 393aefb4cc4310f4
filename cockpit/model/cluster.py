"""The rules of a cluster, configured in Slurm's terms: partitions, priority, backfill, preemption.

Defaults are Slurm's, except that a cluster without a configuration serves jobs in the order of their submission
(`priority/basic`).
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
`gres/gpu:<model>` (in lower case). The unit of cards is one card: half a card is 0.5 `gres/gpu`."""


class PriorityKind(StrEnum):
    """slurm.conf's PriorityType."""

    BASIC = "priority/basic"
    """Jobs are considered in the order of submission."""
    MULTIFACTOR = "priority/multifactor"


# slurm.conf(5) has this name; all other flags are called the same.
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
        """The flag as slurm.conf(5) writes it."""
        return SLURMS_INCREMENT_ONLY if self is PriorityFlag.INCREMENT_ONLY else self.value


class UsageReset(StrEnum):
    """slurm.conf's PriorityUsageResetPeriod: when usage is reset to zero."""

    NONE = "NONE"
    NOW = "NOW"
    DAILY = "DAILY"
    WEEKLY = "WEEKLY"
    MONTHLY = "MONTHLY"
    QUARTERLY = "QUARTERLY"
    YEARLY = "YEARLY"


class Weights(msgspec.Struct, frozen=True, kw_only=True):
    """slurm.conf's PriorityWeight*: the weight of each factor of a job's priority."""

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
    # slurm.conf(5): PriorityCalcPeriod is 5 minutes by default.
    calc_period_seconds: int = 300
    decay_half_life_seconds: int = 7 * DAY_SECONDS
    """0: usage never decays."""
    usage_reset: UsageReset = UsageReset.NONE
    dampening_factor: int = 1
    """slurm.conf's FairShareDampeningFactor, which only classic fair share uses."""

    @property
    def fair_tree(self) -> bool:
        """Whether fair share follows the Fair Tree algorithm; False: the classic formula, or DEPTH_OBLIVIOUS of it."""
        return not {PriorityFlag.NO_FAIR_TREE, PriorityFlag.DEPTH_OBLIVIOUS}.intersection(self.flags)


class BackfillKind(StrEnum):
    """Which jobs may overtake the first job that waits for resources."""

    __hash__ = str.__hash__  # Enum hashes the member's name in Python code, once in every pass

    OFF = "off"
    """No job overtakes another."""
    EASY = "easy"
    """Jobs that do not delay the first waiting one (EASY backfill)."""
    CONSERVATIVE = "conservative"
    """Jobs that delay no job ahead of them (conservative backfill)."""


class Backfill(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of backfill. Slurm's bf_window, bf_resolution, bf_max_job_test; 0: without bound."""

    # Slurm itself reserves for every job that it looks at; that is CONSERVATIVE here.
    kind: BackfillKind = BackfillKind.EASY
    window_seconds: int = 0
    """How far ahead reservations are planned."""
    resolution_seconds: int = 0
    """The step to whose multiples the times of the plan are rounded up."""
    depth: int = 0
    """The most waiting jobs that one pass considers, without those equal to a job that did not fit."""
    whole_nodes: bool = False
    """Whether a reservation keeps all later jobs off its nodes, as in Slurm's backfill; else only off what it needs of
    them. With conservative backfill alone."""


class PreemptType(StrEnum):
    """slurm.conf's PreemptType."""

    NONE = "preempt/none"
    PARTITION = "preempt/partition_prio"
    QOS = "preempt/qos"


class Preemption(msgspec.Struct, frozen=True, kw_only=True):
    """slurm.conf's Preempt* parameters."""

    # Text and not the enumeration: clusters that are read from elsewhere may have a plug-in that cockpit does not know.
    kind: str = PreemptType.NONE
    mode: tuple[str, ...] = ("OFF",)
    exempt_seconds: int = 0
    """How long a job runs before it may be cancelled or requeued for another (PreemptExemptTime)."""
    slice_seconds: int = 30
    """How long each of several jobs that share CPUs runs before the next one's turn (SchedulerTimeSlice)."""


class PartitionState(StrEnum):
    """Whether a partition accepts submissions and starts jobs."""

    UP = "up"
    """It does both."""
    DOWN = "down"
    """It accepts submissions and starts no jobs."""
    DRAIN = "drain"
    """It starts its queued jobs and accepts no submissions."""
    INACTIVE = "inactive"
    """It does neither."""


class Partition(msgspec.Struct, frozen=True, kw_only=True):
    """A named set of nodes with rules. In every rule None or an empty tuple means: no bound."""

    name: str
    pools: tuple[str, ...] = ()
    nodes: tuple[NodeName, ...] = ()
    """Nodes besides those of `pools`. If both are empty, the partition has every node."""
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
    """The QOS whose limits hold for all jobs of the partition together; empty: none."""
    # Both of Slurm's defaults are 1; a partition without them takes part equally.
    priority_job_factor: int = 1
    priority_tier: int = 1
    """Jobs of a higher tier are considered before all others."""
    preempt_mode: str = ""
    grace_seconds: int = 0
    """The time between the notice of a preemption (preempt/partition_prio) and the kill."""
    billing_weights: Tres = {}
    """Slurm's TRESBillingWeights; empty: 1 for each CPU."""


class Enforce(StrEnum):
    """The parts of slurm.conf's AccountingStorageEnforce."""

    ASSOCIATIONS = "associations"
    LIMITS = "limits"
    QOS = "qos"
    SAFE = "safe"


class Project(msgspec.Struct, frozen=True, kw_only=True):
    """A project and its members."""

    name: str
    users: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    """Groups of the operating system whose members are members of the project."""


class Cluster(msgspec.Struct, frozen=True, kw_only=True):
    """The cluster's rules. Without partitions every node belongs to a single unnamed one without rules."""

    partitions: tuple[Partition, ...] = ()
    enforce: tuple[Enforce, ...] = ()
    """The parts as configured; `sched.rules.rulebook.enforced` adds those that they imply."""
    priority: Priority = Priority()
    backfill: Backfill = Backfill()
    preemption: Preemption = Preemption()
    login_pool: str = ""
    """The pool whose nodes run no jobs; empty: none."""
    home: str = ""
    """The folder mounted at /home in every container; empty: the machine's own."""
    prolog_scripts: tuple[str, ...] = ()
    epilog_scripts: tuple[str, ...] = ()
    urgent_jobs: int | None = None
    """The most urgent jobs of a user in one project, queued and running together; None: no bound."""
    projects: tuple[Project, ...] = ()
    """The projects and their members; empty: a job may name any project, whose only member is then its owner."""
    sharing: bool = True
    """Whether jobs may be opened to other members of their projects."""
    staging: Staging | None = None
    """Where data sets are staged; None: staging is not available."""
    max_resumes: int | None = None
    """The most retries that a job may ask for in `resume`; None: no bound."""
    max_grace_seconds: int | None = None
    """The longest grace period that a job may ask for in `resume`; None: no bound."""
    drain_after_prechecks: int = 2
    """The number of different jobs whose prechecks have to fail on a node for it to be drained."""
    precheck_exclusion_seconds: int = 3600
    """How long a node is excluded for a job whose precheck failed there."""
    mutable: bool = True
    """Whether the cluster can be changed; False: only another `cluster init` changes it."""
    members: tuple[Member, ...] = ()
    """The member clusters of a fleet, each of which is one partition of it; empty: it is no fleet."""

    def partition(self, name: str) -> Partition | None:
        """Return the partition of this name; None: there is none."""
        return next((each for each in self.partitions if each.name == name), None)

    @property
    def default_partition(self) -> Partition | None:
        """The partition of jobs that name none: the one marked as default, else the first; None: there are none."""
        return next((each for each in self.partitions if each.default), self.partitions[0] if self.partitions else None)


class Reservation(msgspec.Struct, frozen=True, kw_only=True):
    """An advance reservation: nodes that only some users, or no jobs at all, may use during an interval."""

    name: str
    nodes: tuple[NodeName, ...]
    start_at: int
    """The beginning, in milliseconds UTC."""
    end_at: int
    """The end, in milliseconds UTC."""
    users: tuple[str, ...] = ()
    accounts: tuple[str, ...] = ()
    maintenance: bool = False
    """Whether it is for maintenance, so that no job runs in it."""
