from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cockpit.model.text import escaped, first_unseen, is_visible, is_whole, visible, whole
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


def test_an_escape_has_as_many_digits_as_its_character_needs() -> None:
    assert [escaped(chr(code)) for code in (0xFF, 0x100, 0xFFFF, 0x10000)] == [
        "\\xff",
        "\\u0100",
        "\\uffff",
        "\\U00010000",
    ]


def test_text_up_to_the_limit_is_whole_and_longer_text_has_the_limit_with_its_ellipsis() -> None:
    assert visible("x" * 60) == "x" * 60
    assert visible("x" * 61) == "x" * 59 + "…"
    assert visible("abcdef", limit=3) == "ab…"


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0),
        ("007", 7),
        ("9" * 18, 10**18 - 1),
        ("9" * 19, None),
        ("", None),
        ("-1", None),
        ("1.", None),
        ("٣", None),
    ],
)
def test_a_whole_number_is_ascii_digits_that_fit_into_64_bits(text: str, number: int | None) -> None:
    assert whole(text) == number
    assert is_whole(text) is (number is not None)
