"""A word looked for in every column, and what can be remembered for the next word."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any, Final

from cockpit.present.columns import Column, Context, Kind, Table
from cockpit.present.masks import Mask, any_of, containing
from cockpit.present.safe import safe

_BETWEEN: Final = "\n"
"""Between two cells: no word that is typed has it."""


class SearchMemory:
    """The lasting text of each row of a table, by its id: the columns of plain text, in which time changes nothing.

    Whoever holds the rows forgets those that change.
    """

    def __init__(self, table: Table) -> None:
        self.columns = [column for column in table.columns if _is_lasting(column)]
        self._get: Callable[[Any], tuple[str, ...]] = attrgetter(*(column.field for column in self.columns))
        self._texts: dict[Any, str] = {}

    def forget(self, row_id: object) -> None:
        """The row has changed or gone."""
        self._texts.pop(row_id, None)

    def clear(self) -> None:
        self._texts.clear()

    def texts(self, rows: Sequence[Any]) -> list[str]:
        """Folded to one case, one a row."""
        ids = list(map(attrgetter("id"), rows))
        texts = list(map(self._texts.get, ids))
        if None not in texts:
            return texts  # type: ignore[return-value] # just looked
        missing = [row for row, text in zip(rows, texts, strict=True) if text is None]
        self._texts |= {row.id: _searched(cells) for row, cells in zip(missing, map(self._get, missing), strict=True)}
        return list(map(self._texts.__getitem__, ids))


def anywhere(table: Table, word: str, memory: SearchMemory | None = None) -> Mask:
    """Rows with the word in any of the table's columns."""
    if memory is None or _BETWEEN in word:
        return any_of([containing(column, word) for column in table.columns])
    elsewhere = any_of([containing(column, word) for column in table.columns if column not in memory.columns])
    wanted = word.casefold()

    def found(rows: Sequence[Any], context: Context) -> list[bool]:
        lasting = [wanted in text for text in memory.texts(rows)]
        further = iter(elsewhere([row for row, there in zip(rows, lasting, strict=True) if not there], context))
        return [there or next(further) for there in lasting]

    return found


def _is_lasting(column: Column) -> bool:
    return column.kind is Kind.TEXT and bool(column.field) and column.words is None and not column.nullable


def _searched(cells: tuple[str, ...]) -> str:
    """The cells as they are and, where that differs, as they are shown."""
    text = _BETWEEN.join(cells)
    if not text.isascii() or not text.replace(_BETWEEN, "").isprintable():
        text = _BETWEEN.join((text, *map(safe, cells)))
    return text.casefold()
