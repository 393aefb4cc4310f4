"""Cells of a stacked bar in proportion to what they stand for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cockpit.present.bars import apportioned, bar
from cockpit.present.spans import line_width

AMOUNTS = st.lists(st.floats(0, 1e9), min_size=1, max_size=12)


@pytest.mark.req("UI-07")
@given(AMOUNTS, st.integers(0, 200))
def test_cells_are_in_proportion_and_a_larger_amount_never_has_fewer(amounts: list[float], cells: int) -> None:
    counts = apportioned(amounts, cells)
    total = sum(amounts)
    assert sum(counts) == (cells if total else 0)
    pairs = sorted(zip(amounts, counts, strict=True))
    assert [count for _, count in pairs] == sorted(counts)
    if total:
        assert all(abs(count - amount / total * cells) < 1.001 for amount, count in pairs)


@given(AMOUNTS, st.integers(0, 200))
def test_none_is_without_a_cell_where_each_may_have_one(amounts: list[float], cells: int) -> None:
    counts = apportioned(amounts, cells, least=1)
    some = [count for amount, count in zip(amounts, counts, strict=True) if amount > 0]
    assert sum(counts) == (cells if some else 0)
    assert len(some) > cells or all(some)


@pytest.mark.parametrize(
    ("amounts", "cells", "counts"),
    [([83, 500, 150], 7, [1, 5, 1]), ([0.4, 0.6, 9], 10, [0, 1, 9]), ([1, 1], 3, [2, 1]), ([0, 0], 5, [0, 0])],
)
def test_cells_left_by_rounding_go_to_the_largest_remainders(
    amounts: list[float], cells: int, counts: list[int]
) -> None:
    assert apportioned(amounts, cells) == counts


@pytest.mark.req("UI-07")
@given(st.floats(0, 1), st.integers(-3, 40))
def test_a_bar_fills_its_columns_and_is_empty_without_any(part: float, columns: int) -> None:
    assert line_width(bar(part, columns, "running")) == max(columns, 0)
