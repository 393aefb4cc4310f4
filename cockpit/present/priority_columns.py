"""The columns of the Priority view: which of them fit, with a bar and the figures of the heaviest factors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

from msgspec.structs import replace

from cockpit.model.priority import FactorName
from cockpit.model.view import PriorityRow
from cockpit.present import units
from cockpit.present.columns import GAP, NOTHING, Cell, Column, laid_out
from cockpit.present.priority import figure
from cockpit.present.priority_parts import SIGNS, Amounts, amounts, stacked
from cockpit.present.safe import safe
from cockpit.present.spans import ACCENT, MUTED, STRONG, Line, Span, line
from cockpit.present.tables.priority import (
    BAR,
    DOWN,
    LEAST_BAR,
    MOVED,
    NARROW_BAR,
    PLACE,
    PRIORITY,
    SAME,
    TOTAL,
    UP,
    WAS,
)


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
    # The row stays: without it the places would have gaps.
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
    if row.breakdown.source:
        return line(Span(safe(row.breakdown.source), MUTED))
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
    # The bar comes first: a comparison at a glance is what the view is for. Factors share what its least width leaves.
    room = total - sum(column.screen.width + GAP for column in head) - LEAST_BAR
    one = shape.figure_columns + GAP
    # If rows are sorted by a factor its figures must be visible, at the cost of a narrower bar.
    led = shape.first is not None and room + LEAST_BAR - NARROW_BAR >= one
    shown = _fitting_factors(shape, max(room // one, int(led)))
    bar = Column(BAR, "", "What it is made of", cell=Cell(NARROW_BAR, fill=_bar_cell, grows=6))
    return laid_out(
        [
            *head,
            bar,
            *(
                _column(
                    SIGNS[name].column,
                    Cell(shape.figure_columns, _factor_cell(name), title=SIGNS[name].title, right=True),
                )
                for name in shown
            ),
        ],
        total,
    )


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
    # Chosen by weight, shown in the order of the bar, so that a colour is found at the same place.
    chosen = set(list(dict.fromkeys(wanted))[:room])
    return [name for name in SIGNS if name in chosen]
