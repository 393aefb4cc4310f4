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
            about="Give how often the job restarts after a failure.",
        ),
        Field(
            name="lost_only",
            attribute="lost_only",
            kind=Flag(),
            about="Restart only if its node fails or its container is lost, not if its command fails.",
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
            about="Give the least number of nodes with which it runs.",
        ),
        Field(
            name="allow_scaling",
            attribute="allow_scaling",
            kind=Flag(),
            about="If it has fewer nodes, it takes more while it runs.",
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
            about="Give the largest acceptable part of an iteration's end-to-end time that is hardware time: 0.9.",
        ),
        Field(
            name="action",
            attribute="action",
            kind=Choice(OnSlow),
            about="alert: mail to its owner and a notice; reschedule-and-alert: it also continues on other nodes.",
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
            about="Give how often the job resumes after a failure; preemption does not count.",
        ),
        Field(
            name="grace_period",
            attribute="grace_seconds",
            kind=Duration(GRACE_SECONDS),
            required=True,
            about="Give the time to write a checkpoint when the job is asked to end; replaces grace_period.",
        ),
        Field(
            name="elastic",
            attribute="elastic",
            kind=ELASTIC_RESUME,
            about="It runs with fewer nodes if not all are free; its command must support that.",
        ),
        Field(
            name="performance",
            attribute="performance",
            kind=PERFORMANCE,
            about="Iteration times are read from its log, and slow ones raise an alert.",
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
            about="Bash script to run before the command; if it fails, the job fails.",
        ),
        Field(
            name="after_end",
            attribute="after_end",
            kind=_SCRIPT,
            about="Bash script to run after the command, however it ended; killed after the grace period.",
        ),
    ],
)
