"""The columns of `cockpit engine status`."""

from __future__ import annotations

from typing import Final

from cockpit.model.view import EngineStatus
from cockpit.present.columns import Column, Context, Kind, Table


def status(row: EngineStatus, _: Context) -> str:
    return "running" if row.running else "stopped"


def scope(row: EngineStatus, _: Context) -> str:
    return "machine" if row.system else "user"


ENGINE: Final = Table(
    name="engine",
    identity=("pid",),
    help="The embedded engine",
    empty="",
    columns=(
        Column(
            "status", "STATUS", Kind.TEXT, "running or stopped", derive=status, schema={"enum": ["running", "stopped"]}
        ),
        Column("pid", "PID", Kind.INTEGER, "Its process", field="pid", nullable=True),
        Column("scope", "SCOPE", Kind.TEXT, "Whom it serves", derive=scope, schema={"enum": ["machine", "user"]}),
        Column("socket", "SOCKET", Kind.TEXT, "Where it listens", field="socket"),
        Column("state_folder", "STATE FOLDER", Kind.TEXT, "Where its journal is", field="state_folder"),
        Column("version", "VERSION", Kind.TEXT, "Of cockpit", field="version"),
        Column("protocol", "PROTOCOL", Kind.TEXT, "Of its socket, major.minor", field="protocol"),
        Column("started_at", "STARTED", Kind.MOMENT, "When it started", field="started_at", nullable=True),
        Column("jobs", "JOBS", Kind.INTEGER, "Jobs it knows", field="jobs"),
        Column("containers", "CONTAINERS", Kind.TEXT, "How containers are made", field="containers"),
        Column("trouble", "TROUBLE", Kind.WORDS, "What is wrong just now", field="trouble"),
    ),
)
