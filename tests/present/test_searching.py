from __future__ import annotations

from datetime import UTC

import pytest

from cockpit.present.columns import NOTHING, Context
from cockpit.present.searching import SearchMemory
from cockpit.present.tables.jobs import JOBS
from tests.doubles.samples import NOW, queued_row

CONTEXT = Context(now=NOW, zone=UTC)


@pytest.mark.req("PF-16", "UI-22")
def test_what_is_remembered_of_a_plain_row_takes_a_byte_a_letter() -> None:
    """Two with a single dash of an empty cell: a hundred thousand rows would be twice as large."""
    (text,) = SearchMemory(JOBS).texts([queued_row(1)], CONTEXT)
    assert "job-1" in text
    assert NOTHING not in text
    assert text.isascii()
