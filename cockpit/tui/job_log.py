"""The log of a job's page: which one is read and how far, its lines, and when this cockpit saw them come."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.model.asking import LogRequest, LogStream
from cockpit.present.log_lines import LogLines
from cockpit.present.moments import clock_of_second
from cockpit.present.spans import MUTED, Line, Span, line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cockpit.model.asking import LogChunk
    from cockpit.model.ids import JobId, Millis
    from cockpit.present.columns import Context

KEPT_LINES = 20_000
"""Of a log that is followed."""
TAIL_BYTES = -(1 << 20)
NO_TIME = " " * 8


class JobLog:
    """Of one job: its stream, its attempt, its last lines."""

    def __init__(self, job: JobId) -> None:
        self.job = job
        self.stream = LogStream.STDOUT
        self.attempt: int | None = None
        """None: the last one."""
        self.shows_times = False
        self.begin()

    def begin(self) -> None:
        """Read it anew, from near its end."""
        self._feed = LogLines()
        self._texts = [""]
        self._came: list[Millis | None] = [None]
        """When each line was seen to change; None: it stood there already."""
        self._end = TAIL_BYTES
        self._ended = False

    def request(self, *, wait: bool) -> LogRequest:
        """For what has not been read yet."""
        return LogRequest(job=self.job, attempt=self.attempt, stream=self.stream, offset=self._end, wait=wait)

    def take(self, chunk: LogChunk, now: Millis) -> None:
        """Its first line takes the place of the line that was last, when there is more of that."""
        came = None if self._end == TAIL_BYTES else now
        fresh = self._feed.feed(chunk.data)
        if chunk.data:
            self._came[-1:] = [came] * len(fresh)
            self._texts[-1:] = fresh
        del self._texts[:-KEPT_LINES], self._came[:-KEPT_LINES]
        self._end, self._ended = chunk.offset + len(chunk.data), chunk.ended

    def lines(self, context: Context) -> Sequence[Line]:
        """With the second in which each line came, where that is wished and known."""
        if not any(self._texts):
            return [line(Span(f" nothing on {self.stream}{'' if self._ended else ' yet'}", MUTED))]
        if not self.shows_times:
            return [line(text) for text in self._texts]
        return [
            line(Span(f"{clock_of_second(at, context.zone) if at is not None and text else NO_TIME}  ", MUTED), text)
            for text, at in zip(self._texts, self._came, strict=True)
        ]
