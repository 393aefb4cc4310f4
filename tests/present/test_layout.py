"""Which columns fit: also into nothing."""

from __future__ import annotations

import pytest

from cockpit.present.columns import laid_out
from cockpit.present.tables.jobs import JOBS
from cockpit.present.tables.nodes import NODES


@pytest.mark.req("UI-24")
@pytest.mark.parametrize("total", [-10, -1, 0, 1, 5])
def test_a_table_without_width_is_laid_out_without_error(total: int) -> None:
    assert laid_out(NODES.screen, total) is not None
    assert laid_out(JOBS.screen, total) is not None
    assert laid_out([], total) == []
    assert laid_out(NODES.screen, -1) == []
