"""Fields for hooks around a job's command, and for its restarts and resumes."""

from __future__ import annotations

from cockpit.formats.kinds import Choice, Flag, Text, WholeNumber
from cockpit.formats.measures import Duration
from cockpit.formats.rulekinds import Factor
from cockpit.formats.tables import Field, Table
from cockpit.model.resilience import ElasticResume, OnSlow, Performance, Restart, Resume
from cockpit.model.rules.bounds import GRACE_SECONDS, NODES, RESTARTS, VALUE_BYTES
from cockpit.model.spec import Hooks

_SCRIPT = Text(maxLength=VALUE_BYTES)

RESTART = Table(
    Restart,
    [
        Field(
            name="max_restarts",
            attribute="max_restarts",
            kind=WholeNumber(RESTARTS),
            required=True,
            about="Give how often it begins again after a failure.",
        ),
        Field(
            name="lost_only",
            attribute="lost_only",
            kind=Flag(),
            about="Only where its node fails or its container is lost; not where its command fails.",
        ),
    ],
)

ELASTIC_RESUME = Table(
    ElasticResume,
    [
        Field(
            name="min_nodes",
            attribute="min_nodes",
            kind=WholeNumber(NODES),
            required=True,
            about="Give with how few of its nodes it runs.",
        ),
        Field(
            name="allow_scaling",
            attribute="allow_scaling",
            kind=Flag(),
            about="One that has fewer takes more while it runs.",
        ),
    ],
)

PERFORMANCE = Table(
    Performance,
    [
        Field(
            name="threshold",
            attribute="threshold",
            kind=Factor(),
            required=True,
            about="Give the part of an iteration's end-to-end time above which its hardware time is too much: 0.9.",
        ),
        Field(
            name="action",
            attribute="action",
            kind=Choice(OnSlow),
            about="alert: mail to its owner and a notice; reschedule-and-alert: it also goes on on other nodes.",
        ),
    ],
)

RESUME = Table(
    Resume,
    [
        Field(
            name="max_resumes",
            attribute="max_resumes",
            kind=WholeNumber(RESTARTS),
            required=True,
            about="Give how often it goes on after a failure; giving way to another job does not count.",
        ),
        Field(
            name="grace_period",
            attribute="grace_seconds",
            kind=Duration(GRACE_SECONDS),
            required=True,
            about="Give the time it has to write a checkpoint and end when it is asked to; instead of grace_period.",
        ),
        Field(
            name="elastic",
            attribute="elastic",
            kind=ELASTIC_RESUME,
            about="It runs with fewer nodes where there is not room for all; its command has to be made for that.",
        ),
        Field(
            name="performance",
            attribute="performance",
            kind=PERFORMANCE,
            about="Its log is read for how long iterations take, and slow ones raise an alert.",
        ),
    ],
)

HOOKS = Table(
    Hooks,
    [
        Field(
            name="before_start",
            attribute="before_start",
            kind=_SCRIPT,
            about="Bash script run before the command; where it fails, so does the job.",
        ),
        Field(
            name="after_end",
            attribute="after_end",
            kind=_SCRIPT,
            about="Bash script run after the command, however it ended, for as long as the grace period lasts.",
        ),
    ],
)
