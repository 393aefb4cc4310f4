"""The columns of the list of queued jobs with their likely starts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cockpit.present.columns import Column, Context, TableView, ValueKind
from cockpit.present.tables.forecast import spread_column, spread_columns
from cockpit.present.tables.jobs import JOBS

if TYPE_CHECKING:
    from cockpit.model.forecast import Forecast
    from cockpit.model.ids import Millis
    from cockpit.model.jobrow import JobRow

_OF_JOBS: Final = {column.id: column for column in JOBS.columns}


def forecast(row: JobRow, context: Context) -> Forecast | None:
    """Return the job's forecast in the context; None: not known."""
    return context.forecasts.get(row.id)


def starts_at(row: JobRow, context: Context) -> Millis | None:
    """Return the likely start; None: unknown."""
    prediction = forecast(row, context)
    return prediction.likely_at if prediction is not None else None


def starts_in_seconds(row: JobRow, context: Context) -> int | None:
    at = starts_at(row, context)
    return None if at is None else max(0, at - context.now) // 1000


STARTS: Final = TableView(
    name="starts",
    identity=("id",),
    help="Queued jobs, and when they likely start",
    empty="No job is queued.",
    columns=(
        *(_OF_JOBS[name] for name in ("id", "name", "user", "partitions", "priority", "nodes", "cards")),
        Column(
            "starts_at",
            "STARTS",
            ValueKind.MOMENT,
            "When it likely starts; null: no estimate",
            derive=starts_at,
            nullable=True,
            aliases=("start",),
        ),
        Column(
            "starts_in_seconds",
            "IN",
            ValueKind.SECONDS,
            "How long that is from now",
            derive=starts_in_seconds,
            nullable=True,
            aliases=("in",),
        ),
        spread_column(forecast),
        *spread_columns(forecast),
        _OF_JOBS["why"],
        Column(
            "failure",
            "FAILURE",
            ValueKind.TEXT,
            "The defect in cockpit for which no start is known; empty: none",
            derive=lambda row, context: context.failures.get(row.id, row.failure),
            rare=True,
        ),
    ),
)
