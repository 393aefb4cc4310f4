"""Filters on many rows at once, column by column: a hundred thousand rows in the time of one frame.

Cells repeat, so each distinct fact is tested once; a column whose cells cannot contain a word is skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import and_, not_, or_
from typing import Any, Final

from cockpit.present.columns import Column, Context, ValueKind, fact_text, values
from cockpit.present.map_unique import hardly_repeats, map_unique
from cockpit.present.safe import harmless

Mask = Callable[[Sequence[Any], Context], list[bool]]
"""A function that returns for each row whether it passes."""

MOST_DAYS: Final = 3
"""Largest number of digits in a duration's days: no job runs for 27 years."""

_FIGURES: Final = frozenset("0123456789.-–")
_FLOAT: Final = _FIGURES | set("e+")
_ALPHABETS: Final = {
    ValueKind.INTEGER: _FIGURES,
    ValueKind.NUMBER: _FLOAT,
    ValueKind.FRACTION: _FLOAT | {"/"},
    ValueKind.SECONDS: _FIGURES | {":"},
    ValueKind.MOMENT: _FIGURES | set(": "),
    ValueKind.MIB: _FIGURES | set("kmgt"),
}
"""All characters that cells of each kind can have in columns without words of their own."""


def none(rows: Sequence[Any]) -> list[bool]:
    return [False] * len(rows)


def negated(mask: Mask) -> Mask:
    return lambda rows, context: list(map(not_, mask(rows, context)))


def any_of(masks: Iterable[Mask]) -> Mask:
    """Return the mask of rows that pass at least one of the masks."""
    first, *others = masks
    if not others:
        return first

    def either(rows: Sequence[Any], context: Context) -> list[bool]:
        passing = first(rows, context)
        for mask in others:
            more = mask(rows, context)
            # Most columns have no match for a word: skip the copy of a hundred thousand values.
            if any(more):
                passing = list(map(or_, passing, more))
        return passing

    return either


def all_of(masks: Iterable[Mask]) -> Mask:
    """Return the mask of rows that pass all masks."""
    every = list(masks)

    def passes_all(rows: Sequence[Any], context: Context) -> list[bool]:
        passing = [True] * len(rows)
        for mask in every:
            passing = list(map(and_, passing, mask(rows, context)))
        return passing

    return passes_all


def fact_is(column: Column, test: Callable[[Any, Context], bool]) -> Mask:
    """Return the mask of rows whose fact in this column passes the test."""
    return lambda rows, context: map_unique(lambda fact: test(fact, context), column.facts(rows, context))


def containing(column: Column, word: str) -> Mask:
    """Return the mask of rows whose cell of this column contains the word, ignoring case."""
    wanted = word.casefold()
    if not can_hold(column, wanted):
        return lambda rows, _: none(rows)
    if column.words is not None:
        return lambda rows, context: _text_mask(column, wanted, rows, context)

    def contains(rows: Sequence[Any], context: Context) -> list[bool]:
        facts = column.facts(rows, context)
        # Where most facts differ, testing each costs less than collecting the distinct ones.
        if column.kind is ValueKind.TEXT and hardly_repeats(facts):
            return _in_texts(wanted, facts)
        if column.kind is ValueKind.SECONDS and hardly_repeats(facts):
            return [wanted in fact_text(ValueKind.SECONDS, fact, context) for fact in facts]
        return map_unique(lambda fact: wanted in searched(column, fact, context), facts)

    return contains


def can_hold(column: Column, wanted: str) -> bool:
    """Return whether cells of this column can contain the text, by the characters that they are written with."""
    alphabet = _ALPHABETS.get(column.kind)
    if column.words is not None or alphabet is None:
        return True
    # A job number of six digits is no duration: the column is not written out for it.
    too_long = column.kind is ValueKind.SECONDS and wanted.isdigit() and len(wanted) > MOST_DAYS
    return alphabet.issuperset(wanted) and not too_long


def _text_mask(column: Column, wanted: str, rows: Sequence[Any], context: Context) -> list[bool]:
    """Return the mask for a column whose cell shows more than its fact."""

    def contains(row: object) -> bool:
        (text,) = column.texts((row,), context)
        return wanted in text.casefold() or (
            column.kind is ValueKind.TEXT and wanted in f"{column.fact(row, context)}".casefold()
        )

    # Without the list of what the words depend on every row has to be written out.
    if not column.words_from:
        return list(map(contains, rows))
    keys = _keys(rows, column.words_from)
    # One row stands for all with the same key: the last one, which is as good as any.
    passing = {key for key, row in dict(zip(keys, rows, strict=True)).items() if contains(row)}
    return [key in passing for key in keys] if passing else none(rows)


def _keys(rows: Sequence[Any], fields: Sequence[str]) -> list[Any]:
    """Return one key per row: rows with equal fields have equal keys. Fields without a value in any row are
    left out."""
    columns = [values(rows, field) for field in fields]
    first, *others = [column for column in columns if column.count(None) < len(rows)] or columns[:1]
    return list(zip(first, *others, strict=True)) if others else first


def searched(column: Column, fact: object, context: Context) -> str:
    """Return the text to search in: the cell as shown, and for a text with escaped characters also the original."""
    shown = fact_text(column.kind, fact, context)
    text = f"{shown}\n{fact}" if isinstance(fact, str) and fact != shown else shown
    return text.casefold()


def _in_texts(wanted: str, texts: list[str | None]) -> list[bool]:
    passing = [text is not None and wanted in text.casefold() for text in texts]
    for place, text in enumerate(texts):
        # Only a text that is shown otherwise than it is may hold the word in its shown form, such as a written escape.
        if text is not None and not passing[place] and not (text.isascii() and text.isprintable()):
            passing[place] = wanted in harmless(text).casefold()
    return passing
