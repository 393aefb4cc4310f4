"""Read the logs of jobs. The files outlive the containers. Bytes are returned as they were written.

A log that exceeds its limit has a hole where the middle was dropped (`containers.shim.logbounds`). A reader gets one
line about the dropped size instead.
"""

from __future__ import annotations

import asyncio
import errno
import os
import re
import shutil
from functools import partial
from typing import TYPE_CHECKING

from cockpit.model.asking import LogChunk, LogMatches, LogRequest, LogStream
from cockpit.model.ids import JobId, Millis
from cockpit.present.log_lines import left_out_line
from cockpit.runtime.log_search import search_file

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable
    from pathlib import Path

    from cockpit.model.asking import LogSearch
    from cockpit.model.ids import ReplicaId
    from cockpit.runtime.clock import Timekeeper
    from cockpit.runtime.log_search import Part


MAX_CHUNK = 1 << 20
"""Most bytes in one answer, which fits a frame of the protocol."""
BYTES_PER_MIB = 1 << 20
_ADDRESS = re.compile(rb"https?://[\w.\-\[\]:]*:\d{1,5}(?![\w.])[^\s\"'<>()\x00-\x1f\x7f]*")
_MOST_HOLES = 64
"""Most holes in a log that are looked at. cockpit makes one; a job could make many, to keep the engine busy."""
LOOK_SECONDS = 0.1
"""Interval at which a followed log is read."""


def log_path(logs_folder: Path, replica: ReplicaId, stream: LogStream) -> Path:
    """Return the path of the file to which the shim writes this replica's stream."""
    return logs_folder / str(replica.job) / f"{replica.attempt}.{replica.rank}.{stream}"


async def read_log(path: Path, request: LogRequest, ended: Callable[[], bool]) -> LogChunk:
    """Read a piece of a log. With `wait`, return once there are bytes at the offset or no more can come."""
    while True:
        # Asked before reading: otherwise bytes written in between could be missed at the end.
        over = ended()
        chunk = _read(path, request, over=over)
        # A log that is shorter than what was read of it was emptied or replaced: its reader has to begin anew.
        if chunk.data or over or not request.wait or chunk.size < request.offset:
            return chunk
        await asyncio.sleep(LOOK_SECONDS)


def _read(path: Path, request: LogRequest, *, over: bool) -> LogChunk:
    """Read one piece without holes; if the requested offset is in a hole, a line about the dropped size precedes it."""
    try:
        with path.open("rb", buffering=0) as file:
            size = file.seek(0, os.SEEK_END)
            # Negative: counted from the end, as it is now.
            offset = max(0, size + request.offset) if request.offset < 0 else request.offset
            if offset >= size:
                return LogChunk(b"", offset, ended=over, size=size)
            begin, first = _data_at(file.fileno(), offset, size)
            marker = _marker(file.fileno(), first, begin) if first < begin else b""
            most = max(0, min(request.limit, MAX_CHUNK))
            data = marker + os.pread(file.fileno(), min(most, _data_end(file.fileno(), begin, size) - begin), begin)
    except FileNotFoundError:
        return LogChunk(b"", 0, ended=over)
    offset = begin - len(marker)
    # The end is reported with the last bytes, or else with an empty piece.
    ended = over and offset + len(data) >= size
    return LogChunk(data, offset, ended, left_out=max(0, offset - first), size=size)


async def search_log(path: Path, request: LogSearch) -> LogMatches:
    """Search a part of a log, without what was dropped from it. A log that does not exist is empty."""
    try:
        with path.open("rb", buffering=0) as file:
            return await search_file(file.fileno(), request, partial(_stored, file.fileno(), backward=request.backward))
    except FileNotFoundError:
        return LogMatches((), 0, 0, 0, 0)


def _stored(fd: int, part: Part, *, backward: bool) -> Part:
    """Return the part as far as it can be read without reading a hole, which may be much larger than the log."""
    if backward and part.end:
        behind, first = _data_at(fd, part.end - 1, part.size)
        if behind >= part.end:  # the search goes on before the hole
            return part._replace(begin=first, end=first)
        # Holes cannot be sought backwards: from hole to hole up to the last data before the end.
        begin = _seek(fd, part.begin, os.SEEK_DATA, part.size)
        for _ in range(_MOST_HOLES):
            behind = _seek(fd, _data_end(fd, begin, part.size), os.SEEK_DATA, part.size)
            if behind >= part.end:
                break
            begin = behind
        return part._replace(begin=begin)
    begin = _seek(fd, part.begin, os.SEEK_DATA, part.size)
    if begin >= part.end:  # the search goes on behind the hole
        return part._replace(begin=begin, end=begin)
    return part._replace(begin=begin, end=min(part.end, _data_end(fd, begin, part.size)))


def left_out(path: Path) -> int:
    """Return the number of bytes that were dropped from this log, see `containers.shim.logbounds`."""
    try:
        with path.open("rb", buffering=0) as file:
            size, at, dropped = file.seek(0, os.SEEK_END), 0, 0
            # In turns: the next hole, then the data behind it. Every file ends in a hole (lseek(2)).
            for _ in range(_MOST_HOLES):
                hole = _data_end(file.fileno(), at, size)
                if hole >= size:
                    break
                at = _seek(file.fileno(), hole, os.SEEK_DATA, size)
                dropped += at - hole
    except OSError:
        return 0
    return dropped


def mib_of(size: int) -> int:
    """Convert bytes to whole MiB, rounded down as in the log's own line; at least 1 if there are any bytes."""
    return max(size // BYTES_PER_MIB, 1 if size else 0)


def skip_left_out(fd: int, offset: int) -> int:
    """Return the position of the next byte that was not dropped, from `offset` on, or the end of the file."""
    return _seek(fd, offset, os.SEEK_DATA, os.fstat(fd).st_size)


def data_extent(fd: int, offset: int) -> tuple[int, int]:
    """Return where the next bytes that were not dropped begin, from `offset` on, and where they end."""
    size = os.fstat(fd).st_size
    begin = _seek(fd, offset, os.SEEK_DATA, size)
    return begin, _data_end(fd, begin, size)


def _data_at(fd: int, offset: int, size: int) -> tuple[int, int]:
    """Return the position of the next byte that was not dropped, and where the hole before it begins.

    Both are the same if `offset` is not in a hole.
    """
    begin = _seek(fd, offset, os.SEEK_DATA, size)
    if begin == offset:
        return begin, begin
    # A hole cannot be sought backwards, so all holes before it are gone through from the beginning.
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
    """Seek data or a hole; return `size` if there is none. Bytes written meanwhile are read the next time."""
    try:
        return min(size, os.lseek(fd, offset, whence))
    except OSError as error:
        if error.errno != errno.ENXIO:
            raise
        return size


def _marker(fd: int, first: int, begin: int) -> bytes:
    """Return the line about dropped bytes, after a newline if the text before it does not end with one."""
    in_line = first > 0 and os.pread(fd, 1, first - 1) != b"\n"
    return (b"\n" if in_line else b"") + f"{left_out_line(begin - first)}\n".encode()


def forget_logs(logs_folder: Path, jobs: Iterable[JobId]) -> None:
    """Delete the logs of these jobs, of every attempt."""
    for job in jobs:
        shutil.rmtree(logs_folder / str(job), ignore_errors=True)


def first_address(paths: Iterable[Path], limit: int = 65_536) -> str:
    """Return the first URL with a port in the first `limit` bytes of one of these logs; empty if there is none."""
    for path in paths:
        match = _ADDRESS.search(_read(path, LogRequest(job=0, limit=limit), over=True).data)
        if match is not None:
            return match[0].decode(errors="replace")
    return ""


def log_tail(path: Path, lines: int, limit: int = 8192) -> str:
    """Return the last lines of a log; undecodable bytes are replaced."""
    chunk = _read(path, LogRequest(job=0, offset=-limit, limit=limit), over=True)
    text = chunk.data.decode("utf-8", "backslashreplace")
    return "\n".join(text.splitlines()[-lines:])


DAY_MS = 86_400_000


async def tidy_logs(
    logs_folder: Path, living: Callable[[], Collection[JobId]], clock: Timekeeper, keep_seconds: int
) -> None:
    """Once a day, until cancelled, delete the logs of ended jobs that were not written to for `keep_seconds`."""
    while True:
        now, stay = clock.now(), frozenset(living())
        old = await asyncio.to_thread(old_logs, logs_folder, Millis(now - 1000 * keep_seconds))
        await asyncio.to_thread(forget_logs, logs_folder, [job for job in old if job not in stay])
        await clock.wait_until(Millis(now + DAY_MS))


def old_logs(logs_folder: Path, before: Millis) -> list[JobId]:
    """Return the jobs whose logs were not written to since `before`."""
    folders = [each for each in logs_folder.glob("*") if each.name.isdecimal()]
    return [JobId(int(folder.name)) for folder in folders if _written_at(folder) < before]


def _written_at(folder: Path) -> int:
    """Return when any file in the folder was last changed, in milliseconds UTC."""
    try:
        return max(path.stat().st_mtime_ns for path in (folder, *folder.iterdir())) // 1_000_000
    except OSError:  # it is being removed
        return 1 << 62
