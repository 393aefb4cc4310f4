"""The columns of `cockpit doctor`."""

from __future__ import annotations

from typing import Final

from cockpit.present.columns import Column, TableView, ValueKind

FINDINGS: Final = TableView(
    name="doctor",
    help="What this machine has and lacks",
    empty="Nothing was looked at.",
    columns=(
        Column(
            "level",
            "LEVEL",
            ValueKind.TEXT,
            "ok, note or missing",
            field="level",
            schema={"enum": ["ok", "note", "missing"]},
        ),
        Column("subject", "SUBJECT", ValueKind.TEXT, "What was looked at", field="subject"),
        Column("found", "FOUND", ValueKind.TEXT, "What is there", field="found"),
        Column("advice", "ADVICE", ValueKind.TEXT, "What to do; empty: nothing", field="advice"),
    ),
)
