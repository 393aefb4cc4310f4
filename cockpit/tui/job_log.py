"""The state of the log on a job's page: which log, how far it is read, its lines, and when each line arrived."""

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

TAIL_BYTES = -(1 << 20)
"""Offset of the first request: the last MiB of the log."""
MOST_LINES = 20_000
"""The number of last lines of a log that are held in memory."""
NO_TIME = " " * 8
"""Blanks in place of a time, as wide as `clock_of_second` writes one."""
FAILED: Final = frozenset({JobState.ERROR, JobState.EXPIRED})
# Of a Python traceback, also behind a rank in brackets as torchrun writes it.
_TRACEBACK: Final = re.compile(r"^\s*(?:\[[^\]]*\][: ]*)?Traceback \(most recent call last\)")
_ERROR: Final = re.compile(r"\b\w*(?:Error|Exception)\b|\b(?:ERROR|FATAL|error:|fatal:|Killed|Segmentation fault)\b")


class JobLog:
    """The log of one replica, stream and attempt of a job."""

    def __init__(self, job: JobId) -> None:
        self.job = job
        self.rank = 0
        self.stream = LogStream.STDOUT
        self.attempt: int | None = None
        """The number of the attempt; None: the last one."""
        self.at_error = False
        """Whether it was opened where the job failed, and the user has chosen nothing else since."""
        self.shows_times = False
        self.begin()

    def begin(self) -> None:
        """Start over: forget all lines and read from near the end."""
        self._feed = LogLines()
        self._lines: list[Line] = [()]
        self._arrived: list[Millis | None] = [None]
        """The moment at which each line last changed; None: it was there before the first read."""
        self._end = TAIL_BYTES
        self._has_ended = False
        self._bytes_before = 0
        """The number of bytes of the log before the first line that was read."""
        self._lines_before = 0
        """The number of lines that were read and dropped."""

    def open_for(self, row: JobRow) -> None:
        """Choose the replica: the one that failed first, if one did."""
        self.rank = row.failed[0] if row.failed is not None else 0
        self.at_error = row.state in FAILED or row.failed is not None

    def errors_request(self) -> LogRequest:
        """Return a request for the last byte of stderr, to learn whether there is any."""
        return LogRequest(job=self.job, rank=self.rank, stream=LogStream.STDERR, offset=-1, limit=1)

    def request(self, *, wait: bool) -> LogRequest:
        """Return a request for what has not been read yet; with `wait` the answer comes once there is more."""
        return LogRequest(
            job=self.job, rank=self.rank, attempt=self.attempt, stream=self.stream, offset=self._end, wait=wait
        )

    def take(self, chunk: LogChunk, now: Millis) -> None:
        """Add an answer. Its first line replaces the last line, which it continues."""
        # The answer to the first request tells where in the log its tail begins.
        is_first = self._end == TAIL_BYTES
        if is_first:
            self._bytes_before = chunk.offset
        if chunk.data:
            fresh = self._feed.feed(chunk.data)
            # What was there before the page was opened has no time of arrival; all of it comes with the first answer.
            self._arrived[-1:] = [None if is_first else now] * len(fresh)
            self._lines[-1:] = fresh
        self._lines_before += max(0, len(self._lines) - MOST_LINES)
        del self._lines[:-MOST_LINES], self._arrived[:-MOST_LINES]
        self._end, self._has_ended = chunk.offset + len(chunk.data), chunk.ended

    def lines(self, context: Context) -> Sequence[Line]:
        """Return the lines to show; with the time at which each arrived, where the user wants that and it is known."""
        if not any(self._lines):
            return [line(Span(f" nothing on {self.stream}{'' if self._has_ended else ' yet'}", MUTED))]
        before = self._hidden_part()
        if not self.shows_times:
            return [*before, *self._lines]
        timed = [
            (Span(f"{clock_of_second(at, context.zone) if at is not None and text else NO_TIME}  ", MUTED), *text)
            for text, at in zip(self._lines, self._arrived, strict=True)
        ]
        return [*before, *timed]

    def error_place(self) -> int | None:
        """Return the index of the shown line with the failure: the begin of the last traceback, else the last error.

        None: no line names an error.
        """
        texts = [plain(each) for each in self._lines]
        # A traceback first: behind it a program often logs further errors that only follow from it.
        for sign in (_TRACEBACK, _ERROR):
            index = next((at for at in reversed(range(len(texts))) if sign.search(texts[at])), None)
            if index is not None:
                return index + len(self._hidden_part())
        return None

    def _hidden_part(self) -> list[Line]:
        """Return the line that says which part of the log is not shown; none where all of it is."""
        parts = [f"the first {units.size(self._bytes_before)}"] if self._bytes_before else []
        parts += [units.counted(self._lines_before, "earlier line")] if self._lines_before else []
        if not parts:
            return []
        whole = f"cockpit logs {job_words(self.job)}" + (f"/{self.rank}" if self.rank else "")
        whole += f" --attempt {self.attempt}" if self.attempt is not None else ""
        whole += " --stderr" if self.stream is LogStream.STDERR else ""
        return [line(Span(f"… {' and '.join(parts)} not shown; all of it: {whole}", MUTED))]
