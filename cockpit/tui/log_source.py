"""One log that is read by windows, wherever its file is: the blocks in memory, more of it as it grows, and searches."""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec.structs import replace

from cockpit.backends.log_windows import load_blocks
from cockpit.model.asking import LogSearch, LogStream, was_emptied
from cockpit.model.ids import Millis
from cockpit.present.line_numbers import LineNumbers
from cockpit.present.log_blocks import BLOCK, LogBlocks
from cockpit.present.stream_marks import StreamMarks

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cockpit.backends.base import Backend
    from cockpit.model.asking import LogMatches, LogRequest

WINDOW_BLOCKS: Final = 2
"""Blocks that are read at once."""
FIRST_STEP: Final = 64 << 20
"""Bytes whose lines are counted at once on the way to a line."""
MOST_ARRIVALS: Final = 100_000
"""Most moments of arrival in memory; of older lines the time is forgotten."""


class Query(NamedTuple):
    """What is searched for."""

    text: str
    is_pattern: bool = False
    any_case: bool = True


class LogSource:
    """The log of one replica, stream and attempt of a job. Methods that read raise `CockpitError`."""

    def __init__(self, backend: Backend, request: LogRequest, known: Sequence[str] = ()) -> None:
        self.backend = backend
        self.request = request
        self.known = known
        """Values of the job's secret variables, which are masked where the log is shown."""
        self.blocks = LogBlocks()
        self.numbers = LineNumbers(self.blocks)
        self.marks = StreamMarks()
        """Of a merged log, which lines are from stderr, and when they came."""
        self.opened = asyncio.Event()
        self.ended = False
        """Whether nothing more can come."""
        self._arrivals: list[tuple[int, Millis]] = []
        """The ends of pieces that came while the log was followed, with the moment of each; in order."""
        self._opened_size = 0

    async def open(self) -> None:
        """Read the end of the log."""
        window = WINDOW_BLOCKS * BLOCK
        chunk = await self.backend.logs(replace(self.request, offset=-window, limit=window))
        self.marks.add(chunk)
        self._take_gap(chunk.offset - chunk.left_out, chunk.offset)
        self.blocks.grow(max(chunk.size, chunk.offset + len(chunk.data)))
        self.blocks.add(chunk.offset, chunk.data)
        self._opened_size = self.blocks.size
        self.ended = chunk.ended
        self.opened.set()

    async def load(self, block: int) -> None:
        """Read this block and those around it."""
        first = block - WINDOW_BLOCKS // 2
        shorter = await load_blocks(self.backend, self.request, self.blocks, first, WINDOW_BLOCKS, self.marks.add)
        if shorter is not None:
            self.start_over(shorter)

    async def read_more(self, now: Callable[[], Millis]) -> None:
        """Wait until the log has grown or ended; one that was emptied or replaced starts over."""
        end = self.blocks.size
        chunk = await self.backend.logs(replace(self.request, offset=end, limit=BLOCK, wait=True))
        if was_emptied(chunk, end):
            self.start_over(chunk.size)
            return
        self.marks.add(chunk)
        if chunk.data and chunk.offset == end:
            lines = self.numbers.before(end)
            self.blocks.extend(chunk.data)
            if lines is not None:
                self.numbers.add(self.blocks.size, lines + chunk.data.count(b"\n"))
        self._take_gap(chunk.offset - chunk.left_out, chunk.offset)
        self.blocks.grow(max(chunk.size, chunk.offset + len(chunk.data)))
        if self.blocks.size > end:
            self._arrivals.append((self.blocks.size, now()))
            del self._arrivals[:-MOST_ARRIVALS]
        # Bytes beyond this piece may have been written already; they are read when they are shown.
        self.ended = chunk.ended and chunk.offset + len(chunk.data) >= self.blocks.size

    @property
    def is_merged(self) -> bool:
        return self.request.stream is LogStream.MERGED

    async def has_more(self) -> bool:
        """Return whether the log has grown since it was last read."""
        chunk = await self.backend.logs(replace(self.request, offset=self.blocks.size, limit=BLOCK))
        return bool(chunk.data)

    def start_over(self, size: int) -> None:
        """Forget all that is known: the file is another one now."""
        self.blocks = LogBlocks()
        self.numbers, self.marks = LineNumbers(self.blocks), StreamMarks()
        self.blocks.grow(size)
        self._arrivals, self._opened_size = [], size

    def arrived_at(self, end: int) -> Millis | None:
        """Return when the last byte before this offset came; None: it was there before the log was opened, and the
        log has no times of its own."""
        if (part := self.marks.of(end)) is not None:
            return Millis(part.at)
        place = bisect_left(self._arrivals, (end, 0))
        return self._arrivals[place][1] if end > self._opened_size and place < len(self._arrivals) else None

    async def find(
        self, query: Query, begin: int, end: int, tell: Callable[[int], None], *, backward: bool = False
    ) -> tuple[int, int] | None:
        """Return offset and length of the first match that begins between two offsets, `backward` of the last one.

        `tell` is called with the number of bytes that were searched.
        """
        low, high = begin, end
        while low < high:
            answer = await self._search(query, low, high, most=1, backward=backward)
            if answer.found:
                return answer.found[-1 if backward else 0]
            low, high = (low, min(high - 1, answer.begin)) if backward else (max(low + 1, answer.end), high)
            tell(end - high if backward else low - begin)
        return None

    async def count(self, query: Query, begin: int, end: int, tell: Callable[[int], None]) -> int:
        """Return the number of matches that begin between two offsets; of an empty text, the number of lines."""
        amount, at = 0, begin
        while at < end:
            answer = await self._search(query, at, end, most=0)
            amount += answer.count
            at = max(at + 1, answer.end)
            tell(at - begin)
        return amount

    async def offset_of_line(self, number: int, tell: Callable[[int], None]) -> int:
        """Return where the line with this number, from 1, begins; of one beyond the last, the last line."""
        wanted, size, step = number - 1, self.blocks.size, FIRST_STEP
        at, lines = self.numbers.last_up_to(wanted)
        # Fewer than `wanted` lines end before `at`, or as many if it is their end; the steps become smaller around it.
        while step > BLOCK and at < size and lines < wanted:
            end = min(at + step, size)
            more = await self.count(Query(""), at, end, tell)
            if lines + more < wanted:
                at, lines = end, lines + more
                self.numbers.add(at, lines)
            else:
                step //= 4
        chunk = await self.backend.logs(replace(self.request, offset=at, limit=4 * BLOCK))
        while lines < wanted and (newline := chunk.data.find(b"\n", max(0, at - chunk.offset))) >= 0:
            at, lines = chunk.offset + newline + 1, lines + 1
        return min(at, max(0, size - 1))

    async def _search(self, query: Query, begin: int, end: int, *, most: int, backward: bool = False) -> LogMatches:
        asked = self.request
        return await self.backend.search_log(
            LogSearch(
                job=asked.job,
                rank=asked.rank,
                attempt=asked.attempt,
                stream=asked.stream,
                step=asked.step,
                text=query.text,
                pattern=query.is_pattern,
                any_case=query.any_case,
                begin=begin,
                end=end,
                backward=backward,
                most=most,
            )
        )

    def _take_gap(self, begin: int, end: int) -> None:
        if begin < end:
            self.blocks.skip(max(0, begin), end)
