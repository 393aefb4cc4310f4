"""Which columns fit: also into nothing."""

from __future__ import annotations

import pytest

from cockpit.present.cells import jobs, nodes
from cockpit.present.layout import fitting


@pytest.mark.req("UI-24")
@pytest.mark.parametrize("total", [-10, -1, 0, 1, 5])
def test_a_table_without_any_room_has_columns_or_none_but_no_defect(total: int) -> None:
    assert nodes.laid_out(total) is not None
    assert jobs.laid_out(total, 4, frozenset()) is not None
    assert fitting([], total) == []
    assert fitting(nodes.COLUMNS, -1) == []
