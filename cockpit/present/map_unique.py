"""Columns repeat themselves: ten thousand jobs have few users, limits and reasons. What is made of a value is made once
for all that are equal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

Made = TypeVar("Made")

SAMPLE: Final = 256
"""Values from which it is told whether a column repeats itself."""
FEW: Final = 32
"""So many are quickly made one by one."""


def hardly_repeats(values: Sequence[Any]) -> bool:
    """Whether most values differ, or cannot be told apart by their hash."""
    try:
        return len(set(values[:SAMPLE])) > SAMPLE // 2
    except TypeError:
        return True


def map_unique(make: Callable[[Any], Made], values: Sequence[Any]) -> list[Made]:
    """`make` of each value; equal ones get the same. The order of calls is not the values'."""
    if len(values) <= FEW or hardly_repeats(values):
        return list(map(make, values))
    try:
        made = {value: make(value) for value in set(values)}
    except TypeError:
        return list(map(make, values))
    return list(map(made.__getitem__, values))
