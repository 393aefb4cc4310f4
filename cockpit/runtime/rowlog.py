"""Data shared by all readers of the same rows: the pages of the first load, and rows as they were before they changed.

Remembering for each reader the rows that it was sent would cost as much memory as the rows themselves, and each change
would be computed once per reader. Instead only a number is remembered per reader: the last batch that it has received.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import msgspec

    from cockpit.model.ids import JobId
    from cockpit.model.jobrow import JobRow

MOST_ROWS = 100_000
"""Most rows in all batches together; a reader that needs older ones starts over."""


class RowLog:
    """Batches of rows as they were before they changed; None for a job that had no row."""

    def __init__(self) -> None:
        self.last = 0
        """The number of the newest batch."""
        self._batches: deque[Mapping[JobId, JobRow | None]] = deque()
        self._rows = 0

    def add(self, before: Mapping[JobId, JobRow | None]) -> None:
        """Add a batch: the rows that have just changed, as they were before."""
        self.last += 1
        self._batches.append(before)
        self._rows += len(before)
        # The newest batch stays in any case: it may be larger than the limit, and readers are just about to need it.
        while self._rows > MOST_ROWS and len(self._batches) > 1:
            self._drop()

    def since(self, number: int) -> dict[JobId, JobRow | None] | None:
        """Return every row that changed after batch `number`, as it was then; None if that batch is too old."""
        missing = self.last - number
        if missing > len(self._batches):
            return None
        before: dict[JobId, JobRow | None] = {}
        for at in range(len(self._batches) - missing, len(self._batches)):
            for job, row in self._batches[at].items():
                before.setdefault(job, row)  # the oldest of several counts
        return before

    def forget(self, number: int) -> None:
        """Drop batch `number` and those before it: no reader needs them."""
        # Batches are numbered without gaps; this is the number before the oldest.
        while self._batches and self.last - len(self._batches) < number:
            self._drop()

    def _drop(self) -> None:
        self._rows -= len(self._batches.popleft())


class SharedPages:
    """Pages that are encoded when the first reader reaches them, and then serve all readers."""

    def __init__(self, pages: Iterator[msgspec.Raw]) -> None:
        self._coming = pages
        self._pages: list[msgspec.Raw] = []

    def __iter__(self) -> Iterator[msgspec.Raw]:
        at = 0
        while at < len(self._pages) or self._makes_one():
            yield self._pages[at]
            at += 1

    def _makes_one(self) -> bool:
        page = next(self._coming, None)
        if page is not None:
            self._pages.append(page)
        return page is not None
