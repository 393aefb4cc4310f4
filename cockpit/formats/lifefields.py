"""The fields that say how a job lives: what runs around its command, and how it begins again."""

from __future__ import annotations

from cockpit.formats.kinds import Text, Whole
from cockpit.formats.measures import Duration
from cockpit.formats.tables import Field, Table
from cockpit.model.rules import GRACE_SECONDS, RESTARTS, VALUE_BYTES
from cockpit.model.spec import Hooks, Restart, Resume

_SCRIPT = Text(maxLength=VALUE_BYTES)

RESTART = Table(
    Restart,
    [
        Field(
            name="max_restarts",
            attribute="max_restarts",
            kind=Whole(RESTARTS),
            required=True,
            about="Give how often it begins again after a failure.",
        ),
    ],
)

RESUME = Table(
    Resume,
    [
        Field(
            name="max_resumes",
            attribute="max_resumes",
            kind=Whole(RESTARTS),
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
