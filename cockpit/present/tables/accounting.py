"""The columns of accounting: jobs that have ended, sums of them, and what was held over time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from msgspec.structs import replace

from cockpit.model.accounting import EndedJob
from cockpit.present.accounting import Held, card_hours, hours
from cockpit.present.columns import Column, Context, TableView, ValueKind
from cockpit.present.sparkline import sparkline
from cockpit.present.tables.job import of_the_row
from cockpit.present.tables.jobs import JOBS

SPARK_COLUMNS: Final = 30


def _of_jobs(*names: str, wide: bool = False) -> tuple[Column, ...]:
    """The job list's, where they say something of a job that has ended."""
    named = {column.id: column for column in JOBS.columns}
    return tuple(replace(of_the_row(named[name]), wide=wide) for name in names)


def _two_digits(derive: Callable[[Any, Context], float]) -> Callable[[Any, Context], str]:
    """So that figures stand under each other."""
    return lambda row, context: f"{derive(row, context):.2f}"


def _row_cpu_hours(row: Any, _: Context) -> float:  # noqa: ANN401 - a job or a sum of them
    return hours(row.cpu_held_ms)


def _row_card_hours(row: Any, _: Context) -> float:  # noqa: ANN401 - a job or a sum of them
    return card_hours(row.card_milli_ms)


def _held_cpu_hours(row: Held, _: Context) -> float:
    return hours(sum(row.cpu_ms))


def _held_card_hours(row: Held, _: Context) -> float:
    return card_hours(sum(row.card_milli_ms))


def _hours_column(id: str, derive: Callable[[Any, Context], float], *, wide: bool = False) -> Column:  # noqa: A002 - the column's
    what = "CPUs" if id == "cpu_hours" else "Cards"
    title = "CPU-HOURS" if id == "cpu_hours" else "CARD-HOURS"
    about = f"{what} that were held, times hours"
    return Column(id, title, ValueKind.NUMBER, about, derive=derive, words=_two_digits(derive), wide=wide)


def _mean_busy(job: EndedJob, _: Context) -> float | None:
    """Of the CPUs that it held, how many were kept busy, in percent."""
    return None if job.cpu_ms is None or not job.cpu_held_ms else round(100 * job.cpu_ms / job.cpu_held_ms, 1)


def _seconds(name: str) -> Callable[[Any, Context], int | None]:
    def derive(row: object, _: Context) -> int | None:
        milliseconds: int | None = getattr(row, name)
        return None if milliseconds is None else milliseconds // 1000

    return derive


def _memory_percent(row: EndedJob, _: Context) -> float | None:
    held = row.row.memory_mib / max(1, row.row.nodes)
    return round(100 * row.peak_memory_mib / held, 1) if row.peak_memory_mib is not None and held else None


_CPU_TIME = Column(
    "cpu_seconds",
    "CPU TIME",
    ValueKind.SECONDS,
    "CPU time that was really used",
    derive=_seconds("cpu_ms"),
    nullable=True,
    aliases=("cpu_time",),
)
ACCOUNTING: Final = TableView(
    name="accounting",
    help="Jobs that have ended, with what they held and used",
    empty="No job ended in that time. --since 30d looks further back.",
    columns=(
        *_of_jobs("id", "name", "user", "account", "state", "exit_code", "ended_at"),
        Column(
            "elapsed_seconds",
            "ELAPSED",
            ValueKind.SECONDS,
            "How long it ran, all attempts together",
            derive=_seconds("elapsed_ms"),
            aliases=("elapsed",),
        ),
        _CPU_TIME,
        Column(
            "peak_memory_mib",
            "PEAK MEM",
            ValueKind.MIB,
            "The most memory that one of its replicas had",
            field="peak_memory_mib",
            nullable=True,
            aliases=("peak_memory",),
        ),
        _hours_column("card_hours", _row_card_hours),
        Column(
            "card_percent",
            "CARDS %",
            ValueKind.INTEGER,
            "How busy its cards were, on average",
            field="card_percent",
            nullable=True,
            rare=True,
        ),
        _hours_column("cpu_hours", _row_cpu_hours, wide=True),
        Column(
            "cpu_percent",
            "CPUS %",
            ValueKind.NUMBER,
            "CPU time that was used, of the CPUs that it held",
            derive=_mean_busy,
            nullable=True,
            wide=True,
        ),
        Column(
            "memory_percent",
            "MEM %",
            ValueKind.NUMBER,
            "The most memory that one of its replicas had, of what it had for one",
            derive=_memory_percent,
            nullable=True,
            wide=True,
        ),
        Column("attempts", "ATTEMPTS", ValueKind.INTEGER, "How often it was started", field="attempts", wide=True),
        *_of_jobs("qos", "project", "partitions", "nodes", "cards", "cpus", "memory_mib", "placed_on", wide=True),
        *_of_jobs("submitted_at", "started_at", "wait_seconds", "end_cause", "array", "task", "command", wide=True),
    ),
)
SUMS: Final = TableView(
    name="accounting-sums",
    help="Sums over jobs that have ended",
    empty=ACCOUNTING.empty,
    columns=(
        Column("name", "NAME", ValueKind.TEXT, "The user, account, project or QOS", field="name"),
        Column("jobs", "JOBS", ValueKind.INTEGER, "How many jobs", field="jobs"),
        Column("failed", "FAILED", ValueKind.INTEGER, "How many of them failed (error)", field="failed"),
        Column("stopped", "STOPPED", ValueKind.INTEGER, "How many of them were stopped", field="stopped"),
        Column("expired", "EXPIRED", ValueKind.INTEGER, "How many of them reached their time limit", field="expired"),
        Column("elapsed_seconds", "ELAPSED", ValueKind.SECONDS, "How long they ran", derive=_seconds("elapsed_ms")),
        _CPU_TIME,
        _hours_column("cpu_hours", _row_cpu_hours),
        _hours_column("card_hours", _row_card_hours),
    ),
)
HOURS: Final = TableView(
    name="accounting-hours",
    help="Card-hours and CPU-hours over days",
    empty="Nobody held anything in that time. --days 90 looks further back.",
    columns=(
        Column("name", "NAME", ValueKind.TEXT, "The account, user, project or QOS", field="name"),
        _hours_column("card_hours", _held_card_hours),
        Column(
            "share",
            "SHARE %",
            ValueKind.NUMBER,
            "Of all card-hours, in percent; without cards of all CPU-hours",
            derive=lambda row, _: row.share,
        ),
        _hours_column("cpu_hours", _held_cpu_hours),
        Column(
            "by_day",
            "BY DAY",
            ValueKind.RECORD,
            "Card-hours of each day, the oldest first; the last one is today",
            derive=lambda row, _: [card_hours(each) for each in row.card_milli_ms],
            words=lambda row, _: _chart(row),
            schema={"type": "array", "items": {"type": "number"}},
        ),
    ),
)


def _chart(row: Held) -> str:
    parts = [(1.0, float(each)) for each in row.card_milli_ms]
    return sparkline(parts, min(len(parts), SPARK_COLUMNS), max(row.card_milli_ms, default=0))
