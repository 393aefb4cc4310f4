"""Searched text in a line."""

from __future__ import annotations

import pytest

from cockpit.present.spans import Span, line, marked, plain


@pytest.mark.req("UI-22")
def test_every_occurrence_of_a_searched_text_has_its_role_and_no_text_is_lost() -> None:
    given = line(Span("a Fault and a fault", "muted"), Span("no"))
    found = marked(given, "fault", "accent")
    assert plain(found) == plain(given)
    assert [span.text for span in found if span.role == "accent"] == ["Fault", "fault"]
    assert {span.role for span in found if span.text.strip() in {"a", "and a"}} == {"muted"}
    assert plain(marked(given, "nowhere", "accent")) == plain(given)
