"""Search for a word in all columns, and the cache that makes the next search fast."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from datetime import date, tzinfo
from itertools import compress
from operator import attrgetter
from typing import Any, Final

from cockpit.present.columns import NOTHING, Column, Context, TableView, ValueKind, fact_text
from cockpit.present.moments import day
from cockpit.present.row_filters import Mask, any_of, can_hold, containing, searched
from cockpit.present.safe import harmless

_BETWEEN: Final = "\n"
"""Separator between two cells, which no typed word contains."""
_ids: Final = attrgetter("id")


class SearchMemory:
    """Cached search text of each row of a table, by the row's id: all cells that change only when the row does.

    Cells that change as time passes are left out, and so is the dash of empty cells: a text in plain ASCII takes half
    the memory. The cache is valid for one day, as moments are written differently on the next. The caller must remove
    the texts of rows that change.
    """

    def __init__(self, table: TableView) -> None:
        self.ticking = [column for column in table.columns if column.ticks is not None]
        self._plain = [column for column in table.columns if _is_plain(column)]
        self._get: Callable[[Any], tuple[str, ...]] = attrgetter(*(column.field for column in self._plain))
        self._further = [column for column in table.columns if column not in self._plain]
        self._texts: dict[Any, str] = {}
        self._day: tuple[date, tzinfo | None] | None = None

    def forget(self, row_id: object) -> None:
        """Remove the text of a row that has changed or is gone."""
        self._texts.pop(row_id, None)

    def clear(self) -> None:
        self._texts.clear()

    def texts(self, rows: Sequence[Any], context: Context) -> list[str]:
        """Return the case-folded search text of each row."""
        # From the next midnight on, `09:14` is written `10-05 09:14`.
        today = day(context.now, context.zone), context.zone
        if self._day != today:
            self._texts.clear()
            self._day = today
        ids = list(map(_ids, rows))
        texts = list(map(self._texts.get, ids))
        if None not in texts:
            return texts  # type: ignore[return-value] # just looked
        missing = [row for row, text in zip(rows, texts, strict=True) if text is None]
        self._texts.update(zip(map(_ids, missing), self._searched_texts(missing, context), strict=True))
        return list(map(self._texts.__getitem__, ids))

    def _searched_texts(self, rows: Sequence[Any], context: Context) -> Iterator[str]:
        further = [_lasting_cells(column, rows, context) for column in self._further]
        cells = zip(map(_plain_cells, map(self._get, rows)), *further, strict=True)
        return map(str.casefold, map(_BETWEEN.join, cells))


def anywhere(table: TableView, word: str, memory: SearchMemory | None = None) -> Mask:
    """Return the mask of rows with the word in any of the table's columns."""
    # The cache has no dashes, and separators of its own, so it cannot answer for words with either.
    if memory is None or _BETWEEN in word or NOTHING in word:
        return any_of([containing(column, word) for column in table.columns])
    wanted = word.casefold()
    others = [(column.ticks, containing(column, word)) for column in memory.ticking if can_hold(column, wanted)]

    def contains(rows: Sequence[Any], context: Context) -> list[bool]:
        passing = [wanted in text for text in memory.texts(rows, context)]
        # Cells that change as time passes are not in the cache: search those of the rows that have not passed yet.
        for ticks, holds in others:
            ticking = list(map(ticks, rows)) if ticks is not None else []
            if any(ticking):
                unsure = [bool(does) and not there for does, there in zip(ticking, passing, strict=True)]
                more = iter(holds(list(compress(rows, unsure)), context))
                passing = [there or (open_ and next(more)) for there, open_ in zip(passing, unsure, strict=True)]
        return passing

    return contains


def _is_plain(column: Column) -> bool:
    """Return whether the column is a text that rarely repeats, whose cells are searched as they are."""
    return column.kind is ValueKind.TEXT and bool(column.field) and column.words is None and not column.nullable


def _plain_cells(cells: tuple[str, ...]) -> str:
    """Return the cells as one text, and the shown cells too where these differ."""
    text = _BETWEEN.join(cells)
    if text.isascii() and text.replace(_BETWEEN, "").isprintable():
        return text
    return _BETWEEN.join((text, *map(harmless, cells)))


def _lasting_cells(column: Column, rows: Sequence[Any], context: Context) -> Sequence[str]:
    """Return the column's cells for the cache; empty for cells that change as time passes and for the dash."""
    if column.ticks is not None:
        ticks = column.ticks
        return ["" if ticks(row) else _cell(column, row, context) for row in rows]
    if column.words is not None:
        return [_cell(column, row, context) for row in rows]
    facts = column.facts(rows, context)
    if column.kind is ValueKind.MOMENT:
        return ["" if fact is None else fact_text(ValueKind.MOMENT, fact, context) for fact in facts]
    known: dict[Hashable, str] = {fact: _without_dash(searched(column, fact, context)) for fact in set(facts)}
    known[None] = ""
    return [known[fact] for fact in facts]


def _cell(column: Column, row: object, context: Context) -> str:
    (text,) = column.texts((row,), context)
    return _without_dash(text)


def _without_dash(text: str) -> str:
    return "" if text == NOTHING else text
