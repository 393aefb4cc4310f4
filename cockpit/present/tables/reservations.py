"""The columns of the list of reservations."""

from __future__ import annotations

from datetime import tzinfo
from typing import Final

from cockpit.model.cluster import Reservation
from cockpit.model.ids import Millis
from cockpit.present import units
from cockpit.present.columns import Column, TableView, ValueKind
from cockpit.present.moments import clock
from cockpit.present.phrases import listed
from cockpit.present.safe import safe

RESERVATIONS: Final = TableView(
    name="reservations",
    identity=("name",),
    help="Nodes that are reserved for users, accounts or maintenance",
    empty="No reservations: every node serves all jobs.",
    columns=(
        Column("name", "NAME", "What jobs name as their reservation"),
        Column(
            "state",
            "STATE",
            "Whether the reservation is in force now",
            # The end is the first moment behind it.
            derive=lambda row, context: "active" if row.start_at <= context.now < row.end_at else "inactive",
            values=("active", "inactive"),
        ),
        Column("start_at", "START", "When the reservation begins", ValueKind.MOMENT, aliases=("start",)),
        Column("end_at", "END", "When the reservation ends", ValueKind.MOMENT, aliases=("end",)),
        Column("nodes", "NODES", "The nodes", ValueKind.WORDS, aliases=("node",)),
        Column("users", "USERS", "Whose jobs may run in it", ValueKind.WORDS, aliases=("user",)),
        Column("accounts", "ACCOUNTS", "Accounts whose jobs may run in it", ValueKind.WORDS, aliases=("account",)),
        Column(
            "maintenance",
            "MAINTENANCE",
            "No job runs in it",
            derive=lambda row, _: "yes" if row.maintenance else "no",
            values=("yes", "no"),
        ),
    ),
)


NAMED_NODES = 4


def reservation_line(reservation: Reservation, now: Millis, zone: tzinfo | None) -> str:
    """Return a reservation in one line: `now, until 15:00 · n01 and n02 · for ann and account nlp`."""
    return " · ".join((_when(reservation, now, zone), _nodes(reservation), _whom(reservation)))


def end_question(reservation: Reservation) -> tuple[str, str]:
    """Return the question to confirm before the reservation is ended, and the consequences."""
    serves = "serves" if len(reservation.nodes) == 1 else "serve"
    return (
        f"End the reservation {safe(reservation.name)}?",
        f"{_nodes(reservation)} {serves} all jobs again; jobs that name the reservation wait.",
    )


def _when(reservation: Reservation, now: Millis, zone: tzinfo | None) -> str:
    if reservation.start_at <= now:
        return f"now, until {clock(Millis(reservation.end_at), now, zone)}"
    return f"{clock(Millis(reservation.start_at), now, zone)} to {clock(Millis(reservation.end_at), now, zone)}"


def _nodes(reservation: Reservation) -> str:
    return (
        listed(reservation.nodes)
        if len(reservation.nodes) <= NAMED_NODES
        else units.counted(len(reservation.nodes), "node")
    )


def _whom(reservation: Reservation) -> str:
    if reservation.maintenance:
        return "maintenance, no jobs"
    # Both together mean these users in these accounts.
    return "for " + " of ".join(filter(None, (listed(reservation.users), _accounts(reservation))))


def _accounts(reservation: Reservation) -> str:
    return (
        f"account{'s' if len(reservation.accounts) > 1 else ''} {listed(reservation.accounts)}"
        if reservation.accounts
        else ""
    )
