from __future__ import annotations

from datetime import UTC

import pytest

from cockpit.present.columns import NOTHING, Context
from cockpit.present.searching import SearchMemory
from cockpit.present.tables.jobs import JOBS
from tests.doubles.samples import NOW, queued_row

CONTEXT = Context(now=NOW, zone=UTC)


@pytest.mark.req("PF-16", "UI-22")
def test_the_search_cache_of_an_ascii_row_uses_one_byte_per_letter() -> None:
    """Two with a single dash of an empty cell: a hundred thousand rows would be twice as large."""
    (text,) = SearchMemory(JOBS).texts([queued_row(1)], CONTEXT)
    assert "job-1" in text
    assert NOTHING not in text
    assert text.isascii()
