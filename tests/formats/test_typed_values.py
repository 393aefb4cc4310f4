"""Priorities as people type them."""

from __future__ import annotations

import pytest

from cockpit.formats.typed_values import priority_text, read_priority
from cockpit.model.asking import SiteFactor, WantedPriority
from cockpit.model.spec import PriorityWord


@pytest.mark.req("JT-34")
@pytest.mark.parametrize(
    ("text", "wanted"),
    [("urgent", PriorityWord.URGENT), ("90000", 90000), ("+500", SiteFactor(500)), ("-40", SiteFactor(-40))],
)
def test_words_numbers_and_additions_are_read_and_written_back(text: str, wanted: WantedPriority) -> None:
    assert read_priority(text) == wanted
    assert priority_text(wanted) == text


@pytest.mark.parametrize("text", ["", "+", "-", "+-4", "4.5", "Urgent", "٤", "9" * 13])
def test_invalid_values_are_refused(text: str) -> None:
    assert read_priority(text) is None
