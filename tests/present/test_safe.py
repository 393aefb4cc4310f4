from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cockpit.present.safe import LogText, safe, safe_lines
from tests.present.corpus import HOSTILE, PLAIN, is_harmless


@pytest.mark.req("TR-05")
@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
def test_control_characters_become_visible(text: str) -> None:
    assert is_harmless(safe(text))
    assert "\\" in safe(text)


@pytest.mark.parametrize("text", PLAIN, ids=ascii)
def test_other_characters_are_unchanged(text: str) -> None:
    assert safe(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[1m", "\\x1b[1m"),
        ("a\u202eb", "a\\u202eb"),
        ("a\nb\tc", "a\\nb\\tc"),
        ("\x9b", "\\x9b"),
        ("\U000e0041", "\\U000e0041"),
        ("a\u200db", "a\\u200db"),
        ("\ud800", "\\ud800"),
    ],
)
def test_escapes_are_written_as_in_python(text: str, shown: str) -> None:
    assert safe(text) == shown


@given(st.text())
def test_any_text_is_escaped_once(text: str) -> None:
    once = safe(text)
    assert is_harmless(once)
    assert safe(once) == once


def test_lines_keep_newline_and_tab_and_lose_the_return_before_a_newline() -> None:
    assert safe_lines("a\tb\r\nc\rd\x1b\n") == "a\tb\nc\\rd\\x1b\n"


@given(st.binary(), st.lists(st.integers(0, 40)))
def test_a_log_reads_the_same_in_any_pieces(data: bytes, cuts: list[int]) -> None:
    whole, pieces = LogText(), LogText()
    expected = whole.feed(data) + whole.finish()
    shown, start = "", 0
    for cut in cuts:
        shown += pieces.feed(data[start : start + cut])
        start += cut
    assert shown + pieces.feed(data[start:]) + pieces.finish() == expected


def test_undecodable_bytes_of_a_log_are_written_out() -> None:
    log = LogText()
    assert log.feed(b"ok \xff \xe5\x89") + log.feed(b"\x8d\n") + log.finish() == "ok \\xff 前\n"
