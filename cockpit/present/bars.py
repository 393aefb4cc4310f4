"""Bars: a filled part in the colour role of what it measures, and a muted track that is visible without colours too."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from cockpit.present import units
from cockpit.present.spans import Line, Span

TRACK = "·"
TRACK_ROLE = "free"


def bar(part: float, columns: int, role: str) -> Line:
    """Return a bar of `columns` cells for a part between 0 and 1; only 0 is drawn empty, and only 1 is drawn full.

    With less than one column the result is empty, as the text beside the bar took all columns.
    """
    if columns < 1:
        return ()
    # Half a cell: a job that has just begun is not drawn as one that has not, nor one at 99 % as done.
    least = 1 / (2 * columns)
    shown = min(max(part, least), 1 - least) if 0 < part < 1 else part
    filled = units.bar(shown, columns).rstrip()
    return Span(filled, role), Span(TRACK * (columns - len(filled)), TRACK_ROLE)


def apportioned(amounts: Sequence[float], cells: int, *, least: int = 0) -> list[int]:
    """Return the number of cells for each amount, in proportion, by the largest remainder method (Hamilton's).

    A larger amount never gets fewer cells than a smaller one. The numbers add up to `cells`, unless all amounts are 0.
    Each amount above 0 gets at least `least` cells, where there are enough cells for that.
    """
    places = [place for place, amount in enumerate(amounts) if amount > 0]
    counts = [0] * len(amounts)
    if least * len(places) > cells:
        least = 0
    # Amounts whose share is below `least` get exactly that. It is taken from the others, so that one of them may fall
    # below `least` in turn: repeat until none does.
    while small := _below(amounts, places, cells, least):
        for place in small:
            counts[place] = least
        cells -= least * len(small)
        places = [place for place in places if place not in small]
    total = sum(amounts[place] for place in places)
    quotas = {place: amounts[place] / total * cells for place in places}
    for place, quota in quotas.items():
        counts[place] = int(quota)
    rest = cells - sum(map(int, quotas.values()))
    # The cells left over by rounding down go to the largest remainders; of equal remainders the larger amount comes
    # first, so that it never gets fewer cells.
    by_remainder = sorted(places, key=lambda place: (int(quotas[place]) - quotas[place], -amounts[place], place))
    for place in by_remainder[: max(rest, 0)]:
        counts[place] += 1
    return counts


def _below(amounts: Sequence[float], places: Sequence[int], cells: int, least: int) -> set[int]:
    """Return the places of the amounts whose proportional share of the cells is below `least`."""
    total = sum(amounts[place] for place in places)
    return {place for place in places if amounts[place] * cells < least * total}


LEVELS: Final = "▁▂▃▄▅▆▇█"
GAP: Final = " "
"""Sign of a cell without a known figure."""

Part = tuple[float, float | None]
"""Length of an interval and the figure during it; None: not known."""


def sparkline(parts: Sequence[Part], columns: int, most: float) -> str:
    """Return the chart of consecutive parts over `columns` cells; `most` is the full height. Only 0 is drawn at the
    bottom, and a figure above `most` is drawn as `most`."""
    return "".join(GAP if figure is None else _level(figure, most) for figure in spread_over(parts, columns))


def spread_over(parts: Sequence[Part], columns: int) -> Iterator[float | None]:
    """Yield the mean of the known figures in each column's share of the time; None: none is known there."""
    whole = sum(lasted for lasted, _ in parts)
    if whole <= 0 or columns <= 0:
        return
    # `at` is where the part at `place` begins. A part that reaches beyond a column is not left, as the next column
    # shares it: one walk over the parts serves all columns.
    at, place = 0.0, 0
    for column in range(columns):
        ends, amount, known = whole * (column + 1) / columns, 0.0, 0.0
        begins = whole * column / columns
        while place < len(parts):
            lasted, figure = parts[place]
            shared = min(at + lasted, ends) - max(at, begins)
            if figure is not None and shared > 0:
                amount, known = amount + figure * shared, known + shared
            if at + lasted > ends:
                break
            at, place = at + lasted, place + 1
        yield amount / known if known else None


def _level(figure: float, most: float) -> str:
    part = min(max(figure / most, 0.0), 1.0) if most > 0 else 0.0
    top = len(LEVELS) - 1
    # The lowest sign is kept for 0: something is never drawn as nothing.
    return LEVELS[max(1, round(part * top)) if part > 0 else 0]
