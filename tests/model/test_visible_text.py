from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cockpit.model.text import first_unseen, is_visible, visible
from tests.hostile import SEEN, UNSEEN

pytestmark = pytest.mark.req("TR-05")


@pytest.mark.parametrize("text", UNSEEN.values(), ids=UNSEEN)
def test_unseen_characters_are_escaped(text: str) -> None:
    unseen = first_unseen(text)
    assert unseen is not None
    assert unseen not in visible(text)
    assert "\\" in visible(text)


@pytest.mark.parametrize("text", SEEN.values(), ids=SEEN)
def test_other_text_is_shown_unchanged(text: str) -> None:
    assert visible(text) == text


@given(st.text())
def test_what_is_shown_is_one_visible_line(text: str) -> None:
    assert is_visible(visible(text))
    assert visible(text).isprintable()


@given(st.text(min_size=61))
def test_long_text_is_cut_before_it_is_escaped(text: str) -> None:
    shown = visible(text)
    assert len(shown) <= 60 * len("\\U0010ffff")
    assert shown.endswith("…")


def test_escapes_read_as_python_writes_them() -> None:
    assert visible("\x1b\n\u202e\U000e0041") == "\\x1b\\n\\u202e\\U000e0041"
