"""The columns of a predicted start, for all tables that show one, and the list of queued jobs with their starts."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from msgspec import to_builtins

from cockpit.model.forecast import Forecast, MoveCause, NoBound, RanLonger, StartMove
from cockpit.model.ids import Millis
from cockpit.present.columns import NOTHING, Column, Context, TableView, ValueKind
from cockpit.present.moments import iso
from cockpit.present.start_words import WHY_NO_BOUND, cause_words, last_visible, move_words, spread_words
from cockpit.present.tables.jobs import JOBS

if TYPE_CHECKING:
    from cockpit.model.jobrow import JobRow


ForecastOf = Callable[[Any, Context], Forecast | None]

_MOVES: Final = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {
            "at": {"type": "string", "format": "date-time"},
            "before": {"type": "string", "format": "date-time"},
            "after": {"type": ["string", "null"], "format": "date-time"},
            "causes": {"type": "array", "items": {"type": "object", "required": ["type", "sentence"]}},
        },
        "required": ["at", "before", "after", "causes"],
    },
}


# All tables with a start take these columns, each with a function that finds the forecast of its rows, so that a start
# has one name and one figure in lists, explanations and predictions.
def likely_column(forecast_of: ForecastOf, *, wide: bool = False) -> Column:
    """Return the column of the likely start, which the Jobs list shows as START."""
    return _moment(
        "likely_at",
        "LIKELY",
        "When it starts if jobs run as long as their users' jobs usually do; null: unknown",
        forecast_of,
        lambda forecast: forecast.likely_at,
        wide=wide,
    )


def spread_columns(forecast_of: ForecastOf) -> tuple[Column, ...]:
    """Return the columns for the range of possible starts and its causes."""
    return (
        _moment(
            "latest_at",
            "NO LATER",
            "The latest start that the scheduling policy promises; null: it promises none (no_bound)",
            forecast_of,
            lambda forecast: forecast.latest_at,
        ),
        _moment(
            "likely_from",
            "LIKELY FROM",
            "The beginning of the range of likely starts, in which four of five jobs start",
            forecast_of,
            lambda forecast: forecast.likely_from,
        ),
        _moment("likely_to", "LIKELY TO", "The end of that range", forecast_of, lambda forecast: forecast.likely_to),
        Column(
            "no_bound",
            "NO BOUND",
            "Why no latest start is promised; null: one is, or no start is known",
            derive=_forecast_field(forecast_of, lambda forecast: forecast.no_bound and str(forecast.no_bound)),
            words=lambda row, context: _no_bound_words(forecast_of(row, context)),
            values=NoBound,
            nullable=True,
            wide=True,
        ),
        _moves_column(
            "moves",
            "MOVED",
            "The last changes of latest_at, oldest first, each with its causes",
            forecast_of,
            lambda forecast: forecast.moves,
            wide=True,
        ),
        _moves_column(
            "likely_moves",
            "LIKELY MOVED",
            "The last changes of likely_at of a job without latest_at, out of the range of likely starts shown before",
            forecast_of,
            lambda forecast: forecast.likely_moves,
        ),
    )


def spread_column(forecast_of: ForecastOf) -> Column:
    """Return one column for people that shows the range of possible starts."""

    def words(row: Any, context: Context) -> str | None:  # noqa: ANN401 - whatever the table has a row of
        forecast = forecast_of(row, context)
        # A job that starts now has no range.
        parts = spread_words(forecast, context) if forecast is not None and not forecast.now else None
        return " ".join(parts) if parts is not None else None

    return Column(
        "spread",
        "SPREAD",
        "The promised latest start, or the range of likely starts where none is promised",
        derive=words,
        nullable=True,
    )


def _moment(
    name: str,
    title: str,
    about: str,
    forecast_of: ForecastOf,
    moment: Callable[[Forecast], Millis | None],
    *,
    wide: bool = True,
) -> Column:
    """Return a column with a moment of the forecast."""
    derive = _forecast_field(forecast_of, moment)
    return Column(name, title, about, ValueKind.MOMENT, derive=derive, nullable=True, wide=wide)


def _moves_column(
    name: str,
    title: str,
    about: str,
    forecast_of: ForecastOf,
    moves_of: Callable[[Forecast], tuple[StartMove, ...]],
    *,
    wide: bool = False,
) -> Column:
    """Return a column with changes of a start; its words are the last one that a clock shows, with its causes."""

    def moves(row: Any, context: Context) -> list[dict[str, Any]]:  # noqa: ANN401 - whatever the table has a row of
        return [_move_json(each, context) for each in moves_of(forecast_of(row, context) or Forecast())]

    def words(row: Any, context: Context) -> str:  # noqa: ANN401 - whatever the table has a row of
        forecast = forecast_of(row, context)
        move = last_visible(moves_of(forecast)) if forecast is not None else None
        if forecast is None or move is None:
            return NOTHING
        causes = "; ".join(cause_words(each, context) for each in move.causes)
        return f"{move_words(forecast, move, context)}: {causes}"

    kind = ValueKind.RECORD
    return Column(name, title, about, kind, derive=moves, words=words, schema=_MOVES, wide=wide, rare=not wide)


def _forecast_field(forecast_of: ForecastOf, field: Callable[[Forecast], Any]) -> Callable[[Any, Context], Any]:
    def derive(row: Any, context: Context) -> Any:  # noqa: ANN401 - whatever the table has a row of
        forecast = forecast_of(row, context)
        return field(forecast) if forecast is not None else None

    return derive


def _no_bound_words(forecast: Forecast | None) -> str:
    return NOTHING if forecast is None or forecast.no_bound is None else WHY_NO_BOUND[forecast.no_bound]


def _move_json(move: StartMove, context: Context) -> dict[str, Any]:
    return {
        "at": iso(move.at),
        "before": iso(move.before),
        "after": iso(move.after) if move.after is not None else None,
        "causes": [_cause_json(each, context) for each in move.causes],
    }


def _cause_json(cause: MoveCause, context: Context) -> dict[str, Any]:
    """Return a cause for JSON; a job that the user may not see is null."""
    record: dict[str, Any] = to_builtins(cause)
    if "job" in record:
        # In the model 0 is a job that the user may not see; programs would take it for an id.
        record["job"] = record["job"] or None
    if isinstance(cause, RanLonger):
        record["until"] = iso(cause.until) if cause.until is not None else None
    return record | {"sentence": cause_words(cause, context)}


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
    # A start that was predicted for a moment that has passed is due now.
    return None if at is None else max(0, at - context.now) // 1000


STARTS: Final = TableView(
    name="starts",
    identity=("id",),
    help="Queued jobs, and when they likely start",
    empty="No job is queued.",
    columns=(
        # From the list of jobs, so that filters and sorting mean the same in both tables.
        *(_OF_JOBS[name] for name in ("id", "name", "user", "partitions", "priority", "nodes", "cards")),
        Column(
            "starts_at",
            "STARTS",
            "When it likely starts; null: no estimate",
            ValueKind.MOMENT,
            derive=starts_at,
            nullable=True,
            aliases=("start",),
        ),
        Column(
            "starts_in_seconds",
            "IN",
            "How long that is from now",
            ValueKind.SECONDS,
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
            "The defect in cockpit for which no start is known; empty: none",
            # The newer one first: that of the prediction which this list has just asked for.
            derive=lambda row, context: context.failures.get(row.id, row.failure),
            rare=True,
        ),
    ),
)
