"""Which columns of a table fit a width, and how wide each of them is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence

GAP = 2
"""Blank columns between two cells."""


class Sized(Protocol):
    """A column that says what room it wants."""

    @property
    def width(self) -> int:
        """At least."""
        ...

    @property
    def most(self) -> int:
        """At most; 0: as much as there is."""
        ...

    @property
    def grows(self) -> int:
        """Its share of the room that is left over."""
        ...

    @property
    def need(self) -> int:
        """Shown from this total width on."""
        ...


Column = TypeVar("Column", bound=Sized)


def fitting(columns: Sequence[Column], total: int) -> list[tuple[Column, int]]:
    """The columns that are shown in `total`, with their widths. What is over or missing is the last one's."""
    chosen = [column for column in columns if total >= column.need]
    if not chosen:  # a table that has no size yet is asked for its titles all the same
        return []
    left = total - sum(column.width for column in chosen) - GAP * (len(chosen) - 1)
    shares = sum(column.grows for column in chosen)
    widths = [column.width + _growth(column, max(left, 0), shares) for column in chosen]
    widths[-1] = max(1, widths[-1] + total - sum(widths) - GAP * (len(chosen) - 1))
    return list(zip(chosen, widths, strict=True))


def _growth(column: Sized, left: int, shares: int) -> int:
    growth = left * column.grows // shares if shares else 0
    return min(growth, column.most - column.width) if column.most else growth
