"""Sorting of rows by named columns: `cards,-submitted_at` (minus: largest first). Cells without a fact come last."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any, Final, TypeVar

from cockpit.present.columns import FRACTIONS, Column, Context, Fraction, ValueKind
from cockpit.present.map_unique import SAMPLE

Row = TypeVar("Row")
Item = TypeVar("Item")
SortKey = tuple[Column, bool]
"""A column and whether it descends; the most important key comes first."""
_PLAIN: Final = frozenset({ValueKind.INTEGER, ValueKind.NUMBER, ValueKind.SECONDS, ValueKind.MIB, ValueKind.MOMENT})
_MIRRORED: Final = bytes(range(255, -1, -1))
_LAST: Final = b"\xff"


def sorted_rows(rows: Sequence[Row], keys: Sequence[SortKey], context: Context) -> list[Row]:
    """Return the rows in the order of the keys. The sort is stable."""
    return [rows[place] for place in sorted_places(rows, keys, context)]


def sorted_places(rows: Sequence[Any], keys: Sequence[SortKey], context: Context) -> list[int]:
    """Return the places of the rows in sorted order, as indices into `rows`."""
    places = list(range(len(rows)))
    # Each sort is stable, so sorting by the most important key last gives the order of all keys.
    for number, (column, descending) in enumerate(reversed(keys)):
        values = comparables(column, column.facts(rows, context))
        places = arranged(places, [values[place] for place in places] if number else values, descending=descending)
    return places


def arranged(items: Sequence[Item], values: Sequence[Any], *, descending: bool) -> list[Item]:
    """Return the items in the order of their values (`comparables`), one value per item. The sort is stable; items
    without a value come last."""
    # A column of states has ten values: sorting these and collecting the rows is faster than comparing all rows.
    often = len(set(values[:SAMPLE])) <= SAMPLE // 4
    return (_by_bucket if often else _one_by_one)(items, values, descending)


def _by_bucket(items: Sequence[Item], values: Sequence[Any], descending: bool) -> list[Item]:
    """Return the items sorted by bucket: each distinct value is compared once, for columns with repeated values."""
    buckets: dict[Any, list[Item]] = {value: [] for value in set(values)}
    put = {value: bucket.append for value, bucket in buckets.items()}
    # In the given order, so that equal values stay in it.
    for value, item in zip(values, items, strict=True):
        put[value](item)
    absent = buckets.pop(None, [])
    return [*chain.from_iterable(buckets[value] for value in sorted(buckets, reverse=descending)), *absent]


def _one_by_one(items: Sequence[Item], values: Sequence[Any], descending: bool) -> list[Item]:
    places: Sequence[int] = range(len(items))
    absent: list[Item] = []
    if None in values:
        # None compares with nothing; those rows come last in both directions.
        places = [place for place in places if values[place] is not None]
        absent = [item for item, value in zip(items, values, strict=True) if value is None]
    return [*map(items.__getitem__, sorted(places, key=values.__getitem__, reverse=descending)), *absent]


def comparables(column: Column, facts: Sequence[Any]) -> list[Any]:
    """Return the value to compare for each fact of a column; None where there is no fact."""
    if column.kind in _PLAIN:
        return list(facts)
    if column.kind in FRACTIONS:
        # A fraction is sorted by what is used; filters compare the total.
        return [fact.used if isinstance(fact, Fraction) else fact for fact in facts]
    return [None if fact is None else str(fact).casefold() for fact in facts]


def key_parts(column: Column, facts: Sequence[Any], *, descending: bool) -> tuple[list[bool], list[Any]]:
    """Return two parts of each row's sort key: whether the fact is absent, and the value to compare. Ascending order of
    the keys is the order of `sorted_rows` in both directions."""
    values = comparables(column, facts)
    absent = [value is None for value in values]
    if any(absent):
        values = [0 if value is None else value for value in values]
    return absent, list(map(_mirrored, values)) if descending else values


def _mirrored(value: Any) -> Any:  # noqa: ANN401 - whatever compares
    """Return a value that compares in the opposite order. UTF-8 bytes compare in the order of their characters."""
    if isinstance(value, str):
        # Without the last byte a text would come before the longer texts that begin with it, in this direction too.
        return value.encode("utf-8", "surrogatepass").translate(_MIRRORED) + _LAST
    return -value
