"""The lines of a log that match, and the lines around a place, without reading the rest of the log."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import msgspec

from cockpit.backends.log_windows import load_blocks
from cockpit.errors import CockpitError
from cockpit.present.log_blocks import LogBlocks, NotLoaded

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from typing import TypeVar

    from cockpit.backends.base import Backend
    from cockpit.model.asking import LogRequest, LogSearch

    T = TypeVar("T")

MATCHES: Final = 1000
"""Most matches of one answer."""
WINDOW_BLOCKS: Final = 3


class LogReader:
    """Reads lines of one log by their offsets; a line longer than 128 KiB comes in several."""

    def __init__(self, backend: Backend, request: LogRequest) -> None:
        self._backend, self._request = backend, request
        self._blocks = LogBlocks()

    async def open(self) -> None:
        """Learn the size of the log."""
        chunk = await self._backend.logs(msgspec.structs.replace(self._request, offset=-1, limit=1))
        self._blocks.grow(max(chunk.size, chunk.offset + len(chunk.data)))

    async def line_at(self, offset: int) -> tuple[int, int, bytes]:
        """Return where the line with this byte begins and where the next one does, and the line."""
        begin = await self._ask(lambda blocks: blocks.start_at(offset))
        end = await self._ask(lambda blocks: blocks.next_start(begin))
        return begin, end, await self._ask(lambda blocks: blocks.bytes_between(begin, end))

    async def around(self, offset: int, lines: int) -> tuple[int, int]:
        """Return the bounds of the line with this byte and so many lines before and after it."""
        if not self._blocks.size:
            return 0, 0
        begin = await self._ask(lambda blocks: blocks.start_at(min(offset, max(0, blocks.size - 1))))
        end = await self._ask(lambda blocks: blocks.next_start(begin))
        for _ in range(lines):
            begin, end = await self._ask(partial(_one_line_more, begin=begin, end=end))
        return begin, end

    async def bytes_between(self, begin: int, end: int) -> AsyncIterator[bytes]:
        """Yield the bytes between two offsets, line by line."""
        while begin < end:
            _, begin, data = await self.line_at(begin)
            yield data

    async def _ask(self, question: Callable[[LogBlocks], T]) -> T:
        while True:
            try:
                return question(self._blocks)
            except NotLoaded as missing:
                # The block before it as well, on which its first line depends.
                first = missing.block - 1
                shorter = await load_blocks(self._backend, self._request, self._blocks, first, WINDOW_BLOCKS)
                if shorter is not None:
                    raise CockpitError(
                        "The log was emptied or replaced while it was read: repeat the command."
                    ) from None


def _one_line_more(blocks: LogBlocks, begin: int, end: int) -> tuple[int, int]:
    """Return these bounds with one line more before and after them."""
    return blocks.previous_start(begin), blocks.next_start(end) if end < blocks.size else end


async def matching_lines(backend: Backend, reader: LogReader, search: LogSearch) -> AsyncIterator[tuple[int, bytes]]:
    """Yield each line with a match once, with its first byte."""
    behind = 0
    while True:
        answer = await backend.search_log(msgspec.structs.replace(search, most=MATCHES))
        for at, _ in answer.found:
            if at >= behind:
                begin, behind, data = await reader.line_at(at)
                yield begin, data
        if answer.end >= answer.size:
            return
        search = msgspec.structs.replace(search, begin=max(answer.end, behind))
