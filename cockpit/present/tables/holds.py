"""The columns of the list of held containers."""

from __future__ import annotations

from typing import Final

from cockpit.model.job import JobState
from cockpit.model.view import HoldRow
from cockpit.present import units
from cockpit.present.columns import Column, Context, TableView, ValueKind
from cockpit.present.references import job_cell
from cockpit.present.states import seconds_left


def left_seconds(row: HoldRow, context: Context) -> int:
    return seconds_left(row.held_until, context.now)


def card_hours(row: HoldRow, context: Context) -> float:
    """Return the card-hours that the hold will still cost until it ends; an extension adds to them."""
    return round(row.keeps_card_milli / 1000 * left_seconds(row, context) / 3600, 1)


HOLDS: Final = TableView(
    name="holds",
    identity=("id",),
    help="Containers of failed jobs that are held for debugging",
    empty="No held containers: no job with `terminal: true` has failed lately.",
    columns=(
        Column("id", "ID", ValueKind.INTEGER, "The job", field="job", words=lambda row, _: job_cell(row.job)),
        Column("name", "NAME", ValueKind.TEXT, "The job's name"),
        Column("user", "USER", ValueKind.TEXT, "Who submitted it", aliases=("creator",)),
        Column(
            "state", "STATE", ValueKind.TEXT, "How the job ended", schema={"enum": [str(state) for state in JobState]}
        ),
        Column("exit_code", "EXIT", ValueKind.INTEGER, "As a shell reports it", nullable=True, aliases=("exit",)),
        Column("nodes", "NODES", ValueKind.WORDS, "Where the containers are", aliases=("node",)),
        Column(
            "cards_kept",
            "CARDS HELD",
            ValueKind.NUMBER,
            "Cards that the containers hold",
            derive=lambda row, _: units.cards(row.keeps_card_milli),
        ),
        Column(
            "cpus_kept", "CPUS HELD", ValueKind.INTEGER, "CPUs that the containers hold", field="keeps_cpus", rare=True
        ),
        Column(
            "card_hours",
            "CARD-HOURS",
            ValueKind.NUMBER,
            "Card-hours from now until the hold ends",
            derive=card_hours,
            rare=True,
        ),
        Column(
            "cpu_hours",
            "CPU-HOURS",
            ValueKind.NUMBER,
            "CPU-hours from now until the hold ends",
            derive=lambda row, context: round(row.keeps_cpus * left_seconds(row, context) / 3600, 1),
            rare=True,
        ),
        Column("ended_at", "ENDED", ValueKind.MOMENT, "When it failed", aliases=("ended",)),
        Column("held_until", "HELD UNTIL", ValueKind.MOMENT, "When they are removed"),
        Column(
            "left",
            "LEFT",
            ValueKind.SECONDS,
            "Time until they are removed, hours and minutes",
            derive=left_seconds,
            words=lambda row, context: units.countdown(left_seconds(row, context)),
        ),
    ),
)
