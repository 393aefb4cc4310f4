"""Accounting: the columns of ended jobs, of their sums and of card-hours for every output, and the panel about
a name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from operator import attrgetter
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from cockpit.model.accounting import EndedJob
from cockpit.present.accounting import GroupBy, Held, card_hours, hours
from cockpit.present.bars import bar, sparkline
from cockpit.present.columns import NOTHING, Cell, Column, Context, TableView, ValueKind
from cockpit.present.safe import safe
from cockpit.present.spans import ACCENT, MUTED, STRONG, Line, Span, key_hint, labelled, line, spread
from cockpit.present.spending_chart import MONTHS, SeriesStyle, amounts, in_cards
from cockpit.present.tables.job import of_the_row
from cockpit.present.tables.jobs import JOBS
from cockpit.present.units import counted, tenths

SPARK_COLUMNS: Final = 30


BAR_COLUMNS = 12
MARK = "■ "


# Ended jobs keep the ids, titles and texts of the job list, so that a filter or a script serves both.
def _of_jobs(*names: str, wide: bool = False) -> tuple[Column, ...]:
    """Return those columns of the job list that apply to an ended job."""
    named = {column.id: column for column in JOBS.columns}
    return tuple(replace(of_the_row(named[name]), wide=wide) for name in names)


def _two_digits(derive: Callable[[Any, Context], float]) -> Callable[[Any, Context], str]:
    """Return a function that formats the derived figure with two digits, so that the figures of a column are
    aligned."""
    return lambda row, context: f"{derive(row, context):.2f}"


def _row_cpu_hours(row: Any, _: Context) -> float:  # noqa: ANN401 - a job or a sum of them
    return hours(row.cpu_held_ms)


def _row_card_hours(row: Any, _: Context) -> float:  # noqa: ANN401 - a job or a sum of them
    return card_hours(row.card_milli_ms)


def _hours_column(id: str, derive: Callable[[Any, Context], float], *, wide: bool = False) -> Column:  # noqa: A002 - the column's
    what = "CPUs" if id == "cpu_hours" else "Cards"
    title = "CPU-HOURS" if id == "cpu_hours" else "CARD-HOURS"
    about = f"{what} that were held, times hours"
    return Column(id, title, about, ValueKind.NUMBER, derive=derive, words=_two_digits(derive), wide=wide)


def _above_min(row: Any, _: Context) -> float | None:  # noqa: ANN401 - a job or a sum of them
    """Return the card-hours; None: nothing, as for clusters and jobs that have nothing to do with it."""
    return card_hours(row.above_min_card_milli_ms) or None


_ABOVE_MIN: Final = Column(
    "above_min_card_hours",
    "ABOVE MIN",
    "Card-hours by best effort: what elastic jobs had above their least number of workers",
    ValueKind.NUMBER,
    derive=_above_min,
    words=lambda row, context: f"{_above_min(row, context) or 0:.2f}",
    rare=True,
    nullable=True,
)


def _mean_busy(job: EndedJob, _: Context) -> float | None:
    """Return the mean percentage of its CPUs that the job kept busy; None: not measured."""
    # Best-effort jobs hold no CPUs: there is nothing to be a percentage of.
    return None if job.cpu_ms is None or not job.cpu_held_ms else round(100 * job.cpu_ms / job.cpu_held_ms, 1)


def _seconds(name: str) -> Callable[[Any, Context], int | None]:
    def derive(row: object, _: Context) -> int | None:
        milliseconds: int | None = getattr(row, name)
        return None if milliseconds is None else milliseconds // 1000

    return derive


def _memory_percent(row: EndedJob, _: Context) -> float | None:
    # The peak is that of one replica, the row has the sum over all nodes.
    held = row.row.memory_mib / max(1, row.row.nodes)
    return round(100 * row.peak_memory_mib / held, 1) if row.peak_memory_mib is not None and held else None


_CPU_TIME = Column(
    "cpu_seconds",
    "CPU TIME",
    "CPU time that was really used",
    ValueKind.SECONDS,
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
            "How long it ran, all attempts together",
            ValueKind.SECONDS,
            derive=_seconds("elapsed_ms"),
            aliases=("elapsed",),
        ),
        _CPU_TIME,
        Column(
            "peak_memory_mib",
            "PEAK MEM",
            "The most memory that one of its replicas had",
            ValueKind.MIB,
            nullable=True,
            aliases=("peak_memory",),
        ),
        _hours_column("card_hours", _row_card_hours),
        _ABOVE_MIN,
        Column(
            "card_percent",
            "CARDS %",
            "How busy its cards were, on average",
            ValueKind.INTEGER,
            nullable=True,
            rare=True,
        ),
        _hours_column("cpu_hours", _row_cpu_hours, wide=True),
        Column(
            "cpu_percent",
            "CPUS %",
            "CPU time that was used, of the CPUs that it held",
            ValueKind.NUMBER,
            derive=_mean_busy,
            nullable=True,
            wide=True,
        ),
        Column(
            "memory_percent",
            "MEM %",
            "The most memory that one of its replicas had, of what it had for one",
            ValueKind.NUMBER,
            derive=_memory_percent,
            nullable=True,
            wide=True,
        ),
        Column("attempts", "ATTEMPTS", "How often it was started", ValueKind.INTEGER, wide=True),
        *_of_jobs("qos", "project", "partitions", "nodes", "cards", "cpus", "memory_mib", "placed_on", wide=True),
        *_of_jobs("submitted_at", "started_at", "wait_seconds", "end_cause", "array", "task", "command", wide=True),
    ),
)
SUMS: Final = TableView(
    name="accounting-sums",
    help="Sums over jobs that have ended",
    empty=ACCOUNTING.empty,
    columns=(
        Column("name", "NAME", "The user, account, project or QOS"),
        Column("jobs", "JOBS", "How many jobs", ValueKind.INTEGER),
        # Those that succeeded have no column: they are the rest of `jobs`.
        Column("failed", "FAILED", "How many of them failed (error)", ValueKind.INTEGER),
        Column("stopped", "STOPPED", "How many of them were stopped", ValueKind.INTEGER),
        Column("expired", "EXPIRED", "How many of them reached their time limit", ValueKind.INTEGER),
        Column("elapsed_seconds", "ELAPSED", "How long they ran", ValueKind.SECONDS, derive=_seconds("elapsed_ms")),
        _CPU_TIME,
        _hours_column("cpu_hours", _row_cpu_hours),
        _hours_column("card_hours", _row_card_hours),
        _ABOVE_MIN,
    ),
)


class AmountFormat(NamedTuple):
    """The sign and unit on which the cells of a row depend besides it."""

    sign: SeriesStyle
    cards: bool
    """Whether the figures are card-hours, else CPU-hours."""
    letters: bool
    """Whether letters stand for colours, as the terminal shows none."""


def _name_cell(row: Held, shown: AmountFormat) -> Line:
    mark = f"{shown.sign.letter} " if shown.letters else MARK
    return line(Span(mark, shown.sign.role), Span(safe(row.name), STRONG))


def _card_hours_cell(row: Held, _: AmountFormat) -> Line:
    amount = card_hours(sum(row.card_milli_ms))
    return line(tenths(amount) if amount else Span(NOTHING, MUTED))


def _above_min_cell(row: Held, _: AmountFormat) -> Line:
    amount = card_hours(row.above_min_card_milli_ms)
    return line(Span(tenths(amount) if amount else NOTHING, MUTED))


def _share_cell(row: Held, shown: AmountFormat) -> Line:
    share = row.share
    return (Span(f"{share:>5.1f}% "), *bar(share / 100, BAR_COLUMNS, shown.sign.role))


def _course_cell(row: Held, shown: AmountFormat, columns: int) -> Line:
    figures = amounts(row, cards=shown.cards)
    # A whole number of columns for each day, so that equal days look equal.
    room = min(columns, len(figures) * max(1, columns // max(len(figures), 1)))
    return line(Span(sparkline([(1.0, each) for each in figures], room, max(figures, default=0.0)), shown.sign.role))


HOURS: Final = TableView(
    name="accounting-hours",
    key=attrgetter("name"),
    help="Card-hours and CPU-hours over days",
    empty="No job held resources in that time. --days 90 shows a longer time.",
    columns=(
        Column("name", "NAME", "The account, user, project or QOS", cell=Cell(14, _name_cell, grows=1, most=26)),
        replace(
            _hours_column("card_hours", lambda row, _: card_hours(sum(row.card_milli_ms))),
            cell=Cell(10, _card_hours_cell),
        ),
        Column(
            "share",
            "SHARE %",
            "Of all card-hours, in percent; without cards of all CPU-hours",
            ValueKind.NUMBER,
            cell=Cell(7 + BAR_COLUMNS, _share_cell, title="SHARE", right=False),
        ),
        replace(
            _hours_column("cpu_hours", lambda row, _: hours(sum(row.cpu_ms))),
            cell=Cell(10, lambda row, _: line(Span(tenths(hours(sum(row.cpu_ms))), MUTED))),
        ),
        replace(_ABOVE_MIN, cell=Cell(9, _above_min_cell, need=120)),
        Column(
            "by_day",
            "BY DAY",
            "Card-hours of each day, the oldest first; the last one is today",
            ValueKind.RECORD,
            derive=lambda row, _: [card_hours(each) for each in row.card_milli_ms],
            words=lambda row, _: _chart(row),
            schema={"type": "array", "items": {"type": "number"}},
            cell=Cell(10, fill=_course_cell, grows=2),
        ),
    ),
)


def _chart(row: Held) -> str:
    parts = [(1.0, float(each)) for each in row.card_milli_ms]
    return sparkline(parts, min(len(parts), SPARK_COLUMNS), max(row.card_milli_ms, default=0))


def spending_title(by: GroupBy, days: int, rows: Sequence[Held]) -> str:
    """Return the title of a chart: `12 345.6 card-hours in the last 30 days, by user`."""
    cards = in_cards(rows)
    total = sum(sum(amounts(row, cards=cards)) for row in rows)
    return f"{tenths(total)} {'card' if cards else 'CPU'}-hours in the last {counted(days, 'day')}, by {by}"


def spending_answer(
    row: Held, begins: Sequence[datetime], by: GroupBy, keys: Mapping[str, str], columns: int, *, cards: bool
) -> Iterator[Line]:
    """Yield harmless lines about one name. `begins`: the beginning of each interval; `cards`: show card-hours, else
    CPU-hours."""
    unit, figures = "card-hours" if cards else "CPU-hours", amounts(row, cards=cards)
    total = sum(figures)
    held = f"  held {tenths(total)} {unit}, {row.share:.1f}% of all."
    left = line(Span(safe(row.name), ACCENT), Span(held, STRONG))
    offers = [(keys.get(name, f":{name}"), word) for name, word in (("by", "by"), ("days", "days"))]
    yield spread(left, tuple(span for key, word in offers for span in key_hint(key, word, "  ")), columns)
    most = max(range(len(figures)), key=lambda place: figures[place])
    day = f"{begins[most].day} {MONTHS[begins[most].month - 1]}"
    mean = tenths(total / len(figures))
    yield labelled(
        "a day", f"{mean} on average; most on {day}, {tenths(figures[most])}; today so far {tenths(figures[-1])}"
    )
    yield labelled("CPUs", f"{tenths(hours(sum(row.cpu_ms)))} CPU-hours held")
    if above := card_hours(row.above_min_card_milli_ms):
        yield labelled(
            "elastic", f"{tenths(above)} card-hours by best effort, above the jobs' least numbers of workers"
        )
    yield labelled("same", f"cockpit accounting hours --days {len(figures)} --by {by}")
