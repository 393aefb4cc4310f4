"""The columns of the list of reservations."""

from __future__ import annotations

from typing import Final

from cockpit.model.cluster import Reservation
from cockpit.present.columns import Column, Context, TableView, ValueKind


def state(row: Reservation, context: Context) -> str:
    return "active" if row.start_at <= context.now < row.end_at else "inactive"


RESERVATIONS: Final = TableView(
    name="reservations",
    identity=("name",),
    help="Nodes that are reserved for users, accounts or maintenance",
    empty="No reservations: every node serves all jobs.",
    columns=(
        Column("name", "NAME", ValueKind.TEXT, "What jobs name as their reservation", field="name"),
        Column(
            "state",
            "STATE",
            ValueKind.TEXT,
            "Whether the reservation is in force now",
            derive=state,
            schema={"enum": ["active", "inactive"]},
        ),
        Column(
            "start_at", "START", ValueKind.MOMENT, "When the reservation begins", field="start_at", aliases=("start",)
        ),
        Column("end_at", "END", ValueKind.MOMENT, "When the reservation ends", field="end_at", aliases=("end",)),
        Column("nodes", "NODES", ValueKind.WORDS, "The nodes", field="nodes", aliases=("node",)),
        Column("users", "USERS", ValueKind.WORDS, "Whose jobs may run in it", field="users", aliases=("user",)),
        Column(
            "accounts",
            "ACCOUNTS",
            ValueKind.WORDS,
            "Accounts whose jobs may run in it",
            field="accounts",
            aliases=("account",),
        ),
        Column(
            "maintenance",
            "MAINTENANCE",
            ValueKind.TEXT,
            "Nobody's jobs run in it",
            derive=lambda row, _: "yes" if row.maintenance else "no",
            schema={"enum": ["yes", "no"]},
        ),
    ),
)
