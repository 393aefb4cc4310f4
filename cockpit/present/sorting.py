"""Rows in the order of named columns: `cards,-submitted_at` (minus: largest first). Cells without a fact come last."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeVar

from cockpit.present.columns import Column, Context, Fraction, Kind

Row = TypeVar("Row")
SAMPLE: Final = 256
"""Values from which it is told whether a column repeats itself."""

_PLAIN: Final = frozenset({Kind.INTEGER, Kind.NUMBER, Kind.SECONDS, Kind.MIB, Kind.MOMENT})
_FRACTIONS: Final = frozenset({Kind.FRACTION, Kind.MEMORY_FRACTION})
_MIRRORED: Final = bytes(range(255, -1, -1))
_LAST: Final = b"\xff"


def sorted_rows(rows: Sequence[Row], keys: Sequence[tuple[Column, bool]], context: Context) -> list[Row]:
    """`keys` are columns with whether they descend, the most important first. Stable."""
    ordered = list(rows)
    for column, descending in reversed(keys):
        values = comparables(column, column.facts(ordered, context))
        ordered = [ordered[place] for place in _sorted_places(values, descending=descending)]
    return ordered


def _sorted_places(values: Sequence[Any], *, descending: bool) -> list[int]:
    """Places of the values in their order. Values that repeat are sorted once."""
    if len(set(values[:SAMPLE])) > SAMPLE // 4:
        return _sorted_one_by_one(values, descending=descending)
    buckets: dict[Any, list[int]] = {value: [] for value in set(values)}
    for place, value in enumerate(values):
        buckets[value].append(place)
    absent = buckets.pop(None, [])
    return [place for value in sorted(buckets, reverse=descending) for place in buckets[value]] + absent


def _sorted_one_by_one(values: Sequence[Any], *, descending: bool) -> list[int]:
    if None not in values:
        return sorted(range(len(values)), key=values.__getitem__, reverse=descending)
    present = [place for place, value in enumerate(values) if value is not None]
    absent = [place for place, value in enumerate(values) if value is None]
    return sorted(present, key=values.__getitem__, reverse=descending) + absent


def comparables(column: Column, facts: Sequence[Any]) -> list[Any]:
    """What is compared for each fact of a column; None where there is nothing."""
    if column.kind in _PLAIN:
        return list(facts)
    if column.kind is Kind.TEXT:
        return [None if fact is None else fact.casefold() for fact in facts]
    if column.kind in _FRACTIONS:
        return [fact.used if isinstance(fact, Fraction) else fact for fact in facts]
    return [None if fact is None else str(fact).casefold() for fact in facts]


def key_parts(column: Column, facts: Sequence[Any], *, descending: bool) -> tuple[list[bool], list[Any]]:
    """Two parts of each row's key, which compare upward in the order of `sorted_rows` whichever way that goes: whether
    there is no fact, and what to compare."""
    values = comparables(column, facts)
    absent = [value is None for value in values]
    if any(absent):
        values = [0 if value is None else value for value in values]
    return absent, list(map(_mirrored, values)) if descending else values


def _mirrored(value: Any) -> Any:  # noqa: ANN401 - whatever compares
    """What compares the other way round. UTF-8 compares as its characters do."""
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass").translate(_MIRRORED) + _LAST
    return -value
