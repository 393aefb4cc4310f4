"""The Priority view's columns as cells with roles: place, job, total, stacked bar, and a column for each factor."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import StrEnum
from functools import lru_cache
from typing import Final, NamedTuple

from cockpit.model.priority import FactorName
from cockpit.model.view import PriorityRow
from cockpit.present import units
from cockpit.present.columns import NOTHING
from cockpit.present.layout import GAP, fitting
from cockpit.present.priority import figure
from cockpit.present.priority_parts import SIGNS, Amounts, amounts, stacked
from cockpit.present.safe import safe
from cockpit.present.spans import ACCENT, MUTED, STRONG, Line, Span, line

LEAST_BAR: Final = 20
NARROW_BAR: Final = 12
"""Where the factor that leads would be missed otherwise."""
UP, DOWN, SAME = "▲", "▼", "·"
PLACE, WAS, MOVED, TOTAL, BAR = "position", "position_before", "moved", "priority", "bar"


class Figures(StrEnum):
    """What the columns of factors say."""

    CONTRIBUTION = "contribution"
    RAW = "raw"
    WEIGHT = "weight"

    @property
    def next(self) -> Figures:
        turns = list(Figures)
        return turns[(turns.index(self) + 1) % len(turns)]


class Shape(NamedTuple):
    """What the layout depends on besides the room."""

    factors: tuple[FactorName, ...]
    """Those that count, the heaviest first."""
    first: FactorName | None
    """The one that must be seen: sorted by, or being changed."""
    id_columns: int
    place_columns: int
    total_columns: int
    figure_columns: int
    tried: bool
    """Places before and after."""
    queues: bool
    """There is more than one partition."""


class CellContext(NamedTuple):
    """What the cells depend on besides the row and the room."""

    whole: float
    """What a whole bar stands for."""
    letters: bool
    figures: Figures


Cell = Callable[[PriorityRow, CellContext, int], Line]


class PriorityColumn(NamedTuple):
    """One column of the view."""

    id: str
    title: str
    width: int
    cell: Cell
    grows: int = 0
    most: int = 0
    need: int = 0
    right: bool = False


def _place(row: PriorityRow, _: CellContext, __: int) -> Line:
    return line(Span(NOTHING, "held") if row.position is None else Span(str(row.position), STRONG))


def _was(row: PriorityRow, _: CellContext, __: int) -> Line:
    return line(Span(NOTHING if row.position_before is None else str(row.position_before), MUTED))


def _moved(row: PriorityRow, _: CellContext, __: int) -> Line:
    rise = moved(row)
    if not rise:
        return line(Span(SAME, MUTED))
    return line(Span(f"{UP} {rise}", "ok") if rise > 0 else Span(f"{DOWN} {-rise}", "warning"))


def moved(row: PriorityRow) -> int:
    """Places that a job gains by the weights that are tried out; negative: loses."""
    if row.position is None or row.position_before is None:
        return 0
    return row.position_before - row.position


def _id(row: PriorityRow, _: CellContext, __: int) -> Line:
    return line(Span(id_text(row), MUTED))


def id_text(row: PriorityRow) -> str:
    """`4711`, `4700_3` for a task of an array; nothing where the asker may not see it."""
    if row.task is not None:
        return f"{row.task.array}_{row.task.index}"
    return str(row.job) if row.job else NOTHING


def _name(row: PriorityRow, _: CellContext, __: int) -> Line:
    return line(Span("another user's", MUTED) if row.breakdown is None else Span(safe(row.name), STRONG))


def _text(attribute: str) -> Cell:
    def cell(row: PriorityRow, _: CellContext, __: int) -> Line:
        return line(Span(safe(getattr(row, attribute)) or NOTHING, MUTED))

    return cell


def _total(row: PriorityRow, _: CellContext, __: int) -> Line:
    if row.breakdown is None or row.position is None:
        return line(Span(NOTHING, MUTED))
    return line(Span(units.grouped(row.breakdown.total), STRONG))


def _bar(row: PriorityRow, scale: CellContext, columns: int) -> Line:
    if row.breakdown is None:
        return ()
    if row.position is None:
        return line(Span("held, and not considered", "held"))
    if row.breakdown.direct:
        return line(Span("set by an administrator", ACCENT))
    return stacked(row.breakdown, scale.whole, columns, letters=scale.letters)


def _factor(name: FactorName) -> Cell:
    def cell(row: PriorityRow, scale: CellContext, _: int) -> Line:
        found = amounts(row.breakdown).get(name) if row.breakdown is not None else None
        if found is None:
            return line(Span(NOTHING, MUTED))
        return line(Span(factor_text(found, scale.figures), SIGNS[name].role if found.contribution else MUTED))

    return cell


def factor_text(amount: Amounts, figures: Figures) -> str:
    """`3 120`, `0.312` of `10 000`."""
    match figures:
        case Figures.CONTRIBUTION:
            return figure(amount.contribution)
        case Figures.WEIGHT:
            return units.grouped(amount.weight)
        case Figures.RAW:
            return f"{amount.raw:.3f}" if amount.raw <= 1 else f"{amount.raw:.6g}"


@lru_cache(maxsize=64)
def laid_out(total: int, shape: Shape) -> tuple[tuple[PriorityColumn, int], ...]:
    """The columns that fit, with their widths; of the factors as many as leave room for a bar."""
    head = list(_head(total, shape))
    room = total - sum(column.width + GAP for column in head) - LEAST_BAR
    one = shape.figure_columns + GAP
    led = shape.first is not None and room + LEAST_BAR - NARROW_BAR >= one
    shown = _fitting_factors(shape, max(room // one, int(led)))
    bar = PriorityColumn(BAR, "", NARROW_BAR, _bar, grows=6)
    return tuple(fitting([*head, bar, *(_factor_column(name, shape) for name in shown)], total))


def _head(total: int, shape: Shape) -> Iterator[PriorityColumn]:
    if shape.tried:
        yield PriorityColumn(WAS, "WAS", shape.place_columns, _was, right=True)
    place = "NOW" if shape.tried else "PLACE"
    yield PriorityColumn(PLACE, place, max(shape.place_columns, len(place)), _place, right=True)
    if shape.tried:
        yield PriorityColumn(MOVED, "MOVED", max(shape.place_columns + 2, len("MOVED")), _moved)
    yield PriorityColumn("id", "ID", shape.id_columns, _id, right=True)
    yield PriorityColumn("name", "NAME", 12, _name, grows=2, most=26)
    yield PriorityColumn("user", "USER", 6, _text("user"), grows=1, most=12)
    if total >= ACCOUNT_NEEDS:
        yield PriorityColumn("account", "ACCOUNT", 8, _text("account"), grows=1, most=14)
    if shape.queues and total >= QUEUE_NEEDS:
        yield PriorityColumn("partition", "QUEUE", 7, _text("partition"), grows=1, most=12)
    yield PriorityColumn(TOTAL, "TOTAL", shape.total_columns, _total, right=True)


QUEUE_NEEDS, ACCOUNT_NEEDS = 90, 125


def _fitting_factors(shape: Shape, room: int) -> list[FactorName]:
    """So many of those that count, the one that must be seen among them, the heaviest first; in the order of the
    bar."""
    wanted = [name for name in (shape.first, *shape.factors) if name is not None]
    chosen = set(list(dict.fromkeys(wanted))[:room])
    return [name for name in SIGNS if name in chosen]


def _factor_column(name: FactorName, shape: Shape) -> PriorityColumn:
    return PriorityColumn(SIGNS[name].column, SIGNS[name].title, shape.figure_columns, _factor(name), right=True)
