"""Reading what a job printed. The files outlive the container; nothing in them is interpreted."""

from __future__ import annotations

import asyncio
import re
import shutil
from typing import TYPE_CHECKING

from cockpit.model.asking import LogChunk, LogRequest, LogStream

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from cockpit.model.ids import JobId, ReplicaId

MAX_CHUNK = 1 << 20
_ADDRESS = re.compile(rb"https?://[\w.\-\[\]:]*:\d{1,5}(?![\w.])[^\s\"'<>()\x00-\x1f\x7f]*")
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
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            offset = max(0, size + request.offset) if request.offset < 0 else request.offset
            if offset >= size:
                return LogChunk(b"", offset, ended=over)
            file.seek(offset)
            data = file.read(max(0, min(request.limit, MAX_CHUNK)))
    except FileNotFoundError:
        return LogChunk(b"", 0, ended=over)
    return LogChunk(data, offset, ended=over and offset + len(data) >= size)


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
