"""The columns of `cockpit engine status`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from cockpit.model.view import EngineStatus
from cockpit.present.columns import NOTHING, Column, Context, TableView, ValueKind
from cockpit.present.width import pad


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


def record_lines(columns: Sequence[Column], row: object, context: Context) -> list[str]:
    """Return `label  text` for each column whose text is not empty."""
    room = max(len(column.title) for column in columns) + 2
    texts = [(column.title.lower(), column.texts((row,), context)[0]) for column in columns]
    return [f"{pad(label, room)}{text}" for label, text in texts if text not in {"", NOTHING}]
