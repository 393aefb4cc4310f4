"""The fields of a batch's task."""

from __future__ import annotations

from cockpit.formats.kinds import Text
from cockpit.formats.mountfields import ALGORITHM
from cockpit.formats.tables import Field, Table
from cockpit.model.spec import Task
from cockpit.model.textrules import COMMAND_BYTES

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
            about="What the task sees as /workspace/algorithm.",
        ),
    ],
)
