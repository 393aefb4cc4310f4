"""A small chart in one line of text: how a figure went over time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

LEVELS: Final = "▁▂▃▄▅▆▇█"
GAP: Final = " "
"""Where nothing is known."""

Part = tuple[float, float | None]
"""How long, and the figure meanwhile."""


def sparkline(parts: Sequence[Part], columns: int, most: float) -> str:
    """The parts, one after the other, over so many columns; `most` is the full height. Only nothing is at the bottom,
    and more than `most` is as `most`."""
    return "".join(GAP if figure is None else _level(figure, most) for figure in spread_over(parts, columns))


def spread_over(parts: Sequence[Part], columns: int) -> Iterator[float | None]:
    """The mean of what is known in each column's share of the time."""
    whole = sum(lasted for lasted, _ in parts)
    if whole <= 0 or columns <= 0:
        return
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
    return LEVELS[max(1, round(part * top)) if part > 0 else 0]
