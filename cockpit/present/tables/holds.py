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
    # From now on, not since the failure: the question is whether to extend the hold or to end it.
    return round(row.keeps_card_milli / 1000 * left_seconds(row, context) / 3600, 1)


# The ids `cards_kept` and `cpus_kept` are those of JSON and of filters, and stay; people read "held".
HOLDS: Final = TableView(
    name="holds",
    identity=("id",),
    help="Containers of failed jobs that are held for debugging",
    empty="No held containers: no job with `terminal: true` has failed lately.",
    columns=(
        Column("id", "ID", "The job", ValueKind.INTEGER, field="job", words=lambda row, _: job_cell(row.job)),
        Column("name", "NAME", "The job's name"),
        Column("user", "USER", "Who submitted it", aliases=("creator",)),
        Column("state", "STATE", "How the job ended", values=JobState),
        Column("exit_code", "EXIT", "As a shell reports it", ValueKind.INTEGER, nullable=True, aliases=("exit",)),
        Column("nodes", "NODES", "Where the containers are", ValueKind.WORDS, aliases=("node",)),
        Column(
            "cards_kept",
            "CARDS HELD",
            "Cards that the containers hold",
            ValueKind.NUMBER,
            derive=lambda row, _: units.cards(row.keeps_card_milli),
        ),
        Column(
            # Only where the cluster holds whole allocations: else CPUs and memory are free again at once.
            "cpus_kept",
            "CPUS HELD",
            "CPUs that the containers hold",
            ValueKind.INTEGER,
            field="keeps_cpus",
            rare=True,
        ),
        Column(
            "card_hours",
            "CARD-HOURS",
            "Card-hours from now until the hold ends",
            ValueKind.NUMBER,
            derive=card_hours,
            rare=True,
        ),
        Column(
            "cpu_hours",
            "CPU-HOURS",
            "CPU-hours from now until the hold ends",
            ValueKind.NUMBER,
            derive=lambda row, context: round(row.keeps_cpus * left_seconds(row, context) / 3600, 1),
            rare=True,
        ),
        Column("ended_at", "ENDED", "When it failed", ValueKind.MOMENT, aliases=("ended",)),
        Column("held_until", "HELD UNTIL", "When they are removed", ValueKind.MOMENT),
        Column(
            "left",
            "LEFT",
            "Time until they are removed, hours and minutes",
            ValueKind.SECONDS,
            derive=left_seconds,
            words=lambda row, context: units.countdown(left_seconds(row, context)),
        ),
    ),
)
