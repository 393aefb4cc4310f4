"""Read windows of a log from a cluster into the blocks that are in memory of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

if TYPE_CHECKING:
    from collections.abc import Callable

    from cockpit.backends.base import Backend
    from cockpit.model.asking import LogChunk, LogRequest
    from cockpit.present.log_blocks import LogBlocks


async def load_blocks(
    backend: Backend,
    request: LogRequest,
    blocks: LogBlocks,
    first: int,
    count: int,
    note: Callable[[LogChunk], None] = lambda _: None,
) -> int | None:
    """Add so many blocks from `first` on, as far as the log goes.

    Returns None; or the size of the log if it has become shorter than it was known to be, and then adds nothing.
    `note` is called with each piece that was read.
    """
    begin = max(0, first) * blocks.width
    end = min(blocks.size, begin + count * blocks.width)
    data = bytearray()
    while (at := begin + len(data)) < end:
        chunk = await backend.logs(replace(request, offset=at, limit=end - at))
        if not chunk.data:
            return chunk.size
        note(chunk)
        if chunk.offset > at:  # what was dropped of the log; a line in its place says so
            blocks.skip(max(0, min(at, chunk.offset - chunk.left_out)), chunk.offset)
            data += b"\n" * (min(end, chunk.offset) - at)
        data += chunk.data[: max(0, end - max(at, chunk.offset))]
    blocks.add(begin, bytes(data))
    return None
