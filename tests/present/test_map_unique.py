"""What is made once of equal values is what is made of each."""

from __future__ import annotations

from collections import Counter

import pytest

from cockpit.present.columns import Column, Context, ValueKind
from cockpit.present.map_unique import FEW, hardly_repeats, map_unique
from tests.doubles.samples import NOW

MANY = 10 * FEW


def test_equal_values_are_computed_once():
    calls: Counter[int] = Counter()

    def doubled(value: int) -> int:
        calls[value] += 1
        return 2 * value

    assert map_unique(doubled, [1, 2] * MANY) == [2, 4] * MANY
    assert calls == {1: 1, 2: 1}


@pytest.mark.parametrize("values", [[[1], [2]] * MANY, [*[1] * MANY, [2]], list(range(MANY)), [], [7]])
def test_whatever_the_values_are_the_result_is_of_each(values: list[object]):
    assert map_unique(str, values) == list(map(str, values))


def test_unhashable_values_are_treated_as_different():
    assert hardly_repeats([[]] * MANY)
    assert not hardly_repeats([None] * MANY)


def test_numbers_that_are_equal_and_not_alike_are_written_as_they_are():
    column = Column("n", "N", "a number", ValueKind.NUMBER, derive=lambda row, _: row)
    assert column.texts([1, 1.0] * MANY, Context(now=NOW)) == ["1", "1.0"] * MANY
