"""The fields of a batch's task."""

from __future__ import annotations

from cockpit.formats.job.mounts import ALGORITHM
from cockpit.formats.kinds import Text
from cockpit.formats.tables import Field, Table
from cockpit.model.rules.text import COMMAND_BYTES
from cockpit.model.spec import Task

TASK = Table(
    Task,
    [
        Field(
            name="command",
            attribute="command",
            kind=Text(minLength=1, maxLength=COMMAND_BYTES),
            required=True,
            about="Give the executable and its arguments.",
        ),
        Field(
            name="algorithm",
            attribute="algorithm",
            kind=ALGORITHM,
            about="The folder that the task sees as /workspace/algorithm.",
        ),
    ],
)
