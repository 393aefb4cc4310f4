"""Functions that compute a value once for all equal inputs: ten thousand jobs have few different users, limits and
reasons."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

Made = TypeVar("Made")

SAMPLE: Final = 256
"""Number of values from which it is judged whether a column repeats its values."""
FEW: Final = 32
"""Number of values that are quickly computed one by one, without looking for repeated ones."""


def hardly_repeats(values: Sequence[Any]) -> bool:
    """Return whether most values differ, or cannot be compared by their hash."""
    try:
        return len(set(values[:SAMPLE])) > SAMPLE // 2
    except TypeError:
        return True


def map_unique(make: Callable[[Any], Made], values: Sequence[Any]) -> list[Made]:
    """Return `make` of each value, computed once for equal values. The order of the calls is not that of the values."""
    if len(values) <= FEW or hardly_repeats(values):
        return list(map(make, values))
    # The sample could be hashed; a later value may still be of a type that cannot.
    try:
        made = {value: make(value) for value in set(values)}
    except TypeError:
        return list(map(make, values))
    return list(map(made.__getitem__, values))
