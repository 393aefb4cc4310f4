from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cockpit.present.log_lines import LogLines, log_lines
from cockpit.present.safe import is_harmful
from tests.hostile import HOSTILE

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
        ("good\rEVIL\x1b[31m", ["EVIL\\x1b[31m"]),
    ],
)
def test_a_log_reads_as_on_a_terminal(text: str, lines: list[str]) -> None:
    assert log_lines(text) == lines


@pytest.mark.req("UI-03")
def test_a_progress_bar_is_one_line_that_moves() -> None:
    log = LogLines()
    shown = [log.feed(piece.encode()) for piece in BAR.split("\r")[1:] for piece in ("\r", piece)]
    assert all(len(lines) == 1 for lines in shown)
    assert shown[-1] == ["Epoch 1: 100%|██████████"]
    assert len(log._open) < 30


@pytest.mark.req("TR-05")
@pytest.mark.parametrize("text", HOSTILE.values(), ids=list(HOSTILE))
def test_no_character_of_a_log_is_obeyed(text: str) -> None:
    data = text.encode("utf-8", "surrogatepass") + b"\xff\x9b\n"
    assert not any(is_harmful(char) for line in LogLines().feed(data) for char in line if char != "\u200d")


@given(st.text(alphabet="ab\r\n\té训"), st.data())
def test_pieces_make_the_same_lines_as_the_whole(text: str, data: st.DataObject) -> None:
    log, lines, rest = LogLines(), [""], text.encode()
    while rest:
        size = data.draw(st.integers(1, len(rest)))
        lines[-1:] = log.feed(rest[:size])
        rest = rest[size:]
    lines[-1:] = log.feed(b"")
    assert lines == LogLines().feed(text.encode())
