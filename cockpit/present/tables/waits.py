"""The columns of a wait report: where the time of a job's last wait went."""

from __future__ import annotations

from typing import Any, Final

from cockpit.model.jobrow import JobRow
from cockpit.present.columns import RECORDS, Column, Context, TableView, ValueKind
from cockpit.present.folding import id_text
from cockpit.present.job_values import reason_json
from cockpit.present.moments import iso
from cockpit.present.reasons import reason_sentence
from cockpit.present.references import job_shown
from cockpit.present.units import spoken
from cockpit.present.waits.causes import TITLES, WaitCause
from cockpit.present.waits.hints import hints
from cockpit.present.waits.report import WaitReport


def _seconds(report: WaitReport, cause: WaitCause) -> int:
    return report.by_cause().get(cause, 0) // 1000


def _cause_column(cause: WaitCause) -> Column:
    return Column(
        f"{cause}_seconds" if cause is not WaitCause.JOBS else "other_jobs_seconds",
        TITLES[cause].upper(),
        f"Seconds of the wait whose cause was: {TITLES[cause]}",
        ValueKind.SECONDS,
        derive=lambda report, _: _seconds(report, cause),
    )


def _parts(report: WaitReport, context: Context) -> list[dict[str, Any]]:
    return [
        {
            "since": iso(part.since),
            "until": iso(part.until),
            "seconds": part.seconds,
            "cause": str(part.cause),
            "reason": reason_json(part.reason) if part.reason is not None else None,
            "why": reason_sentence(part.reason, context.now, context.zone) if part.reason is not None else None,
            "ahead": list(part.ahead),
        }
        for part in report.parts
    ]


def _meanwhile(report: WaitReport, _: Context) -> list[dict[str, Any]]:
    submitted = report.detail.row.submitted_at
    return [_job(row) | {"submitted_later": row.submitted_at > submitted} for row in report.overtaken_by]


def _made_room(report: WaitReport, _: Context) -> list[dict[str, Any]]:
    return [_job(row) | {"ended": iso(row.ended_at) if row.ended_at is not None else None} for row in report.made_room]


def _job(row: JobRow) -> dict[str, Any]:
    started = iso(row.started_at) if row.started_at is not None else None
    return {"job": row.id, "user": row.user, "cpus": row.cpus, "card_milli": row.card_milli, "started": started}


WAITS: Final = TableView(
    name="explain-past",
    help="Where the waiting time of jobs went that have started or ended",
    empty="No job was named.",
    columns=(
        Column(
            "id",
            "ID",
            "The job",
            ValueKind.INTEGER,
            field="detail.row.id",
            words=lambda report, _: id_text(report.detail.row),
        ),
        Column("name", "NAME", "Its name", field="detail.row.name"),
        Column("user", "USER", "Its owner", field="detail.row.user", wide=True),
        Column("queued", "QUEUED", "When its last wait began", ValueKind.MOMENT, field="since", wide=True),
        Column("until", "UNTIL", "When that wait ended: it was placed, or ended", ValueKind.MOMENT, wide=True),
        Column(
            "waited_seconds",
            "WAITED",
            "Seconds from the one to the other",
            ValueKind.SECONDS,
            field="seconds",
        ),
        *map(_cause_column, WaitCause),
        Column(
            "parts",
            "PARTS",
            "Its parts in order: their cause, the reason where one was recorded, and the jobs before it then",
            ValueKind.RECORD,
            derive=_parts,
            words=lambda report, _: ", ".join(f"{TITLES[part.cause]} {spoken(part.seconds)}" for part in report.parts),
            schema=RECORDS,
            wide=True,
        ),
        Column(
            "shorter",
            "SHORTER",
            "What would have shortened the wait, the most effective first",
            ValueKind.WORDS,
            derive=lambda report, context: tuple(hints(report, context)),
            wide=True,
        ),
        Column(
            "ahead",
            "AHEAD",
            "The jobs that were recorded before it in the queue and that you may see",
            ValueKind.RECORD,
            derive=lambda report, _: list(report.ahead),
            words=lambda report, _: " ".join(map(job_shown, report.ahead)),
            schema={"type": "array", "items": {"type": "integer"}},
            wide=True,
        ),
        Column(
            "meanwhile",
            "MEANWHILE",
            "The jobs that you may see that started while it waited",
            ValueKind.RECORD,
            derive=_meanwhile,
            words=lambda report, _: " ".join(id_text(row) for row in report.overtaken_by),
            schema=RECORDS,
            wide=True,
        ),
        Column(
            "made_room",
            "ROOM",
            "The jobs that you may see that ran before its wait and ended during it, the last one first",
            ValueKind.RECORD,
            derive=_made_room,
            words=lambda report, _: " ".join(id_text(row) for row in report.made_room),
            schema=RECORDS,
            wide=True,
        ),
    ),
)
