"""The columns of `cockpit engine status`."""

from __future__ import annotations

from typing import Final

from cockpit.model.view import EngineStatus
from cockpit.present.columns import Column, Context, TableView, ValueKind


def status(row: EngineStatus, _: Context) -> str:
    return "running" if row.running else "stopped"


def scope(row: EngineStatus, _: Context) -> str:
    return "machine" if row.system else "user"


ENGINE: Final = TableView(
    name="engine",
    identity=("pid",),
    help="The embedded engine",
    empty="",
    columns=(
        Column(
            "status",
            "STATUS",
            ValueKind.TEXT,
            "running or stopped",
            derive=status,
            schema={"enum": ["running", "stopped"]},
        ),
        Column("pid", "PID", ValueKind.INTEGER, "Its process", field="pid", nullable=True),
        Column("scope", "SCOPE", ValueKind.TEXT, "Whom it serves", derive=scope, schema={"enum": ["machine", "user"]}),
        Column("socket", "SOCKET", ValueKind.TEXT, "Where it listens", field="socket"),
        Column("state_folder", "STATE FOLDER", ValueKind.TEXT, "Where its journal is", field="state_folder"),
        Column("version", "VERSION", ValueKind.TEXT, "Of cockpit", field="version"),
        Column("protocol", "PROTOCOL", ValueKind.TEXT, "Of its socket, major.minor", field="protocol"),
        Column("started_at", "STARTED", ValueKind.MOMENT, "When it started", field="started_at", nullable=True),
        Column("jobs", "JOBS", ValueKind.INTEGER, "Jobs it knows", field="jobs"),
        Column("containers", "CONTAINERS", ValueKind.TEXT, "How containers are made", field="containers"),
        Column("trouble", "TROUBLE", ValueKind.WORDS, "What is wrong just now", field="trouble"),
    ),
)
