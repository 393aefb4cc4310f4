"""The queue in its order: the columns of the priorities for every output, with a bar and a column for each factor."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from functools import lru_cache
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from cockpit.model.cluster import PriorityKind
from cockpit.model.ids import index_ranges
from cockpit.model.priority import Breakdown, FactorName, Part
from cockpit.model.view import Priorities, PriorityRow
from cockpit.present import units
from cockpit.present.columns import GAP, NOTHING, Cell, Column, Context, TableView, ValueKind, laid_out
from cockpit.present.priority import figure
from cockpit.present.priority_parts import SIGNS, Amounts, amounts, stacked
from cockpit.present.reasons import reason_sentence
from cockpit.present.references import job_shown
from cockpit.present.safe import safe
from cockpit.present.spans import ACCENT, MUTED, STRONG, Line, Span, line

HELD, DIRECT, KEPT, UNCOUNTED = "held", "set", "kept", "uncounted"
NOTES: Final = {
    HELD: "held",
    DIRECT: "set by an administrator",
    KEPT: "was higher, and stays so",
    UNCOUNTED: "",
    "": "",
}
"""Words for each note; for a job that is not counted the reason's sentence is shown instead."""


LEAST_BAR: Final = 20
NARROW_BAR: Final = 12
"""Width of the bar where the leading factor's column would not fit otherwise, in terminal columns."""
UP, DOWN, SAME = "▲", "▼", "·"
PLACE, WAS, MOVED, TOTAL, BAR = "position", "position_before", "moved", "priority", "bar"


def _id_words(row: PriorityRow, _: Context) -> str:
    """Return the job's id: `4711`, `4700_3` for a task of an array, `-` where the user may not see the job."""
    if row.task is not None:
        return f"{row.task.array}_{f'[{index_ranges(row.tasks)}]' if row.tasks else row.task.index}"
    return job_shown(row.job)


def priority(row: PriorityRow, _: Context) -> int | None:
    """Return the job's priority; None under order of submission, and for a job that the user may not see."""
    return row.breakdown.total if row.breakdown is not None and _computed(row) else None


def nice(row: PriorityRow, _: Context) -> int | None:
    return row.breakdown.nice if row.breakdown is not None else None


def note(row: PriorityRow, _: Context) -> str:
    if row.breakdown is None:
        return ""
    if row.position is None:
        return HELD
    if row.uncounted is not None:
        return UNCOUNTED
    return DIRECT if row.breakdown.direct else KEPT if row.breakdown.kept else ""


def note_words(row: PriorityRow, context: Context) -> str:
    """Return the note in a few words; for a job that sprio leaves out, the sentence that says why it waits."""
    if row.position is not None and row.uncounted is not None:
        return reason_sentence(row.uncounted, context.now, context.zone)
    return NOTES[note(row, context)]


def _is_noted(breakdown: Breakdown | None) -> bool:
    return breakdown is not None and (breakdown.direct or breakdown.kept)


def factors(breakdown: Breakdown) -> dict[str, dict[str, float]]:
    """Return raw factor, weight and contribution by the name that `--weights` uses."""
    return {
        weight_name(part): {"raw": part.raw, "weight": part.weight, "contribution": part.contribution}
        for part in breakdown.parts
    }


def factors_of(row: PriorityRow, _: Context) -> dict[str, dict[str, float]]:
    """Return the factors by name; empty for a job that the user may not see. Where another scheduler reported its
    figures, a factor also has the contribution by them (`cluster`) and by cockpit's own count (`core`)."""
    own = factors(row.breakdown) if row.breakdown is not None else {}
    if row.told is None:
        return own
    cluster_figures = {weight_name(part): part.contribution for part in row.told.parts}
    return {
        name: factor | {"cluster": cluster_figures.get(name, 0.0), "core": factor["contribution"]}
        for name, factor in own.items()
    }


def weight_name(part: Part) -> str:
    """Return the name that `--weights` uses for a part: `fairshare`, `tres/cpu`."""
    if part.name is FactorName.TRES:
        return f"tres/{part.tres}"
    return "jobsize" if part.name is FactorName.JOB_SIZE else str(part.name)


def resources_text(row: PriorityRow, _: Context) -> str:
    """Return the contributions of resources in sprio's syntax: `cpu=120,gres/gpu=400`."""
    parts = row.breakdown.parts if row.breakdown is not None else ()
    return ",".join(f"{safe(p.tres)}={p.contribution:.0f}" for p in parts if p.tres and p.contribution) or NOTHING


def contribution(name: FactorName) -> Callable[[Any, Context], float | None]:
    """Return a function that returns what the factor adds; None where no priority is computed."""

    def added(row: PriorityRow, _: Context) -> float | None:
        if row.breakdown is None or not row.breakdown.parts:
            return None
        return float(sum(part.contribution for part in row.breakdown.parts if part.name is name))

    return added


def _computed(row: PriorityRow) -> bool:
    breakdown = row.breakdown
    if breakdown is None:
        return False
    return bool(breakdown.parts or breakdown.direct or row.position is None or row.uncounted is not None)


def _factor(column_id: str, title: str, name: FactorName, what: str) -> Column:
    added = contribution(name)

    def rounded(row: PriorityRow, context: Context) -> str:
        figure = added(row, context)
        return NOTHING if figure is None else f"{figure:.0f}"

    return Column(column_id, title, ValueKind.NUMBER, f"What {what} adds", derive=added, words=rounded, nullable=True)


FACTORS: Final = {
    FactorName.AGE: _factor("age", "AGE", FactorName.AGE, "its age"),
    FactorName.FAIRSHARE: _factor("fairshare", "FAIR", FactorName.FAIRSHARE, "its user's fair share"),
    FactorName.JOB_SIZE: _factor("jobsize", "SIZE", FactorName.JOB_SIZE, "its size"),
    FactorName.PARTITION: _factor("partition_factor", "PART", FactorName.PARTITION, "its partition"),
    FactorName.QOS: _factor("qos_factor", "QOS", FactorName.QOS, "its QOS"),
    FactorName.ASSOC: _factor("assoc", "ASSOC", FactorName.ASSOC, "its association"),
    FactorName.TRES: _factor("tres", "TRES", FactorName.TRES, "its weighted resources"),
    FactorName.SITE: _factor("site", "SITE", FactorName.SITE, "the site"),
}

_FACTOR_SCHEMA: Final = {
    "type": "object",
    "properties": {name: {"type": "number"} for name in ("raw", "weight", "contribution")},
    "required": ["raw", "weight", "contribution"],
}

PRIORITY: Final = TableView(
    name="priority",
    identity=("id", "partition"),
    help="Queued jobs in the order in which the cluster considers them, a row for each of their partitions",
    empty="Nothing is queued.",
    columns=(
        Column("position", "PLACE", ValueKind.INTEGER, "In the queue, from 1", nullable=True),
        Column(
            "position_before",
            "WAS",
            ValueKind.INTEGER,
            "Its place by the cluster's own weights, where others are tried out",
            nullable=True,
            wide=True,
            aliases=("was",),
        ),
        Column(
            "id",
            "ID",
            ValueKind.INTEGER,
            "The job; nothing for one that you may not see",
            derive=lambda row, _: row.job or None,
            words=_id_words,
            nullable=True,
        ),
        Column("name", "NAME", ValueKind.TEXT, "The job's name", spare=True),
        Column("user", "USER", ValueKind.TEXT, "Who submitted it", aliases=("creator",)),
        Column("partition", "QUEUE", ValueKind.TEXT, "Where it would run", aliases=("queue",)),
        Column("priority", "PRIORITY", ValueKind.INTEGER, "The whole: what counts", derive=priority, nullable=True),
        Column(
            "priority_before",
            "WAS PRIORITY",
            ValueKind.INTEGER,
            "By the cluster's own weights, where others are tried out",
            field="total_before",
            nullable=True,
            wide=True,
        ),
        *FACTORS.values(),
        Column("nice", "NICE", ValueKind.INTEGER, "What is taken off", derive=nice, nullable=True, spare=True),
        Column(
            "note",
            "NOTE",
            ValueKind.TEXT,
            "held: not considered; set: by an administrator; kept: more than its parts come to now (INCREMENT_ONLY); "
            "uncounted: on a Slurm cluster, sprio leaves it out until what it waits for is there",
            derive=note,
            words=note_words,
            schema={"enum": list(NOTES)},
            spare=True,
        ),
        Column("account", "ACCOUNT", ValueKind.TEXT, "What it is charged to", wide=True),
        Column("qos", "QOSNAME", ValueKind.TEXT, "Its QOS", wide=True),
        Column(
            "told_total",
            "TOLD",
            ValueKind.INTEGER,
            "The priority that the cluster's own scheduler prints, in a snapshot of another's cluster; else null",
            derive=lambda row, _: row.told.total if row.told is not None else None,
            nullable=True,
            wide=True,
        ),
        Column(
            "factors",
            "FACTORS",
            ValueKind.RECORD,
            "Of each factor raw value, weight and what they multiply to; in a snapshot of a Slurm cluster also what it "
            "adds by sprio (cluster) and by cockpit's count (core)",
            derive=factors_of,
            words=lambda row, context: ", ".join(factors_of(row, context)) or NOTHING,
            schema={"type": "object", "additionalProperties": _FACTOR_SCHEMA},
            wide=True,
        ),
    ),
)


_NAMING: Final = ("id", "name", "user", "account", "partition", "qos", "note")

SEARCHED: Final = replace(
    PRIORITY,
    columns=tuple(column for column in PRIORITY.columns if column.id in _NAMING),
    keys=tuple(column for column in PRIORITY.columns if column.id not in _NAMING),
)
"""The table for searching thousands of rows every few seconds: a bare word is searched in the names of a job only, and
figures are filtered by their column."""


def table_of(priorities: Priorities, *, tried: bool) -> TableView:
    """Return the table with the factors that have a weight, and with the former place where other weights are tried
    out."""
    shown = {
        "position_before": tried,
        "nice": any(row.breakdown is not None and row.breakdown.nice for row in priorities.rows),
        "note": any(row.position is None or _is_noted(row.breakdown) for row in priorities.rows),
        **_counting(priorities),
    }
    columns = (replace(each, wide=not shown.get(each.id, not each.wide)) for each in PRIORITY.columns)
    return replace(PRIORITY, columns=tuple(columns))


def _counting(priorities: Priorities) -> dict[str, bool]:
    """Return for each factor's column whether it counts under the cluster's weights."""
    weights, computed = priorities.weights, priorities.kind is PriorityKind.MULTIFACTOR
    weighed = {
        FactorName.AGE: weights.age,
        FactorName.FAIRSHARE: weights.fairshare,
        FactorName.JOB_SIZE: weights.job_size,
        FactorName.PARTITION: weights.partition,
        FactorName.QOS: weights.qos,
        FactorName.ASSOC: weights.assoc,
        FactorName.TRES: any(weights.tres.values()),
    }
    return {column.id: computed and bool(weighed.get(name)) for name, column in FACTORS.items()}


def _as_sprio(name: str, title: str) -> Column:
    column = PRIORITY.find(name)
    assert column is not None
    return replace(column, title=title)


SPRIO: Final = replace(
    PRIORITY,
    columns=(
        _as_sprio("id", "JOBID"),
        _as_sprio("partition", "PARTITION"),
        _as_sprio("user", "USER"),
        _as_sprio("account", "ACCOUNT"),
        _as_sprio("priority", "PRIORITY"),
        _as_sprio("site", "SITE"),
        _as_sprio("age", "AGE"),
        _as_sprio("assoc", "ASSOC"),
        _as_sprio("fairshare", "FAIRSHARE"),
        _as_sprio("jobsize", "JOBSIZE"),
        _as_sprio("partition_factor", "PARTITION"),
        _as_sprio("qos", "QOSNAME"),
        _as_sprio("qos_factor", "QOS"),
        _as_sprio("nice", "NICE"),
        replace(_as_sprio("tres", "TRES"), words=resources_text),
    ),
    keys=tuple(column for column in PRIORITY.columns if column.id in {"position", "name", "note"}),
)
"""The columns of `sprio -l`, for users who know it."""


class Figures(StrEnum):
    """The figures that the columns of factors show."""

    CONTRIBUTION = "contribution"
    RAW = "raw"
    WEIGHT = "weight"

    @property
    def next(self) -> Figures:
        turns = list(Figures)
        return turns[(turns.index(self) + 1) % len(turns)]


class Shape(NamedTuple):
    """The columns and widths on which the layout depends besides the room."""

    factors: tuple[FactorName, ...]
    """The factors that count, the heaviest first."""
    first: FactorName | None
    """The factor that must be visible, as rows are sorted by it or its weight is being changed; None: none must."""
    id_columns: int
    place_columns: int
    total_columns: int
    figure_columns: int
    tried: bool
    """Whether weights are tried out, so that the places before and after are shown."""
    queues: bool
    """Whether there are several partitions, so that they are shown."""


class CellContext(NamedTuple):
    """The scale and figures on which the cells depend besides the row and the room."""

    whole: float
    """The amount that a whole bar represents."""
    letters: bool
    figures: Figures


def _place_cell(row: PriorityRow, _: CellContext) -> Line:
    return line(Span(NOTHING, "held") if row.position is None else Span(str(row.position), STRONG))


def _was_cell(row: PriorityRow, _: CellContext) -> Line:
    return line(Span(NOTHING if row.position_before is None else str(row.position_before), MUTED))


def _moved_cell(row: PriorityRow, _: CellContext) -> Line:
    rise = moved(row)
    if not rise:
        return line(Span(SAME, MUTED))
    return line(Span(f"{UP} {rise}", "ok") if rise > 0 else Span(f"{DOWN} {-rise}", "warning"))


def moved(row: PriorityRow) -> int:
    """Return the number of places that a job gains by the weights that are tried out; negative: loses."""
    if row.position is None or row.position_before is None:
        return 0
    return row.position_before - row.position


def id_text(row: PriorityRow) -> str:
    """Return the job's id: `4711`, `4700_3` for a task of an array, a dash where the user may not see the job."""
    if row.task is not None:
        return f"{row.task.array}_{row.task.index}"
    return str(row.job) if row.job else NOTHING


def _name_cell(row: PriorityRow, _: CellContext) -> Line:
    return line(Span("another user's", MUTED) if row.breakdown is None else Span(safe(row.name), STRONG))


def _text_cell(attribute: str) -> Callable[[PriorityRow, CellContext], Line]:
    def cell(row: PriorityRow, _: CellContext) -> Line:
        return line(Span(safe(getattr(row, attribute)) or NOTHING, MUTED))

    return cell


def _total_cell(row: PriorityRow, _: CellContext) -> Line:
    if row.breakdown is None or row.position is None:
        return line(Span(NOTHING, MUTED))
    return line(Span(units.grouped(row.breakdown.total), STRONG))


def _bar_cell(row: PriorityRow, scale: CellContext, columns: int) -> Line:
    if row.breakdown is None:
        return ()
    if row.position is None:
        return line(Span("held, and not considered", "held"))
    if row.breakdown.direct:
        return line(Span("set by an administrator", ACCENT))
    return stacked(row.breakdown, scale.whole, columns, letters=scale.letters)


def _factor_cell(name: FactorName) -> Callable[[PriorityRow, CellContext], Line]:
    def cell(row: PriorityRow, scale: CellContext) -> Line:
        amount = amounts(row.breakdown).get(name) if row.breakdown is not None else None
        if amount is None:
            return line(Span(NOTHING, MUTED))
        return line(Span(factor_text(amount, scale.figures), SIGNS[name].role if amount.contribution else MUTED))

    return cell


def factor_text(amount: Amounts, figures: Figures) -> str:
    """Return the shown figure of a factor: the contribution `3 120`, the raw value `0.312` or the weight `10 000`."""
    match figures:
        case Figures.CONTRIBUTION:
            return figure(amount.contribution)
        case Figures.WEIGHT:
            return units.grouped(amount.weight)
        case Figures.RAW:
            return f"{amount.raw:.3f}" if amount.raw <= 1 else f"{amount.raw:.6g}"


@lru_cache(maxsize=64)
def laid_out_priorities(total: int, shape: Shape) -> Sequence[tuple[Column, int]]:
    """Return the columns that fit, with their widths, with as many factors as leave room for a bar."""
    head = list(_head(total, shape))
    room = total - sum(column.screen.width + GAP for column in head) - LEAST_BAR
    one = shape.figure_columns + GAP
    led = shape.first is not None and room + LEAST_BAR - NARROW_BAR >= one
    shown = _fitting_factors(shape, max(room // one, int(led)))
    bar = Column(BAR, "", ValueKind.TEXT, "What it is made of", cell=Cell(NARROW_BAR, fill=_bar_cell, grows=6))
    return laid_out([*head, bar, *(_factor_column(name, shape) for name in shown)], total)


def _column(name: str, cell: Cell) -> Column:
    """Return the column of the table `priority` with its cell, whose width depends on the rows."""
    column = PRIORITY.find(name)
    assert column is not None
    return replace(column, cell=cell)


def _head(total: int, shape: Shape) -> Iterator[Column]:
    """Yield the columns before the bar that this width has room for."""
    if shape.tried:
        yield _column(WAS, Cell(shape.place_columns, _was_cell, right=True, title="WAS"))
    place = "NOW" if shape.tried else "PLACE"
    yield _column(PLACE, Cell(max(shape.place_columns, len(place)), _place_cell, right=True, title=place))
    if shape.tried:
        yield Column(
            MOVED,
            "MOVED",
            ValueKind.TEXT,
            "Places that it gains",
            cell=Cell(max(shape.place_columns + 2, len("MOVED")), _moved_cell, title="MOVED"),
        )
    yield _column("id", Cell(shape.id_columns, lambda row, _: line(Span(id_text(row), MUTED)), right=True, title="ID"))
    yield _column("name", Cell(12, _name_cell, grows=2, most=26, title="NAME"))
    yield _column("user", Cell(6, _text_cell("user"), grows=1, most=12, title="USER"))
    if total >= ACCOUNT_NEEDS:
        yield _column("account", Cell(8, _text_cell("account"), grows=1, most=14, title="ACCOUNT"))
    if shape.queues and total >= QUEUE_NEEDS:
        yield _column("partition", Cell(7, _text_cell("partition"), grows=1, most=12, title="QUEUE"))
    yield _column(TOTAL, Cell(shape.total_columns, _total_cell, right=True, title="TOTAL"))


QUEUE_NEEDS, ACCOUNT_NEEDS = 90, 125


def _fitting_factors(shape: Shape, room: int) -> list[FactorName]:
    """Return the `room` heaviest factors, with the one that must be visible among them, in the order of the bar."""
    wanted = [name for name in (shape.first, *shape.factors) if name is not None]
    chosen = set(list(dict.fromkeys(wanted))[:room])
    return [name for name in SIGNS if name in chosen]


def _factor_column(name: FactorName, shape: Shape) -> Column:
    return _column(
        SIGNS[name].column, Cell(shape.figure_columns, _factor_cell(name), title=SIGNS[name].title, right=True)
    )
