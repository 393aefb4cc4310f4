"""What tells a row from others is among its table's columns."""

from __future__ import annotations

import pytest

from cockpit.present.columns import TableView
from cockpit.present.tables.all import TABLES


@pytest.mark.parametrize("table", [each for each in TABLES.values() if each.identity], ids=lambda each: each.name)
def test_the_identity_of_a_row_consists_of_columns_of_its_table(table: TableView):
    assert set(table.identity) <= {column.id for column in table.columns}
