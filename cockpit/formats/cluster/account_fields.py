"""The fields of the accounts that cluster.toml may begin with, by sacctmgr's names."""

from __future__ import annotations

from cockpit.formats.cluster.rule_fields import ONE_PREEMPT_MODE, SECONDS
from cockpit.formats.kinds import Flag, ListOf
from cockpit.formats.measures import duration, whole
from cockpit.formats.rulekinds import Factor, Shares, TresOf, Word, lowered, name, names, user
from cockpit.formats.tables import Field, Table
from cockpit.formats.trestext import NumberMeaning
from cockpit.model.accounts import Association, Limits, Qos, QosFlag
from cockpit.model.rules.bounds import Bounds

LIMIT = Bounds(0, 2**31 - 1)
SHARES = Bounds(0, 2**31 - 1)
PRIORITY = Bounds(0, 2**32 - 2)

_AMOUNT = TresOf(NumberMeaning.AMOUNT)


def _count(name: str, attribute: str, about: str) -> Field:
    return Field(name=name, attribute=attribute, kind=whole(LIMIT), about=about)


def _tres(name: str, attribute: str, about: str) -> Field:
    return Field(name=name, attribute=attribute, kind=_AMOUNT, about=about)


LIMITS = Table(
    Limits,
    [
        Field(
            name="max_wall",
            attribute="max_wall_seconds",
            kind=duration(SECONDS),
            about="MaxWall: the longest time limit of a job.",
        ),
        _tres("max_tres", "max_tres_per_job", "MaxTRES: of one job."),
        _tres("max_tres_per_node", "max_tres_per_node", "MaxTRESPerNode: of one job on one node."),
        _tres("min_tres", "min_tres_per_job", "MinTRES: a job asks for at least this (QOS only)."),
        _count("max_jobs", "max_jobs", "MaxJobs: running at once, of one user."),
        _count("max_submit_jobs", "max_submit", "MaxSubmitJobs: queued and running, of one user."),
        _count("grp_jobs", "grp_jobs", "GrpJobs: running at once, of all."),
        _count("grp_submit_jobs", "grp_submit", "GrpSubmitJobs: queued and running, of all."),
        _tres("grp_tres", "grp_tres", "GrpTRES: held at once, by all."),
        Field(
            name="grp_wall",
            attribute="grp_wall_seconds",
            kind=duration(SECONDS),
            about="GrpWall: decayed wall clock of all jobs.",
        ),
        _tres("grp_tres_mins", "grp_tres_minutes", "GrpTRESMins: decayed usage in minutes, of all."),
    ],
)
_LIMITS = Field(name="limits", attribute="limits", kind=LIMITS, about="Limits; what is not named has no limit.")
_QOS = Field(
    name="qos",
    attribute="qos",
    kind=names(lowered()),
    about="QOS that may be used; without it, those of the account above.",
)
_DEFAULT_QOS = Field(
    name="default_qos", attribute="default_qos", kind=lowered(), about="The QOS of a job that names none."
)
_PRIORITY = Field(
    name="priority",
    attribute="priority",
    kind=whole(PRIORITY),
    about="Priority for the factor assoc; without it, that of the account above.",
)

QOS = Table(
    Qos,
    [
        Field(name="name", attribute="name", kind=lowered(), required=True, about="Give the QOS a name."),
        Field(name="priority", attribute="priority", kind=whole(PRIORITY), about="Priority for the factor qos."),
        _LIMITS,
        _tres("max_tres_per_user", "max_tres_per_user", "MaxTRESPerUser: held at once, by one user."),
        _tres("max_tres_per_account", "max_tres_per_account", "MaxTRESPerAccount: held at once, by one account."),
        _count("max_jobs_per_account", "max_jobs_per_account", "MaxJobsPerAccount: running at once."),
        _count("max_submit_jobs_per_account", "max_submit_per_account", "MaxSubmitJobsPerAccount: queued and running."),
        Field(
            name="usage_factor",
            attribute="usage_factor",
            kind=Factor(),
            about="UsageFactor: usage is multiplied by it.",
        ),
        Field(
            name="preempt",
            attribute="preempt",
            kind=names(lowered()),
            about="QOS whose jobs may be preempted by jobs of this one.",
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
            about="GraceTime: between the notice of a preemption and the end.",
        ),
        Field(
            name="preempt_exempt_time",
            attribute="exempt_seconds",
            kind=duration(SECONDS),
            about="PreemptExemptTime: time for which its jobs cannot be preempted; without it: the cluster's.",
        ),
        Field(
            name="flags",
            attribute="flags",
            kind=ListOf(Word([*QosFlag]), 32),
            about="sacctmgr's flags of a QOS: DenyOnLimit, NoDecay, OverPartQOS, UsageFactorSafe, …",
        ),
    ],
)

ACCOUNT = Table(
    Association,
    [
        Field(name="name", attribute="account", kind=lowered(), required=True, about="Give the account a name."),
        Field(name="parent", attribute="parent", kind=lowered(), about="The account above it; without it: root."),
        Field(name="shares", attribute="shares", kind=Shares(SHARES), about="Fairshare: shares among the siblings."),
        _PRIORITY,
        _QOS,
        _DEFAULT_QOS,
        Field(
            name="coordinators",
            attribute="coordinators",
            kind=names(user()),
            about="Users who administer the accounts and users below it.",
        ),
        _LIMITS,
    ],
)

USER = Table(
    Association,
    [
        Field(name="name", attribute="user", kind=user(), required=True, about="Give the user's name."),
        Field(name="account", attribute="account", kind=lowered(), required=True, about="Give the user's account."),
        Field(
            name="partition", attribute="partition", kind=name(), about="Only in this partition; without it: in all."
        ),
        Field(name="default", attribute="default", kind=Flag(), about="The user's default account."),
        Field(
            name="shares",
            attribute="shares",
            kind=Shares(SHARES),
            about="Fairshare: shares among the siblings; parent: the account's own.",
        ),
        _PRIORITY,
        _QOS,
        _DEFAULT_QOS,
        _LIMITS,
    ],
)
