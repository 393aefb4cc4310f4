"""Where the lines of a log begin depends on its bytes alone, and not on what is in memory or how one came there."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cockpit.present.log_blocks import MOST_BLOCKS, MOST_STARTS, LogBlocks, NotLoaded

pytestmark = pytest.mark.req("UI-14")
PIECES = st.sampled_from(
    [b"\n", b"\n\n", b"a", b"bcd", b"\0", b"\xff", b"\r", "é".encode(), "漢".encode(), "😀".encode()]
)
LOGS = st.lists(PIECES, max_size=40).map(b"".join)


class Reader:
    """Reads blocks as they are needed, from a log that may have a gap."""

    def __init__(self, log: bytes, width: int, most: int = 6, gap: tuple[int, int] = (0, 0)) -> None:
        self.log, self.gap = log, gap
        self.blocks = LogBlocks(width, most)
        self.blocks.grow(len(log))
        if gap[0] < gap[1]:
            self.blocks.skip(*gap)
        self.loads = 0

    def ask(self, name: str, *offsets: int):
        while True:
            try:
                return getattr(self.blocks, name)(*offsets)
            except NotLoaded as missing:
                begin = missing.block * self.blocks.width
                self.blocks.add(begin, self.log[begin : begin + self.blocks.width])
                self.loads += 1
                assert self.loads < 10_000

    def forward(self) -> list[int]:
        starts = [0]
        while (at := self.ask("next_start", starts[-1])) < len(self.log):
            assert at > starts[-1]
            starts.append(at)
        return starts

    def backward(self) -> list[int]:
        starts, at = list[int](), len(self.log)
        while at > 0:
            before = self.ask("previous_start", at)
            assert before < at
            starts.append(at := before)
        return starts[::-1]


@given(LOGS, st.integers(4, 9))
def test_the_lines_are_the_same_forwards_backwards_and_from_anywhere(log: bytes, width: int) -> None:
    if not log:
        return
    reader = Reader(log, width)
    starts = reader.forward()
    assert starts == reader.backward()
    assert {at + 1 for at, byte in enumerate(log[:-1]) if byte == ord("\n")} <= set(starts), "each newline ends a line"
    for at in range(len(log)):
        assert reader.ask("start_at", at) == max(each for each in starts if each <= at)
    ends = [*starts[1:], len(log)]
    assert all(end - begin < 2 * width + 4 for begin, end in zip(starts, ends, strict=True)), "no line is long"
    assert b"".join(reader.ask("bytes_between", *each) for each in zip(starts, ends, strict=True)) == log


@given(st.lists(st.sampled_from(["a", "é", "漢", "😀"]), min_size=1, max_size=40), st.integers(4, 9))
def test_a_long_line_is_cut_between_characters(text: list[str], width: int) -> None:
    log = "".join(text).encode()
    starts = Reader(log, width).forward()
    for begin, end in zip(starts, [*starts[1:], len(log)], strict=True):
        log[begin:end].decode()  # no character is cut


@given(LOGS, LOGS, st.integers(4, 9))
def test_a_log_that_grows_has_the_lines_of_the_whole(first: bytes, more: bytes, width: int) -> None:
    reader = Reader(first, width)
    if first:
        reader.forward()
    for byte in more:
        reader.blocks.extend(bytes([byte]))
    reader.log = first + more
    if reader.log:
        assert reader.blocks.size == len(reader.log)
        assert reader.forward() == Reader(reader.log, width).forward() == reader.backward()


@given(LOGS, st.integers(4, 9), st.data())
def test_what_is_not_stored_is_passed_over(log: bytes, width: int, data: st.DataObject) -> None:
    begin = data.draw(st.integers(0, len(log)))
    end = data.draw(st.integers(begin, len(log)))
    if begin == end or end == len(log):
        return
    # In the place of what is not stored there is something else, which is never shown.
    reader = Reader(log[:begin] + b"?" * (end - begin) + log[end:], width, gap=(begin, end))
    starts = reader.forward()
    assert end in starts, "a line begins behind it"
    assert not any(begin <= each < end for each in starts if each)
    if begin:
        assert starts == reader.backward()
    shown = b"".join(reader.ask("bytes_between", *each) for each in zip(starts, [*starts[1:], len(log)], strict=True))
    assert shown == log[:begin] + log[end:]


def test_a_large_part_that_is_not_stored_is_passed_over_at_once() -> None:
    far = 1 << 40
    blocks = LogBlocks()
    blocks.grow(far + 10)
    blocks.skip(8, far)
    first = far // blocks.width
    blocks.add(0, b"head\nto " + b"\n" * (blocks.width - 8))
    blocks.add(first * blocks.width, b"\n" * (far - first * blocks.width) + b"tail\nlast\n")
    assert blocks.next_start(5) == far
    assert blocks.previous_start(far) == 5
    assert blocks.bytes_between(5, far) == b"to "


def test_the_memory_for_empty_lines_and_for_a_long_line_is_bounded() -> None:
    for byte in (b"\n", b"x"):
        blocks = LogBlocks()
        blocks.grow(16 << 20)
        at = 0
        while at < blocks.size:
            try:
                blocks.next_start(min(blocks.size, at + blocks.width - 1))
                at += blocks.width
            except NotLoaded as missing:
                blocks.add(missing.block * blocks.width, byte * blocks.width)
        assert len(blocks._blocks) <= MOST_BLOCKS
        assert len(blocks._starts) <= MOST_STARTS
