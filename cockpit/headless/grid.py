"""A table as plain text: no escape sequences, columns that line up, cut to the terminal where there is one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from cockpit.present.columns import Column, Context
from cockpit.present.width import aligned, widest

GAP: Final = "  "
COMFORTABLE: Final = 20
"""A text column may be cut to this before spare columns are left out."""
NARROWEST: Final = 8
"""A text column is never cut below this."""


def grid_lines(
    columns: Sequence[Column], rows: Sequence[Any], context: Context, *, header: bool, room: int | None
) -> list[str]:
    """Return a header and one line per row. `room` is the terminal's width; None: nothing is cut."""
    cells = [column_cells(column, rows, context, header=header) for column in columns]
    widths = list(map(widest, cells))
    kept = range(len(columns)) if room is None else kept_columns(columns, widths, room)
    columns, cells, widths = [columns[at] for at in kept], [cells[at] for at in kept], [widths[at] for at in kept]
    if room is not None:
        widths = fitted(widths, [not column.right for column in columns], room)
    shaped = [
        aligned(texts, column_width, right=column.right)
        for texts, column_width, column in zip(cells, widths, columns, strict=True)
    ]
    return [GAP.join(line).rstrip() for line in zip(*shaped, strict=True)]


def column_cells(column: Column, rows: Sequence[Any], context: Context, *, header: bool) -> list[str]:
    """The texts of one column, led by its title where that is wanted."""
    texts = column.texts(rows, context)
    return [column.title, *texts] if header else texts


def kept_columns(columns: Sequence[Column], widths: Sequence[int], room: int) -> Sequence[int]:
    """Indexes of the columns to show: spare ones go, the last one first, until the rest is comfortable."""
    least = [wide if column.right else min(wide, COMFORTABLE) for column, wide in zip(columns, widths, strict=True)]
    kept = list(range(len(columns)))
    for at in reversed(kept):
        if _total([least[index] for index in kept]) <= room:
            break
        if columns[at].spare:
            kept = [index for index in kept if index != at]
    return kept


def fitted(widths: Sequence[int], may_shrink: Sequence[bool], room: int) -> list[int]:
    """Widths that fit: the widest column that may shrink gives way, one place at a time, the last one first."""
    fit = list(widths)
    for _ in range(_total(fit) - room):
        candidates = [at for at, wide in enumerate(fit) if may_shrink[at] and wide > NARROWEST]
        if not candidates:
            break
        fit[max(candidates, key=lambda at: (fit[at], at))] -= 1
    return fit


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + len(GAP) * (len(widths) - 1)
