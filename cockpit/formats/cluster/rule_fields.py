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
        Field("age", whole(WEIGHT), "Weight of a job's age."),
        Field("assoc", whole(WEIGHT), "Weight of the association's own priority."),
        Field("fairshare", whole(WEIGHT), "Weight of fair share."),
        Field("job_size", whole(WEIGHT), "Weight of the job's size."),
        Field("partition", whole(WEIGHT), "Weight of the partition's job factor."),
        Field("qos", whole(WEIGHT), "Weight of the QOS's priority."),
        Field("tres", TresOf(NumberMeaning.WEIGHT), 'Weight of each resource, as "cpu=100,mem=150" or a table.'),
    ],
)

PRIORITY = Table(
    Priority,
    [
        Field(
            "type",
            Choice(PriorityKind),
            "Order of the queue: by submission, or by the weighted factors.",
            attribute="kind",
        ),
        Field("weights", WEIGHTS, "Weight of each factor."),
        Field(
            "flags",
            ListOf(Choice(PriorityFlag, also={each.slurm: each for each in PriorityFlag}), 16),
            "slurm.conf's PriorityFlags.",
        ),
        Field("favor_small", Flag(), "Small jobs get the larger size factor."),
        Field("max_age", duration(SECONDS), "Age at which the age factor stops growing.", attribute="max_age_seconds"),
        Field(
            "calc_period",
            duration(Bounds(1, DAY_SECONDS, " s")),
            "How often usage decays.",
            attribute="calc_period_seconds",
        ),
        Field(
            "decay_half_life",
            duration(SECONDS),
            "Time after which usage counts half; 0: it never decays.",
            attribute="decay_half_life_seconds",
        ),
        Field("usage_reset", Choice(UsageReset), "When usage is reset to zero."),
        Field("dampening_factor", whole(Bounds(1, 65_533)), "FairShareDampeningFactor, for classic fair share."),
    ],
)

BACKFILL = Table(
    Backfill,
    [
        Field(
            "type",
            Choice(BackfillKind),
            "Jobs that may start early: off (none), easy (not delaying the first), conservative (delaying none).",
            attribute="kind",
        ),
        Field(
            "window", duration(SECONDS), "How far ahead the scheduler plans; 0: no bound.", attribute="window_seconds"
        ),
        Field(
            "resolution",
            duration(Bounds(0, DAY_SECONDS, " s")),
            "Times in the plan are multiples of this; 0: exact.",
            attribute="resolution_seconds",
        ),
        Field("depth", whole(COUNT), "How many queued jobs one pass considers; 0: all."),
    ],
)

PREEMPTION = Table(
    Preemption,
    [
        Field("type", Word(PREEMPT_TYPES), "slurm.conf's PreemptType.", attribute="kind"),
        Field("mode", ListOf(Word(PREEMPT_MODES), 8), "slurm.conf's PreemptMode."),
        Field(
            "exempt_time",
            duration(SECONDS),
            "Time for which a job cannot be preempted after its start.",
            attribute="exempt_seconds",
        ),
        Field(
            "time_slice",
            duration(SLICE),
            "SchedulerTimeSlice: the turn of each of several jobs that share CPUs.",
            attribute="slice_seconds",
        ),
    ],
)

ACCOUNTING = Table(
    Accounting,
    [
        Field(
            "enforce", ListOf(Choice(Enforce), 8), "Parts of AccountingStorageEnforce: associations, limits, qos, safe."
        )
    ],
)

PARTITION = Table(
    Partition,
    [
        Field("name", name(), "Give the partition a name.", required=True),
        Field("node_pools", names(name()), "Pools whose nodes belong to the partition.", attribute="pools"),
        Field("nodes", names(name()), "Further nodes of the partition. Without pools and nodes: every node."),
        Field("default", Flag(), "The partition of jobs that name none."),
        Field("state", Choice(PartitionState), "up, down, drain or inactive, as in Slurm."),
        Field(
            "max_time",
            duration(SECONDS),
            "The longest time limit of a job; without it: no bound.",
            attribute="max_time_seconds",
        ),
        Field(
            "default_time",
            duration(SECONDS),
            "The time limit of a job that names none.",
            attribute="default_time_seconds",
        ),
        Field("min_nodes", whole(COUNT), "The least number of nodes of a job."),
        Field("max_nodes", whole(COUNT), "The largest number of nodes of a job."),
        Field("allow_accounts", names(lowered()), "Only these accounts and those below them may use it."),
        Field("deny_accounts", names(lowered()), "All accounts except these may use it."),
        Field("allow_qos", names(lowered()), "Only these QOS may use it."),
        Field("deny_qos", names(lowered()), "All QOS except these may use it."),
        Field("allow_users", names(user()), "Only these users may use it."),
        Field("qos", lowered(), "The QOS whose limits hold for the partition as a whole."),
        Field("priority_job_factor", whole(JOB_FACTOR), "The partition's factor in a job's priority."),
        Field("priority_tier", whole(JOB_FACTOR), "Jobs of a higher tier are considered first."),
        Field("preempt_mode", Word(ONE_PREEMPT_MODE), "Replaces the cluster's."),
        Field(
            "grace_time",
            duration(SECONDS),
            "GraceTime: between the notice of a preemption (preempt/partition_prio) and the end.",
            attribute="grace_seconds",
        ),
        Field(
            "tres_billing_weights",
            TresOf(NumberMeaning.PRICE),
            'What each resource costs, as "cpu=1.0,mem=0.25G"; without it: 1 for each CPU.',
            attribute="billing_weights",
        ),
    ],
)

PROJECT = Table(
    Project,
    [
        Field(
            "name",
            Checked(Text(minLength=1, maxLength=NAME_LENGTH, pattern=NAME_PATTERN), name_error),
            "Give the project a name.",
            required=True,
        ),
        Field("users", names(user()), "Members of the project."),
        Field("groups", names(user()), "Groups of the system whose members belong to the project."),
    ],
)
