"""The columns of the event list."""

from __future__ import annotations

from typing import Final

from cockpit.model.events import EventRecord
from cockpit.present.columns import Column, Context, TableView, ValueKind
from cockpit.present.events.sentences import event_job, event_kind, event_sentence
from cockpit.present.references import job_cell


def job(row: EventRecord, _: Context) -> int | None:
    return event_job(row.body)


EVENTS: Final = TableView(
    name="events",
    help="What happened, oldest first",
    empty="No events yet.",
    columns=(
        Column("seq", "SEQ", "From 1, without gaps", ValueKind.INTEGER),
        Column("at", "AT", "When", ValueKind.MOMENT),
        Column(
            "job",
            "JOB",
            "The job it is about",
            ValueKind.INTEGER,
            derive=job,
            words=lambda row, context: job_cell(job(row, context)),
            nullable=True,
            aliases=("id",),
        ),
        Column("actor", "ACTOR", "Who asked, or the engine", aliases=("user",)),
        Column(
            "event",
            "EVENT",
            "The journal's word for it",
            derive=lambda row, _: event_kind(row.body),
            aliases=("type",),
            spare=True,
        ),
        Column("sentence", "WHAT", "What happened", derive=lambda row, context: event_sentence(row, context.zone)),
        Column("origin", "ORIGIN", "Where it came from; recorded: a cockpit saw it", wide=True),
        Column("request", "REQUEST", "The request that caused it", wide=True),
    ),
)
