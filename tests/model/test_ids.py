"""Numbers of jobs and of an array's tasks, as people read them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cockpit.model.ids import index_ranges


@pytest.mark.req("JT-25")
@pytest.mark.parametrize(
    ("indices", "said"),
    [((), ""), ((7,), "7"), ((0, 1, 2, 5), "0-2,5"), ((1, 3, 5), "1,3,5"), ((0, 1, 3, 4, 9, 10, 11), "0-1,3-4,9-11")],
)
def test_neighbours_are_a_range(indices: tuple[int, ...], said: str) -> None:
    assert index_ranges(indices) == said


@pytest.mark.req("JT-25")
@given(st.sets(st.integers(0, 60)))
def test_ranges_name_each_index_once(indices: set[int]) -> None:
    named: list[int] = []
    for part in filter(None, index_ranges(sorted(indices)).split(",")):
        low, _, high = part.partition("-")
        named += range(int(low), int(high or low) + 1)
    assert named == sorted(indices)
