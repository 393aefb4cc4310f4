"""What a few typed letters find."""

from __future__ import annotations

import pytest

from cockpit.present.fuzzy import fuzzy_match, highlighted
from cockpit.present.spans import plain


def best(query: str, *names: str) -> list[str]:
    """The names that fit, the best first."""
    scored = [(match.score, name) for name in names if (match := fuzzy_match(query, name)) is not None]
    return [name for _, name in sorted(scored, key=lambda each: -each[0])]


@pytest.mark.req("UI-30")
def test_a_name_that_begins_with_the_letters_comes_before_words_and_insides() -> None:
    assert best("hold", "threshold", "end hold", "hold", "nodes") == ["hold", "end hold", "threshold"]


@pytest.mark.req("UI-30")
def test_words_match_in_any_order_and_all_of_them_must() -> None:
    assert best("filt sav", "save filter", "saved", "filter") == ["save filter"]
    assert best("", "a", "b") == ["a", "b"]


@pytest.mark.req("UI-30")
def test_scattered_letters_must_begin_at_a_word() -> None:
    assert best("tlim", "time limit", "cattle im") == ["time limit"]
    assert best("tl", "cattle", "time limit") == ["cattle", "time limit"]
    assert fuzzy_match("xyz", "time limit") is None


@pytest.mark.req("UI-30")
def test_what_was_typed_is_marked_and_the_text_stays_whole() -> None:
    match = fuzzy_match("tl", "time limit")
    assert match is not None
    spans = highlighted("time limit", match.places, "text", "accent")
    assert [span.text for span in spans if span.role == "accent"] == ["t", "l"]
    assert plain(spans) == "time limit"
    # A letter that folds to two keeps every place where it is.
    odd = fuzzy_match("lim", "straße lim")
    assert odd is not None
    assert sorted(odd.places) == [7, 8, 9]
