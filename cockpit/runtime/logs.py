"""Reading what a job printed. The files outlive the container; nothing in them is interpreted."""

from __future__ import annotations

import asyncio
import errno
import os
import re
import shutil
from typing import TYPE_CHECKING

from cockpit.model.asking import LogChunk, LogRequest, LogStream
from cockpit.present.log_lines import left_out_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from cockpit.model.ids import JobId, ReplicaId

MAX_CHUNK = 1 << 20
BYTES_PER_MIB = 1 << 20
_ADDRESS = re.compile(rb"https?://[\w.\-\[\]:]*:\d{1,5}(?![\w.])[^\s\"'<>()\x00-\x1f\x7f]*")
_MOST_HOLES = 64
"""cockpit makes one. A job can make many in its own log, and gets no engine to count them."""
LOOK_SECONDS = 0.1
"""Between two looks at a log that somebody follows."""


def log_path(logs_folder: Path, replica: ReplicaId, stream: LogStream) -> Path:
    """Where the shim writes this replica's stream."""
    return logs_folder / str(replica.job) / f"{replica.attempt}.{replica.rank}.{stream}"


async def read_log(path: Path, request: LogRequest, ended: Callable[[], bool]) -> LogChunk:
    """The piece asked for. With `wait`, answers once there is something at the offset or nothing more can come."""
    while True:
        over = ended()
        chunk = _read(path, request, over=over)
        if chunk.data or over or not request.wait:
            return chunk
        await asyncio.sleep(LOOK_SECONDS)


def _read(path: Path, request: LogRequest, *, over: bool) -> LogChunk:
    """One stretch of what the file has, with a line before it where what was asked for is left out."""
    try:
        with path.open("rb", buffering=0) as file:
            size = file.seek(0, os.SEEK_END)
            offset = max(0, size + request.offset) if request.offset < 0 else request.offset
            if offset >= size:
                return LogChunk(b"", offset, ended=over)
            begin, first = _data_at(file.fileno(), offset, size)
            marker = _marker(file.fileno(), first, begin) if first < begin else b""
            most = max(0, min(request.limit, MAX_CHUNK))
            data = marker + os.pread(file.fileno(), min(most, _data_end(file.fileno(), begin, size) - begin), begin)
    except FileNotFoundError:
        return LogChunk(b"", 0, ended=over)
    offset = begin - len(marker)
    return LogChunk(data, offset, ended=over and offset + len(data) >= size, left_out=max(0, offset - first))


def left_out(path: Path) -> int:
    """Bytes of this log that are not kept, see `containers.shim.logbounds`."""
    try:
        with path.open("rb", buffering=0) as file:
            size, at, found = file.seek(0, os.SEEK_END), 0, 0
            for _ in range(_MOST_HOLES):
                hole = _data_end(file.fileno(), at, size)
                if hole >= size:
                    break
                at = _seek(file.fileno(), hole, os.SEEK_DATA, size)
                found += at - hole
    except OSError:
        return 0
    return found


def mib_of(size: int) -> int:
    """So many bytes in whole MiB, rounded down as in the log itself; at least one where there are any."""
    return max(size // BYTES_PER_MIB, 1 if size else 0)


def skip_left_out(fd: int, offset: int) -> int:
    """Where the next byte that is kept stands: from `offset` on, or the end."""
    return _seek(fd, offset, os.SEEK_DATA, os.fstat(fd).st_size)


def _data_at(fd: int, offset: int, size: int) -> tuple[int, int]:
    """Where the next byte that is kept stands, and where what is left out before it begins: the same place where
    nothing is."""
    begin = _seek(fd, offset, os.SEEK_DATA, size)
    if begin == offset:
        return begin, begin
    first = 0
    for _ in range(_MOST_HOLES):
        first = _data_end(fd, first, size)
        behind = _seek(fd, first, os.SEEK_DATA, size)
        if behind >= begin:
            return begin, min(first, offset)
        first = behind
    return begin, offset


def _data_end(fd: int, begin: int, size: int) -> int:
    return _seek(fd, begin, os.SEEK_HOLE, size)


def _seek(fd: int, offset: int, whence: int, size: int) -> int:
    """The end where there is nothing of the kind. What is written meanwhile is read the next time."""
    try:
        return min(size, os.lseek(fd, offset, whence))
    except OSError as error:
        if error.errno != errno.ENXIO:
            raise
        return size


def _marker(fd: int, first: int, begin: int) -> bytes:
    """A line of its own, whatever stands before it."""
    in_line = first > 0 and os.pread(fd, 1, first - 1) != b"\n"
    return (b"\n" if in_line else b"") + f"{left_out_line(begin - first)}\n".encode()


def forget_logs(logs_folder: Path, jobs: Iterable[JobId]) -> None:
    """Remove all that these jobs printed, in every attempt."""
    for job in jobs:
        shutil.rmtree(logs_folder / str(job), ignore_errors=True)


def first_address(paths: Iterable[Path], limit: int = 65_536) -> str:
    """The first address with a port that is printed near the beginning of one of these logs; empty: there is none."""
    for path in paths:
        found = _ADDRESS.search(_read(path, LogRequest(job=0, limit=limit), over=True).data)
        if found is not None:
            return found[0].decode(errors="replace")
    return ""


def log_tail(path: Path, lines: int, limit: int = 8192) -> str:
    """The last lines, undecodable bytes replaced."""
    chunk = _read(path, LogRequest(job=0, offset=-limit, limit=limit), over=True)
    text = chunk.data.decode("utf-8", "backslashreplace")
    return "\n".join(text.splitlines()[-lines:])
