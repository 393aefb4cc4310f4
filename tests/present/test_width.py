from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cockpit.present.safe import safe
from cockpit.present.spans import MUTED, Span, hung, hung_within, line, line_width, plain, wrapped
from cockpit.present.width import cut, pad, width


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("abc", 3),
        ("前処理", 6),
        ("cafe\u0301", 4),
        ("👩\u200d🔬", 2),
        ("🇩🇪🇫🇷", 4),
        ("👍🏽", 2),
        ("❤\ufe0f", 2),
        ("ｶﾅ", 2),
        ("", 0),
    ],
)
@pytest.mark.req("UI-24")
def test_width_in_columns(text: str, columns: int) -> None:
    assert width(text) == columns


@pytest.mark.parametrize(
    ("text", "columns", "shown"),
    [
        ("abcdef", 4, "abc…"),
        ("abcd", 4, "abcd"),
        ("前処理", 4, "前…"),
        ("前処理", 5, "前処…"),
        ("cafe\u0301s", 4, "caf…"),
        ("ab", 0, ""),
        ("ab", 1, "…"),
    ],
)
def test_cut_never_splits_what_is_drawn_as_one(text: str, columns: int, shown: str) -> None:
    assert cut(text, columns) == shown


@example("\ufe0f\u200d🇩", 3)  # a joiner with nothing before it
@example("\u200d👩\u200d🔬", 4)
@given(st.text(st.sampled_from("ab前é\u0301👩\u200d🔬🇩🇪❤\ufe0f")), st.integers(0, 12))
def test_cut_and_padded_text_fills_its_column_exactly(text: str, columns: int) -> None:
    shown = cut(safe(text), columns)
    assert width(shown) <= columns
    assert width(pad(shown, columns)) == columns
    assert width(pad(shown, columns, right=True)) == columns


@given(st.lists(st.text(st.sampled_from("ab前é\u0301👩\u200d🔬🇩🇪❤\ufe0f"))), st.integers(2, 12))
def test_a_wrapped_line_keeps_its_text_in_as_many_lines_as_needed(texts: list[str], columns: int) -> None:
    given_line = line(*map(safe, texts))
    lines = wrapped(given_line, columns)
    assert "".join(span.text for each in lines for span in each) == "".join(span.text for span in given_line)
    assert all(line_width(each) <= columns for each in lines)


def test_a_sentence_continues_below_the_start_of_its_cell() -> None:
    fact = line(Span("  kind      ", MUTED), "a session, which ", Span("lasts", MUTED), " until it ends")
    assert [plain(each) for each in hung(fact, 30)] == [
        "  kind      a session, which",
        "            lasts until it",
        "            ends",
    ]
    assert Span("lasts", MUTED) in hung(fact, 30)[1]
    assert hung(fact, 60) == [fact]
    assert [plain(each) for each in hung(line("训练 训练 abcdefgh"), 5)] == ["训练", "训练", "abcde", "fgh"]
    assert [plain(each) for each in hung(line("a word   "), 7)] == ["a word"], "no empty row for the blanks"
    assert hung(line("     "), 3) == [()]


def test_overflowing_text_continues_below_without_moving_other_cells() -> None:
    lines = [line("one two three"), line("four five six"), line("x")]
    assert [plain(each) for each in hung_within(lines, 8, 4)] == ["one two", "three", "four five six", "x"]
