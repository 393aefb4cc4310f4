"""Which columns fit: also into nothing."""

from __future__ import annotations

import pytest

from cockpit.present import job_cells, node_cells
from cockpit.present.layout import fitting


@pytest.mark.req("UI-24")
@pytest.mark.parametrize("total", [-10, -1, 0, 1, 5])
def test_a_table_without_any_room_has_columns_or_none_but_no_defect(total: int) -> None:
    assert node_cells.laid_out(total) is not None
    assert job_cells.laid_out(total, 4, frozenset()) is not None
    assert fitting([], total) == []
    assert fitting(node_cells.COLUMNS, -1) == []
