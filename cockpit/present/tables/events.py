"""The columns of the event list."""

from __future__ import annotations

from typing import Final

from cockpit.model.events import EventRecord
from cockpit.present.columns import Column, Context, TableView, ValueKind
from cockpit.present.events.sentences import event_job, event_kind, event_sentence
from cockpit.present.references import job_cell


def job(row: EventRecord, _: Context) -> int | None:
    return event_job(row.body)


def kind(row: EventRecord, _: Context) -> str:
    return event_kind(row.body)


def sentence(row: EventRecord, context: Context) -> str:
    return event_sentence(row, context.zone)


EVENTS: Final = TableView(
    name="events",
    help="What happened, oldest first",
    empty="No events yet.",
    columns=(
        Column("seq", "SEQ", ValueKind.INTEGER, "From 1, without gaps"),
        Column("at", "AT", ValueKind.MOMENT, "When"),
        Column(
            "job",
            "JOB",
            ValueKind.INTEGER,
            "The job it is about",
            derive=job,
            words=lambda row, context: job_cell(job(row, context)),
            nullable=True,
            aliases=("id",),
        ),
        Column("actor", "ACTOR", ValueKind.TEXT, "Who asked, or the engine", aliases=("user",)),
        Column(
            "event", "EVENT", ValueKind.TEXT, "The journal's word for it", derive=kind, aliases=("type",), spare=True
        ),
        Column("sentence", "WHAT", ValueKind.TEXT, "What happened", derive=sentence),
        Column("origin", "ORIGIN", ValueKind.TEXT, "Where it came from; recorded: a cockpit saw it", wide=True),
        Column("request", "REQUEST", ValueKind.TEXT, "The request that caused it", wide=True),
    ),
)
