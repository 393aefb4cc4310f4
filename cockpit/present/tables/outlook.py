"""The columns of an explanation, a predicted start and its what-ifs."""

from __future__ import annotations

from typing import Any, Final

from msgspec import to_builtins

from cockpit.model.forecast import AwaitedJob, Forecast, Outlook
from cockpit.model.ids import JobId
from cockpit.model.reasons import Reason
from cockpit.present.columns import NOTHING, RECORDS, Column, Context, TableView, ValueKind
from cockpit.present.fleet_outlook import members_json, when
from cockpit.present.job_values import REASON_SCHEMA, reason_json
from cockpit.present.moments import iso
from cockpit.present.outlook import outlook_id, prediction, until, what_if
from cockpit.present.reasons import reason_sentence
from cockpit.present.references import job_shown
from cockpit.present.safe import safe
from cockpit.present.tables.forecast import likely_column, spread_columns


def reason(outlook: Outlook, _: Context) -> Reason | None:
    return outlook.explanation.reason if outlook.explanation is not None else None


def why(outlook: Outlook, context: Context) -> str | None:
    blocker = reason(outlook, context)
    return reason_sentence(blocker, context.now, context.zone) if blocker is not None else None


def forecast(outlook: Outlook, _: Context) -> Forecast:
    return outlook.forecast


def ahead(outlook: Outlook, _: Context) -> list[dict[str, Any]]:
    jobs = outlook.explanation.ahead if outlook.explanation is not None else ()
    return [_holding(outlook, each) for each in jobs]


def condition(outlook: Outlook, _: Context) -> dict[str, Any] | None:
    known = outlook.condition
    if known is None:
        return None
    ends = iso(known.ends_by) if known.ends_by is not None else None
    return {"job": known.job, "name": known.name, "state": str(known.state), "ends_by": ends}


def condition_words(outlook: Outlook, _: Context) -> str:
    known = outlook.condition
    return NOTHING if known is None else f"{outlook_id(known)} {known.state}"


def what_ifs(outlook: Outlook, _: Context) -> list[dict[str, Any]]:
    """Return one object per changed request, with its predicted start."""
    return [
        {
            "change": each.change,
            "before": each.before,
            "after": each.after,
            "sentence": what_if(each),
            "evicts": each.evicts,
            "starts_now": each.forecast.now,
            "likely_at": iso(each.forecast.likely_at) if each.forecast.likely_at is not None else None,
        }
        for each in outlook.what_ifs
    ]


def reason_word(outlook: Outlook, context: Context) -> str:
    blocker = reason(outlook, context)
    return NOTHING if blocker is None else str(blocker.__struct_config__.tag)


def _id_of(outlook: Outlook, job: JobId) -> str:
    known = outlook.holding(job)
    return job_shown(job) if known is None else outlook_id(known)


def ahead_words(outlook: Outlook, _: Context) -> str:
    jobs = outlook.explanation.ahead if outlook.explanation is not None else ()
    return " ".join(_id_of(outlook, each) for each in jobs) or NOTHING


def _holding(outlook: Outlook, each: JobId) -> dict[str, Any]:
    known = outlook.holding(each)
    # That there is a job is said, and nothing of whose it is.
    if known is None:
        return {"job": each or None}
    values: dict[str, Any] = to_builtins(known)
    component = values.pop("component")
    del values["shown_id"]  # for sentences; scripts compare numbers
    return values if component is None else values | {"component": component}


def _awaited(outlook: Outlook, each: AwaitedJob) -> dict[str, Any]:
    return _holding(outlook, each.job) | {"end_at": iso(each.end_at)}


# One set for explain and predict: a program reads the answer about a queued job and about a job file alike.
_COLUMNS: Final = (
    Column(
        "id",
        "ID",
        "The job; null: not submitted",
        ValueKind.INTEGER,
        derive=lambda outlook, _: outlook.job or None,
        words=lambda row, _: outlook_id(row) if row.job else NOTHING,
        nullable=True,
    ),
    Column("name", "NAME", "Its name"),
    Column("position", "PLACE", "Place in the queue, from 1", ValueKind.INTEGER, field="place", nullable=True),
    Column("prediction", "PREDICTION", "When it starts, as a sentence", derive=prediction),
    Column(
        "starts_now",
        "NOW",
        "Whether it starts with the next look at the queue",
        derive=lambda outlook, _: "yes" if outlook.forecast.now else "no",
        values=("yes", "no"),
        wide=True,
    ),
    likely_column(forecast, wide=True),
    *spread_columns(forecast),
    # Two starts where another scheduler decides: its own, and the plan of cockpit, which knows less of its rules.
    Column(
        "told_at",
        "TOLD",
        "When the cluster's own scheduler expects its start, where that is another than cockpit's",
        ValueKind.MOMENT,
        field="scheduler_start_at",
        nullable=True,
        wide=True,
    ),
    Column(
        "told_by",
        "BY",
        "Whose scheduler that is; empty: cockpit's, and all times are its own",
        field="scheduler",
        wide=True,
    ),
    Column(
        "reserved_at",
        "RESERVED",
        "When the present plan starts it, if it has a reservation; whether that is promised says latest_at",
        ValueKind.MOMENT,
        derive=lambda outlook, _: outlook.explanation.reserved_at if outlook.explanation is not None else None,
        nullable=True,
        wide=True,
    ),
    Column("why", "WHY", "The first rule that stops it; null: none", derive=why, nullable=True, wide=True),
    Column(
        "reason",
        "REASON",
        "The same for programs: a type and its data",
        ValueKind.RECORD,
        derive=reason,
        words=reason_word,
        record_json=reason_json,
        schema=REASON_SCHEMA,
        nullable=True,
        wide=True,
    ),
    Column(
        "ahead",
        "AHEAD",
        "The jobs before it that you may see, nearest to the head first, with what they ask for",
        ValueKind.RECORD,
        derive=ahead,
        words=ahead_words,
        schema=RECORDS,
        wide=True,
    ),
    Column(
        "holders",
        "IN USE BY",
        "If a limit holds the job back: the jobs that use the limit and that you may see, the largest first",
        ValueKind.RECORD,
        derive=lambda outlook, _: [_holding(outlook, each) for each in outlook.holders],
        words=lambda outlook, _: " ".join(_id_of(outlook, each) for each in outlook.holders) or NOTHING,
        schema=RECORDS,
        wide=True,
    ),
    Column(
        "unavailable",
        "OUT OF SERVICE",
        "Where nodes that are out of service stand in the way: which, and why",
        ValueKind.RECORD,
        derive=lambda outlook, _: [{"node": node, "why": why} for node, why in outlook.unavailable],
        words=lambda outlook, _: " ".join(safe(node) for node, _ in outlook.unavailable) or NOTHING,
        schema=RECORDS,
        wide=True,
    ),
    Column(
        "condition",
        "WAITS FOR",
        "If a dependency holds the job back: that job, its state, and its latest end",
        ValueKind.RECORD,
        derive=condition,
        words=condition_words,
        schema={"type": ["object", "null"]},
        nullable=True,
        wide=True,
    ),
    Column(
        "after",
        "AFTER",
        "The ends that make its room, soonest first, with what those jobs hold; job null: one that you may not see",
        ValueKind.RECORD,
        derive=lambda outlook, _: [_awaited(outlook, each) for each in outlook.forecast.after],
        words=lambda outlook, _: " ".join(_id_of(outlook, each.job) for each in outlook.forecast.after) or NOTHING,
        schema=RECORDS,
        wide=True,
    ),
    Column(
        "what_ifs",
        "WHAT IF",
        "What it could ask for instead and when it would start then, the soonest first",
        ValueKind.RECORD,
        derive=what_ifs,
        words=lambda outlook, context: (
            "; ".join(f"{what_if(each)}: {until(each.forecast, context)}" for each in outlook.what_ifs) or NOTHING
        ),
        schema=RECORDS,
        wide=True,
    ),
    Column(
        "members",
        "CLUSTERS",
        "On a fleet: what each cluster has free, what is asked, and when it would start on that cluster alone",
        ValueKind.RECORD,
        derive=lambda outlook, context: members_json(outlook.members, context),
        words=lambda outlook, context: (
            "; ".join(f"on {safe(each.cluster)}: {when(each, context)}" for each in outlook.members) or NOTHING
        ),
        schema=RECORDS,
        wide=True,
    ),
    Column(
        "failure", "FAILURE", "The defect in cockpit for which some of the answer is missing; empty: none", wide=True
    ),
)

EXPLAIN: Final = TableView(
    name="explain", help="Why a queued job waits, and when it starts", columns=_COLUMNS, empty="No job was named."
)
PREDICT: Final = TableView(
    name="predict",
    help="When jobs would start if they were submitted now",
    columns=_COLUMNS,
    empty="The file holds no job.",
)
