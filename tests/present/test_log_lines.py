from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.style import Style

from cockpit.present.log_lines import SafeColours, line_of_bytes, log_lines
from cockpit.present.safe import is_harmful
from cockpit.present.spans import Line, Span
from tests.hostile import HOSTILE


def lines_of(data: bytes) -> list[Line]:
    """Each line, read with what is before it."""
    lines, at = [], 0
    for each in data.splitlines(keepends=True) if b"\r" not in data else data.split(b"\n"):
        begin = data.index(each, at)
        lines.append(line_of_bytes(each, data[:begin]))
        at = begin + len(each)
    return lines


BAR = "".join(f"\rEpoch 1: {share:3}%|{'█' * (share // 10)}" for share in range(101))


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", []),
        ("one\ntwo\n", ["one", "two"]),
        ("one\r\ntwo", ["one", "two"]),
        ("10%\r20%\r30%\ndone", ["30%", "done"]),
        ("10%\r20%\r", ["20%"]),
        ("a\tb\tlast", ["a       b       last"]),
        ("good\rEVIL\x1b[31m!", ["EVIL!"]),
        ("\x1b]0;title\x07 \x1b[2J\x1b[1;1H", ["\\x1b]0;title\\x07 \\x1b[2J\\x1b[1;1H"]),
    ],
)
def test_a_log_reads_as_on_a_terminal(text: str, lines: list[str]) -> None:
    assert log_lines(text) == lines


@pytest.mark.req("UI-03")
def test_a_progress_bar_shows_its_last_state() -> None:
    (shown,) = lines_of(BAR.encode())
    assert "".join(span.text for span in shown) == "Epoch 1: 100%|██████████"


@pytest.mark.req("TR-05")
@pytest.mark.parametrize("text", HOSTILE.values(), ids=list(HOSTILE))
def test_control_characters_of_a_log_are_escaped(text: str) -> None:
    data = text.encode("utf-8", "surrogatepass") + b"\xff\x9b\n"
    shown = "".join(span.text for line in lines_of(data) for span in line)
    assert not any(is_harmful(char) for char in shown if char != "\u200d")


@pytest.mark.req("UI-14")
@pytest.mark.parametrize(
    ("data", "line"),
    [
        (b"a \x1b[1;31mred\x1b[0m b", (Span("a "), Span("red", "sgr:bold red"), Span(" b"))),
        (b"\x1b[31ma\n\x1b[4mb\n", (Span("b", "sgr:underline red"),)),
        (b"\x1b[38;5;208ma\x1b[39mb", (Span("a", "sgr:color(208)"), Span("b"))),
        (b"\x1b[48;2;1;2;255ma", (Span("a", "sgr:on #0102ff"),)),
        (b"\x1b[38:2::1:2:3ma\x1b[4:3mb", (Span("a", "sgr:#010203"), Span("b", "sgr:underline #010203"))),
        (b"\x1b[97;100;2;3;7;9ma", (Span("a", "sgr:dim italic reverse strike bright_white on bright_black"),)),
        (b"\x1b[1;2;3;4;7;9m\x1b[22;23;24;27;29ma", (Span("a"),)),
        (b"\x1b[8;5mhidden, blinking", (Span("hidden, blinking"),)),
        (b"\x1b[32m10%\r\x1b[1m20%", (Span("20%", "sgr:bold green"),)),
        (b"\x1b[31ma\tb", (Span("a       b", "sgr:red"),)),
        (b"a\x1b[31m\tb", (Span("a"), Span("       b", "sgr:red"))),
        (b"\x1b[38;5ma\x1b[38;9mb\x1b[" + b"9" * 400 + b"mc", (Span("a"), Span("b"), Span("c"))),
    ],
)
def test_colours_are_shown_as_colours(data: bytes, line: Line) -> None:
    lines = lines_of(data)
    assert next(each for each in reversed(lines) if each) == line
    assert all(Style.parse(span.role.removeprefix("sgr:")) for each in lines for span in each if span.role != "text")


@pytest.mark.parametrize(
    ("on", "off"), [(1, 22), (2, 22), (3, 23), (4, 21), (4, 24), (7, 27), (9, 29), (31, 39), (44, 49), (1, 0)]
)
def test_text_attributes_of_a_log_are_switched_on_and_off(on: int, off: int) -> None:
    (shown,) = lines_of(f"a\x1b[{on}mb\x1b[{off}mc\n".encode())
    roles = {char: span.role for span in shown for char in span.text}
    assert roles["a"] == roles["c"] != roles["b"]


@pytest.mark.req("UI-14", "TR-05")
@given(
    st.lists(st.sampled_from([b"a", b"\n", b"\x1b[31m", b"\x1b[2J", b"\x9b", "é".encode(), b"\r"]), max_size=30),
    st.data(),
)
def test_what_a_pager_gets_has_colours_and_nothing_else_that_acts(pieces_of: list[bytes], data: st.DataObject) -> None:
    log = b"".join(pieces_of)
    cut = data.draw(st.integers(0, len(log)))
    text = SafeColours()
    shown = text.feed(log[:cut]) + text.feed(log[cut:]) + text.finish()
    whole = SafeColours()
    assert shown == whole.feed(log) + whole.finish()
    assert shown.count("\x1b[31m") == shown.count("\x1b") == log.count(b"\x1b[31m")
    assert not set(shown.replace("\x1b[31m", "")) & set(map(chr, [*range(10), *range(11, 32), *range(0x7F, 0xA0)]))


@pytest.mark.req("UI-14")
def test_a_line_without_end_is_given_to_a_pager_in_parts() -> None:
    text = SafeColours()
    assert sum(len(text.feed(b"x" * (1 << 19))) for _ in range(8)) == 1 << 22
