"""The fields of a cluster's rules in cluster.toml: partitions, priority, backfill, preemption, what is enforced."""

from __future__ import annotations

import msgspec

from cockpit.formats.kinds import Choice, Flag, ListOf, Text
from cockpit.formats.measures import Checked, duration, whole
from cockpit.formats.rulekinds import TresOf, Word, lowered, name, names, user
from cockpit.formats.tables import Field, Table
from cockpit.formats.trestext import NumberMeaning
from cockpit.model.cluster import (
    Backfill,
    BackfillKind,
    Enforce,
    Partition,
    PartitionState,
    Preemption,
    Priority,
    PriorityFlag,
    PriorityKind,
    Project,
    UsageReset,
    Weights,
)
from cockpit.model.names import NAME_LENGTH, NAME_PATTERN, name_error
from cockpit.model.rules.bounds import Bounds
from cockpit.model.spec import DAY_SECONDS

COUNT = Bounds(0, 1_000_000)
WEIGHT = Bounds(0, 2**32 - 2)
JOB_FACTOR = Bounds(0, 65_533)
SECONDS = Bounds(0, 36_600 * DAY_SECONDS, " s")
SLICE = Bounds(5, 65_533, " s")
"""The values that slurm.conf permits for SchedulerTimeSlice."""
PREEMPT_TYPES = ("preempt/none", "preempt/partition_prio", "preempt/qos")
PREEMPT_MODES = ("OFF", "CANCEL", "GANG", "REQUEUE", "SUSPEND", "WITHIN")
ONE_PREEMPT_MODE = ("OFF", "CANCEL", "GANG", "REQUEUE", "SUSPEND")
"""The preemption mode of one partition or QOS."""


class Accounting(msgspec.Struct, frozen=True):
    """[accounting]"""

    enforce: tuple[Enforce, ...] = ()


WEIGHTS = Table(
    Weights,
    [
        Field(name="age", attribute="age", kind=whole(WEIGHT), about="Weight of a job's age."),
        Field(name="assoc", attribute="assoc", kind=whole(WEIGHT), about="Weight of the association's own priority."),
        Field(name="fairshare", attribute="fairshare", kind=whole(WEIGHT), about="Weight of fair share."),
        Field(name="job_size", attribute="job_size", kind=whole(WEIGHT), about="Weight of the job's size."),
        Field(
            name="partition", attribute="partition", kind=whole(WEIGHT), about="Weight of the partition's job factor."
        ),
        Field(name="qos", attribute="qos", kind=whole(WEIGHT), about="Weight of the QOS's priority."),
        Field(
            name="tres",
            attribute="tres",
            kind=TresOf(NumberMeaning.WEIGHT),
            about='Weight of each resource, as "cpu=100,mem=150" or a table.',
        ),
    ],
)

PRIORITY = Table(
    Priority,
    [
        Field(
            name="type",
            attribute="kind",
            kind=Choice(PriorityKind),
            about="Order of the queue: by submission, or by the weighted factors.",
        ),
        Field(name="weights", attribute="weights", kind=WEIGHTS, about="Weight of each factor."),
        Field(
            name="flags",
            attribute="flags",
            kind=ListOf(Choice(PriorityFlag, also={each.slurm: each for each in PriorityFlag}), 16),
            about="slurm.conf's PriorityFlags.",
        ),
        Field(name="favor_small", attribute="favor_small", kind=Flag(), about="Small jobs get the larger size factor."),
        Field(
            name="max_age",
            attribute="max_age_seconds",
            kind=duration(SECONDS),
            about="Age at which the age factor stops growing.",
        ),
        Field(
            name="calc_period",
            attribute="calc_period_seconds",
            kind=duration(Bounds(1, DAY_SECONDS, " s")),
            about="How often usage decays.",
        ),
        Field(
            name="decay_half_life",
            attribute="decay_half_life_seconds",
            kind=duration(SECONDS),
            about="Time after which usage counts half; 0: it never decays.",
        ),
        Field(
            name="usage_reset",
            attribute="usage_reset",
            kind=Choice(UsageReset),
            about="When usage is reset to zero.",
        ),
        Field(
            name="dampening_factor",
            attribute="dampening_factor",
            kind=whole(Bounds(1, 65_533)),
            about="FairShareDampeningFactor, for classic fair share.",
        ),
    ],
)

BACKFILL = Table(
    Backfill,
    [
        Field(
            name="type",
            attribute="kind",
            kind=Choice(BackfillKind),
            about="Jobs that may start early: off (none), easy (not delaying the first), conservative (delaying none).",
        ),
        Field(
            name="window",
            attribute="window_seconds",
            kind=duration(SECONDS),
            about="How far ahead the scheduler plans; 0: no bound.",
        ),
        Field(
            name="resolution",
            attribute="resolution_seconds",
            kind=duration(Bounds(0, DAY_SECONDS, " s")),
            about="Times in the plan are multiples of this; 0: exact.",
        ),
        Field(
            name="depth",
            attribute="depth",
            kind=whole(COUNT),
            about="How many queued jobs one pass considers; 0: all.",
        ),
    ],
)

PREEMPTION = Table(
    Preemption,
    [
        Field(name="type", attribute="kind", kind=Word(PREEMPT_TYPES), about="slurm.conf's PreemptType."),
        Field(name="mode", attribute="mode", kind=ListOf(Word(PREEMPT_MODES), 8), about="slurm.conf's PreemptMode."),
        Field(
            name="exempt_time",
            attribute="exempt_seconds",
            kind=duration(SECONDS),
            about="Time for which a job cannot be preempted after its start.",
        ),
        Field(
            name="time_slice",
            attribute="slice_seconds",
            kind=duration(SLICE),
            about="SchedulerTimeSlice: the turn of each of several jobs that share CPUs.",
        ),
    ],
)

ACCOUNTING = Table(
    Accounting,
    [
        Field(
            name="enforce",
            attribute="enforce",
            kind=ListOf(Choice(Enforce), 8),
            about="Parts of AccountingStorageEnforce: associations, limits, qos, safe.",
        ),
    ],
)

PARTITION = Table(
    Partition,
    [
        Field(name="name", attribute="name", kind=name(), required=True, about="Give the partition a name."),
        Field(
            name="node_pools", attribute="pools", kind=names(name()), about="Pools whose nodes belong to the partition."
        ),
        Field(
            name="nodes",
            attribute="nodes",
            kind=names(name()),
            about="Further nodes of the partition. Without pools and nodes: every node.",
        ),
        Field(name="default", attribute="default", kind=Flag(), about="The partition of jobs that name none."),
        Field(
            name="state",
            attribute="state",
            kind=Choice(PartitionState),
            about="up, down, drain or inactive, as in Slurm.",
        ),
        Field(
            name="max_time",
            attribute="max_time_seconds",
            kind=duration(SECONDS),
            about="The longest time limit of a job; without it: no bound.",
        ),
        Field(
            name="default_time",
            attribute="default_time_seconds",
            kind=duration(SECONDS),
            about="The time limit of a job that names none.",
        ),
        Field(name="min_nodes", attribute="min_nodes", kind=whole(COUNT), about="The least number of nodes of a job."),
        Field(
            name="max_nodes", attribute="max_nodes", kind=whole(COUNT), about="The largest number of nodes of a job."
        ),
        Field(
            name="allow_accounts",
            attribute="allow_accounts",
            kind=names(lowered()),
            about="Only these accounts and those below them may use it.",
        ),
        Field(
            name="deny_accounts",
            attribute="deny_accounts",
            kind=names(lowered()),
            about="All accounts except these may use it.",
        ),
        Field(name="allow_qos", attribute="allow_qos", kind=names(lowered()), about="Only these QOS may use it."),
        Field(name="deny_qos", attribute="deny_qos", kind=names(lowered()), about="All QOS except these may use it."),
        Field(name="allow_users", attribute="allow_users", kind=names(user()), about="Only these users may use it."),
        Field(
            name="qos",
            attribute="qos",
            kind=lowered(),
            about="The QOS whose limits hold for the partition as a whole.",
        ),
        Field(
            name="priority_job_factor",
            attribute="priority_job_factor",
            kind=whole(JOB_FACTOR),
            about="The partition's factor in a job's priority.",
        ),
        Field(
            name="priority_tier",
            attribute="priority_tier",
            kind=whole(JOB_FACTOR),
            about="Jobs of a higher tier are considered first.",
        ),
        Field(
            name="preempt_mode",
            attribute="preempt_mode",
            kind=Word(ONE_PREEMPT_MODE),
            about="Replaces the cluster's.",
        ),
        Field(
            name="grace_time",
            attribute="grace_seconds",
            kind=duration(SECONDS),
            about="GraceTime: between the notice of a preemption (preempt/partition_prio) and the end.",
        ),
        Field(
            name="tres_billing_weights",
            attribute="billing_weights",
            kind=TresOf(NumberMeaning.PRICE),
            about='What each resource costs, as "cpu=1.0,mem=0.25G"; without it: 1 for each CPU.',
        ),
    ],
)

PROJECT = Table(
    Project,
    [
        Field(
            name="name",
            attribute="name",
            kind=Checked(Text(minLength=1, maxLength=NAME_LENGTH, pattern=NAME_PATTERN), name_error),
            required=True,
            about="Give the project a name.",
        ),
        Field(name="users", attribute="users", kind=names(user()), about="Members of the project."),
        Field(
            name="groups",
            attribute="groups",
            kind=names(user()),
            about="Groups of the system whose members belong to the project.",
        ),
    ],
)
