"""The log of a job's page: which one is read and how far, its lines, and when this cockpit saw them come."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from cockpit.model.asking import LogRequest, LogStream
from cockpit.model.ids import job_words
from cockpit.model.job import JobState
from cockpit.present import units
from cockpit.present.log_lines import LogLines
from cockpit.present.moments import clock_of_second
from cockpit.present.spans import MUTED, Line, Span, line, plain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cockpit.model.asking import LogChunk
    from cockpit.model.ids import JobId, Millis
    from cockpit.model.jobrow import JobRow
    from cockpit.present.columns import Context

KEPT_LINES = 20_000
"""Of a log that is followed."""
TAIL_BYTES = -(1 << 20)
NO_TIME = " " * 8
FAILED: Final = frozenset({JobState.ERROR, JobState.EXPIRED})
_TRACEBACK: Final = re.compile(r"^\s*(?:\[[^\]]*\][: ]*)?Traceback \(most recent call last\)")
_ERROR: Final = re.compile(r"\b\w*(?:Error|Exception)\b|\b(?:ERROR|FATAL|error:|fatal:|Killed|Segmentation fault)\b")


class JobLog:
    """Of one job: its replica, its stream, its attempt, its last lines."""

    def __init__(self, job: JobId) -> None:
        self.job = job
        self.rank = 0
        self.stream = LogStream.STDOUT
        self.attempt: int | None = None
        """None: the last one."""
        self.at_error = False
        """It was opened where the job failed, and the user has chosen nothing else since."""
        self.shows_times = False
        self.begin()

    def begin(self) -> None:
        """Read it anew, from near its end."""
        self._feed = LogLines()
        self._lines: list[Line] = [()]
        self._came: list[Millis | None] = [None]
        """When each line was seen to change; None: it stood there already."""
        self._end = TAIL_BYTES
        self._ended = False
        self._bytes_before = 0
        """Of the log, before the first line that was read."""
        self._lines_before = 0
        """That were read and are not kept."""

    def open_for(self, row: JobRow) -> None:
        """Of a job that failed, open the log of the replica that failed first."""
        self.rank = row.failed[0] if row.failed is not None else 0
        self.at_error = row.state in FAILED or row.failed is not None

    def errors_request(self) -> LogRequest:
        """For the last byte of stderr, to learn whether there is any."""
        return LogRequest(job=self.job, rank=self.rank, stream=LogStream.STDERR, offset=-1, limit=1)

    def request(self, *, wait: bool) -> LogRequest:
        """For what has not been read yet."""
        return LogRequest(
            job=self.job, rank=self.rank, attempt=self.attempt, stream=self.stream, offset=self._end, wait=wait
        )

    def take(self, chunk: LogChunk, now: Millis) -> None:
        """Its first line takes the place of the line that was last, when there is more of that."""
        is_first = self._end == TAIL_BYTES
        if is_first:
            self._bytes_before = chunk.offset
        if chunk.data:
            fresh = self._feed.feed(chunk.data)
            self._came[-1:] = [None if is_first else now] * len(fresh)
            self._lines[-1:] = fresh
        self._lines_before += max(0, len(self._lines) - KEPT_LINES)
        del self._lines[:-KEPT_LINES], self._came[:-KEPT_LINES]
        self._end, self._ended = chunk.offset + len(chunk.data), chunk.ended

    def lines(self, context: Context) -> Sequence[Line]:
        """With the second in which each line came, where that is wished and known."""
        if not any(self._lines):
            return [line(Span(f" nothing on {self.stream}{'' if self._ended else ' yet'}", MUTED))]
        before = self._before()
        if not self.shows_times:
            return [*before, *self._lines]
        timed = [
            (Span(f"{clock_of_second(at, context.zone) if at is not None and text else NO_TIME}  ", MUTED), *text)
            for text, at in zip(self._lines, self._came, strict=True)
        ]
        return [*before, *timed]

    def error_place(self) -> int | None:
        """Which of the shown lines tells of the failure: where the last traceback begins, else the last that names an
        error; None where none does."""
        texts = [plain(each) for each in self._lines]
        for sign in (_TRACEBACK, _ERROR):
            found = next((at for at in reversed(range(len(texts))) if sign.search(texts[at])), None)
            if found is not None:
                return found + len(self._before())
        return None

    def _before(self) -> list[Line]:
        """What part of the log is not shown."""
        parts = [f"the first {units.size(self._bytes_before)}"] if self._bytes_before else []
        parts += [units.counted(self._lines_before, "earlier line")] if self._lines_before else []
        if not parts:
            return []
        whole = f"cockpit logs {job_words(self.job)}" + (f"/{self.rank}" if self.rank else "")
        whole += f" --attempt {self.attempt}" if self.attempt is not None else ""
        whole += " --stderr" if self.stream is LogStream.STDERR else ""
        return [line(Span(f"… {' and '.join(parts)} not shown; all of it: {whole}", MUTED))]
