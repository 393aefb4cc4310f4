"""The fields of [staging] in cluster.toml."""

from __future__ import annotations

from cockpit.formats.checked import Checked, duration, whole
from cockpit.formats.kinds import Path
from cockpit.formats.tables import Field, Table
from cockpit.model.rules.bounds import Bounds
from cockpit.model.rules.text import path_error
from cockpit.model.staging import Staging

KEEP_SECONDS = Bounds(0, 3660 * 86_400, " s")
PERCENT = Bounds(1, 100)

STAGING = Table(
    Staging,
    [
        Field(
            name="folder",
            attribute="folder",
            kind=Checked(Path(), path_error),
            required=True,
            about="Give the folder on fast storage in which copies are made; the engine makes one of its own in it.",
        ),
        Field(
            name="keep",
            attribute="keep_seconds",
            kind=duration(KEEP_SECONDS),
            about="How long a copy stays after its last use.",
        ),
        Field(
            name="full",
            attribute="full_percent",
            kind=whole(PERCENT),
            about="Per cent: no copy fills the disk beyond it, and nodes whose disk is fuller start nothing more.",
        ),
    ],
)
