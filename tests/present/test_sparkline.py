"""A chart in one line shows each stretch as long as it was."""

from __future__ import annotations

import pytest

from cockpit.present.bars import sparkline


@pytest.mark.req("JT-48")
@pytest.mark.parametrize(
    ("parts", "columns", "chart"),
    [
        ([(1, 0), (1, 50), (2, 100)], 4, "▁▅██"),
        ([(1, 0), (1, 100)], 1, "▅"),
        ([(10, 100), (5, None), (5, 1)], 4, "██ ▂"),
        ([(1, 300)], 3, "███"),
        ([], 3, ""),
        ([(3, 100)], 0, ""),
    ],
)
def test_a_chart(parts: list[tuple[float, float | None]], columns: int, chart: str) -> None:
    assert sparkline(parts, columns, most=100) == chart
