"""Which log of a job is shown: its replica, stream and attempt; and where a failed one opens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cockpit.model.asking import LogRequest, LogStream
from cockpit.model.job import JobState
from cockpit.tui.log_source import LogSource, Query

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cockpit.backends.base import Backend
    from cockpit.model.ids import JobId
    from cockpit.model.jobrow import JobRow

FAILED: Final = frozenset({JobState.ERROR, JobState.EXPIRED})
ERRORS: Final = (
    # The begin of a Python traceback, also behind a rank in brackets as torchrun writes it. It comes first: behind it
    # a program often logs further errors that only follow from it.
    Query(r"^\s*(?:\[[^\]]*\][: ]*)?Traceback \(most recent call last\)", is_pattern=True, any_case=False),
    Query(
        r"\b\w*(?:Error|Exception)\b|\b(?:ERROR|FATAL|error:|fatal:|Killed|Segmentation fault)\b",
        is_pattern=True,
        any_case=False,
    ),
)
ERROR_BYTES: Final = 16 << 20
"""Bytes at the end of a log in which the error is looked for."""


class JobLog:
    """The choice of one log of a job."""

    def __init__(self, job: JobId) -> None:
        self.job = job
        self.rank = 0
        self.stream = LogStream.STDOUT
        self.attempt: int | None = None
        """The number of the attempt; None: the last one."""
        self.at_error = False
        """Whether it was opened where the job failed, and the user has chosen nothing else since."""
        self.is_chosen = False
        """Whether replica and stream were chosen: by the first look at the log, or by the user."""

    async def choose(self, row: JobRow, backend: Backend) -> None:
        """Choose the first log: that of the replica that failed first, and its stderr if it wrote any."""
        if row.failed is not None:
            self.rank = row.failed[0]
        self.at_error = row.state in FAILED or row.failed is not None
        # The last byte of stderr is enough to learn whether there is any.
        last = LogRequest(job=self.job, rank=self.rank, stream=LogStream.STDERR, offset=-1, limit=1)
        if self.at_error and (await backend.logs(last)).data:
            self.stream = LogStream.STDERR
        # Only now: if the user leaves the tab meanwhile, which cancels this, the choice is made at the next visit.
        self.is_chosen = True

    def chosen_by_user(self) -> None:
        """Take note that the user has chosen another log."""
        self.is_chosen, self.at_error = True, False

    def source(self, backend: Backend, known: Sequence[str] = ()) -> LogSource:
        """Return the chosen log. `known`: values of the job's secret variables."""
        asked = LogRequest(job=self.job, rank=self.rank, attempt=self.attempt, stream=self.stream)
        return LogSource(backend, asked, known)


async def error_offset(source: LogSource) -> int | None:
    """Return the offset of the failure: of the last traceback, else of the last error; None: no line names one."""
    size = source.blocks.size
    for query in ERRORS:
        found = await source.find(query, max(0, size - ERROR_BYTES), size, lambda _: None, backward=True)
        if found is not None:
            return found[0]
    return None
