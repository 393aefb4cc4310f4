"""A chart of the CPUs and cards held, as one stacked column per day, with a colour or letter for each of the largest
names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from math import ceil, log10
from typing import TYPE_CHECKING, Final, NamedTuple

from cockpit.model.spec import WHOLE_CARD
from cockpit.present.accounting import HOUR_MS, Held
from cockpit.present.bars import LEVELS, apportioned
from cockpit.present.spans import MUTED, Line, Span, line
from cockpit.present.units import grouped

if TYPE_CHECKING:
    from datetime import tzinfo

    from cockpit.model.ids import Millis

HUES: Final = tuple(f"hue{number}" for number in range(8))
OTHERS_ROLE: Final = "unknown"
LETTERS: Final = "abcdefgh"
OTHERS_LETTER: Final = "z"
AXIS: Final = 8
"""Width of the scale at the left in terminal columns."""
WIDEST: Final = 14
LEAST_TOP: Final = 0.02
"""Least top of the scale, in hours."""
MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
STEPS: Final = (1.0, 1.2, 1.6, 2.0, 2.4, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)
"""Values at which a scale may end, times a power of ten."""


class SeriesStyle(NamedTuple):
    """Colour and letter of a name in the chart."""

    role: str
    letter: str


def sign_of(place: int) -> SeriesStyle:
    """Return the sign of the name at that place in the order of size."""
    return SeriesStyle(HUES[place], LETTERS[place]) if place < len(HUES) else SeriesStyle(OTHERS_ROLE, OTHERS_LETTER)


def in_cards(rows: Sequence[Held]) -> bool:
    """Return whether any cards were held, so that the chart shows card-hours; else it shows CPU-hours."""
    return any(any(row.card_milli_ms) for row in rows)


def amounts(row: Held, *, cards: bool) -> list[float]:
    """Return the card-hours, or CPU-hours, of each interval."""
    if cards:
        return [each / WHOLE_CARD / HOUR_MS for each in row.card_milli_ms]
    return [each / HOUR_MS for each in row.cpu_ms]


def chart(
    rows: Sequence[Held], edges: Sequence[Millis], columns: int, lines: int, zone: tzinfo | None, *, letters: bool
) -> Iterator[Line]:
    """Yield the chart's harmless lines, the last of them with the dates. `rows`: the largest first; `letters`: the
    screen shows no colours."""
    cards = in_cards(rows)
    stacks = _stacks([amounts(row, cards=cards) for row in rows])
    height = lines - 1
    # One line is for the dates.
    if not stacks or height < 1:
        return
    top = _round_top(max(map(sum, stacks)))
    each, gap = _sizes(len(stacks), columns)
    painted = [list(_column(stack, top, height, letters=letters)) for stack in stacks]
    for level in range(height - 1, -1, -1):
        cells = [Span(sign * each + " " * gap, role) for sign, role in (column[level] for column in painted)]
        yield (Span(_scale(level, height, top), MUTED), *cells)
    yield line(" " * AXIS, Span(_dates(edges, each + gap, zone), MUTED))


def _stacks(series: Sequence[Sequence[float]]) -> list[list[float]]:
    """Return the stack of each interval: the amounts of the largest names, then the sum of all others."""
    if not series:
        return []
    stretches = range(len(series[0]))
    # More than eight colours cannot be told apart.
    largest, others = series[: len(HUES)], series[len(HUES) :]
    return [[*(each[at] for each in largest), sum(each[at] for each in others)] for at in stretches]


def _column(stack: Sequence[float], top: float, height: int, *, letters: bool) -> Iterator[tuple[str, str]]:
    """Yield the cells of a column from the bottom up, as sign and role. Each amount gets cells in proportion; the
    topmost cell is drawn partly filled."""
    filled = sum(stack) / top * height if top else 0.0
    # Less than half of the lowest level (an eighth) is not worth a cell: it would be drawn as a whole level.
    cells = min(height, ceil(filled - 1 / 16))
    # Each cell has one colour: cells are shared by the largest remainder method, so that none is lost to rounding.
    owners = [place for place, count in enumerate(apportioned(stack, max(cells, 0))) for _ in range(count)]
    for level in range(height):
        if level >= len(owners):
            yield " ", MUTED
            continue
        sign = sign_of(owners[level])
        part = LEVELS[min(len(LEVELS), max(1, round((filled - level) * len(LEVELS)))) - 1]
        yield (sign.letter if letters else part), sign.role


def _sizes(stretches: int, columns: int) -> tuple[int, int]:
    """Return the width of one column of the chart and of the gap behind it, in terminal columns."""
    room = max(1, (columns - AXIS) // stretches)
    gap = 0 if room < 2 else 1 if room < 6 else 2
    return min(room - gap, WIDEST), gap


def _round_top(most: float) -> float:
    """Return the least round figure that is at least `most`; it is at least `LEAST_TOP`, as a scale of less than a
    minute is useless."""
    if most <= 0:
        return 0.0
    most = max(most, LEAST_TOP)
    # The power of ten for which the step is between 1 and 10; the factor 0.999 forgives rounding of sums.
    power: float = 10.0 ** ceil(log10(most) - 1)
    return next(step * power for step in STEPS if step * power >= most * 0.999)


def _scale(level: int, height: int, top: float) -> str:
    """Return the vertical axis at a level: a figure at the top and, where the height is even, in the middle; else the
    line."""
    # In an odd number of lines no line is the middle.
    middle = {height // 2 - 1: top / 2} if height % 2 == 0 else {}
    figure = (middle | {height - 1: top}).get(level)
    text = "" if figure is None or not top else _figure(figure, top)
    return f"{text:>{AXIS - 2}} {'┤' if text else '│'}"


def _figure(figure: float, top: float) -> str:
    """Return a figure of the axis with so many digits that no two figures look the same."""
    return grouped(figure) if top >= 10 else f"{figure:.1f}" if top >= 1 else f"{figure:.2g}"


def _dates(edges: Sequence[Millis], size: int, zone: tzinfo | None) -> str:
    """Return the line of dates: one under each column, or under as many columns as there is room for."""
    text = ""
    for place, edge in enumerate(edges[:-1]):
        day = datetime.fromtimestamp(edge / 1000, zone)
        label = f"{DAYS[day.weekday()]} {day.day}" if size >= len("Mon 31 ") else f"{day.day} {MONTHS[day.month - 1]}"
        at = place * size
        # Narrow columns: one date a week, counted back from today, which always has one.
        is_shown = size >= len("Mon 31 ") or (len(edges) - 2 - place) % 7 == 0
        # A date that would touch the one before is left out.
        if is_shown and at >= len(text) + bool(text):
            text = text.ljust(at) + label
    return text
