"""A table as plain text: no escape sequences, columns that line up, cut to the terminal where there is one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from cockpit.present.columns import Column, Context
from cockpit.present.width import cut, pad, width

GAP: Final = "  "
NARROWEST: Final = 8
"""A text column is never cut below this."""


def grid_lines(
    columns: Sequence[Column], rows: Sequence[Any], context: Context, *, header: bool, room: int | None
) -> list[str]:
    """One line a row. `room` is the terminal's width; None: everything is written in full."""
    cells = [column.texts(rows, context) for column in columns]
    if header:
        cells = [[column.title, *texts] for column, texts in zip(columns, cells, strict=True)]
    widths = [max(map(width, texts), default=0) for texts in cells]
    if room is not None:
        widths = fitted(widths, [not column.right for column in columns], room)
    shaped = [
        _shaped(texts, columns_wide, column.right)
        for texts, columns_wide, column in zip(cells, widths, columns, strict=True)
    ]
    return [GAP.join(line).rstrip() for line in zip(*shaped, strict=True)]


def fitted(widths: Sequence[int], may_shrink: Sequence[bool], room: int) -> list[int]:
    """Widths that fit: the widest column that may shrink gives way, one place at a time, the last one first."""
    fit = list(widths)
    excess = sum(fit) + len(GAP) * (len(fit) - 1) - room
    for _ in range(excess):
        candidates = [at for at, wide in enumerate(fit) if may_shrink[at] and wide > NARROWEST]
        if not candidates:
            break
        fit[max(candidates, key=lambda at: (fit[at], at))] -= 1
    return fit


def _shaped(texts: Sequence[str], columns_wide: int, right: bool) -> list[str]:
    return [pad(cut(text, columns_wide), columns_wide, right=right) for text in texts]
