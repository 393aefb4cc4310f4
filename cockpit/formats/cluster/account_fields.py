"""The fields of the accounts that cluster.toml may begin with, by sacctmgr's names."""

from __future__ import annotations

from cockpit.formats.cluster.rule_fields import ONE_PREEMPT_MODE, SECONDS
from cockpit.formats.kinds import Flag, ListOf
from cockpit.formats.measures import duration, whole
from cockpit.formats.rulekinds import Factor, Shares, TresOf, Word, lowered, name, names, user
from cockpit.formats.tables import Field, Table
from cockpit.formats.trestext import NumberMeaning
from cockpit.model.accounts import Association, Qos, QosFlag, ResourceLimits
from cockpit.model.rules.bounds import Bounds

LIMIT = Bounds(0, 2**31 - 1)
SHARES = Bounds(0, 2**31 - 1)
PRIORITY = Bounds(0, 2**32 - 2)

_AMOUNT = TresOf(NumberMeaning.AMOUNT)
_COUNT = whole(LIMIT)

LIMITS = Table(
    ResourceLimits,
    [
        Field("max_wall", duration(SECONDS), "MaxWall: the longest time limit of a job.", attribute="max_wall_seconds"),
        Field("max_tres", _AMOUNT, "MaxTRES: of one job.", attribute="max_tres_per_job"),
        Field("max_tres_per_node", _AMOUNT, "MaxTRESPerNode: of one job on one node."),
        Field("min_tres", _AMOUNT, "MinTRES: a job asks for at least this (QOS only).", attribute="min_tres_per_job"),
        Field("max_jobs", _COUNT, "MaxJobs: running at once, of one user."),
        Field("max_submit_jobs", _COUNT, "MaxSubmitJobs: queued and running, of one user.", attribute="max_submit"),
        Field("grp_jobs", _COUNT, "GrpJobs: running at once, of all."),
        Field("grp_submit_jobs", _COUNT, "GrpSubmitJobs: queued and running, of all.", attribute="grp_submit"),
        Field("grp_tres", _AMOUNT, "GrpTRES: held at once, by all."),
        Field("grp_wall", duration(SECONDS), "GrpWall: decayed wall clock of all jobs.", attribute="grp_wall_seconds"),
        Field("grp_tres_mins", _AMOUNT, "GrpTRESMins: decayed usage in minutes, of all.", attribute="grp_tres_minutes"),
    ],
)
_LIMITS = Field("limits", LIMITS, "Limits; what is not named has no limit.")
_QOS = Field("qos", names(lowered()), "QOS that may be used; without it, those of the account above.")
_DEFAULT_QOS = Field("default_qos", lowered(), "The QOS of a job that names none.")
_PRIORITY = Field("priority", whole(PRIORITY), "Priority for the factor assoc; without it, that of the account above.")

QOS = Table(
    Qos,
    [
        Field("name", lowered(), "Give the QOS a name.", required=True),
        Field("priority", whole(PRIORITY), "Priority for the factor qos."),
        _LIMITS,
        Field("max_tres_per_user", _AMOUNT, "MaxTRESPerUser: held at once, by one user."),
        Field("max_tres_per_account", _AMOUNT, "MaxTRESPerAccount: held at once, by one account."),
        Field("max_jobs_per_account", _COUNT, "MaxJobsPerAccount: running at once."),
        Field(
            "max_submit_jobs_per_account",
            _COUNT,
            "MaxSubmitJobsPerAccount: queued and running.",
            attribute="max_submit_per_account",
        ),
        Field("usage_factor", Factor(), "UsageFactor: usage is multiplied by it."),
        Field("preempt", names(lowered()), "QOS whose jobs may be preempted by jobs of this one."),
        Field("preempt_mode", Word(ONE_PREEMPT_MODE), "Replaces the cluster's."),
        Field(
            "grace_time",
            duration(SECONDS),
            "GraceTime: between the notice of a preemption and the end.",
            attribute="grace_seconds",
        ),
        Field(
            "preempt_exempt_time",
            duration(SECONDS),
            "PreemptExemptTime: time for which its jobs cannot be preempted; without it: the cluster's.",
            attribute="exempt_seconds",
        ),
        Field(
            "flags",
            ListOf(Word([*QosFlag]), 32),
            "sacctmgr's flags of a QOS: DenyOnLimit, NoDecay, OverPartQOS, UsageFactorSafe, …",
        ),
    ],
)

ACCOUNT = Table(
    Association,
    [
        Field("name", lowered(), "Give the account a name.", attribute="account", required=True),
        Field("parent", lowered(), "The account above it; without it: root."),
        Field("shares", Shares(SHARES), "Fairshare: shares among the siblings."),
        _PRIORITY,
        _QOS,
        _DEFAULT_QOS,
        Field("coordinators", names(user()), "Users who administer the accounts and users below it."),
        _LIMITS,
    ],
)

USER = Table(
    Association,
    [
        Field("name", user(), "Give the user's name.", attribute="user", required=True),
        Field("account", lowered(), "Give the user's account.", required=True),
        Field("partition", name(), "Only in this partition; without it: in all."),
        Field("default", Flag(), "The user's default account."),
        Field("shares", Shares(SHARES), "Fairshare: shares among the siblings; parent: the account's own."),
        _PRIORITY,
        _QOS,
        _DEFAULT_QOS,
        _LIMITS,
    ],
)
