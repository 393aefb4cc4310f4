"""Logs of a lab's jobs that have no files: read and searched as an engine does."""

from __future__ import annotations

from tempfile import TemporaryFile
from typing import TYPE_CHECKING

from cockpit.model.asking import LogChunk, LogMatches, LogRequest, LogSearch, LogStream
from cockpit.runtime.log_search import search_file

if TYPE_CHECKING:
    from tests.tui.lab import Lab


class Logs:
    """Logs by rank and stream, all ended; what was asked for is in `asked`."""

    def __init__(self, texts: dict[tuple[int, LogStream], bytes]) -> None:
        self._texts = texts
        self.asked: list[LogRequest] = []

    async def read(self, request: LogRequest) -> LogChunk:
        self.asked.append(request)
        text = self._texts.get((request.rank, request.stream), b"")
        start = max(0, len(text) + request.offset) if request.offset < 0 else request.offset
        data = text[start : start + request.limit]
        return LogChunk(data, start, ended=start + len(data) >= len(text), size=len(text))

    async def search(self, request: LogSearch) -> LogMatches:
        with TemporaryFile() as file:
            file.write(self._texts.get((request.rank, request.stream), b""))
            file.flush()
            return await search_file(file.fileno(), request)


def shows(lab: Lab, texts: dict[tuple[int, LogStream], bytes]) -> Logs:
    logs = Logs(texts)
    lab.backend.logs = logs.read
    lab.backend.search_log = logs.search
    return logs
