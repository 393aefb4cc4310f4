"""A screen that stands still, so that it can be read: what comes meanwhile waits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

if TYPE_CHECKING:
    from cockpit.backends.base import JobsDelta
    from cockpit.model.ids import JobId, Millis
    from cockpit.model.jobrow import JobRow


class PausedView:
    """Of each job only the last row waits, so that it may last for hours."""

    def __init__(self, since: Millis) -> None:
        self.since = since
        self.starts_over = False
        """What waits is everything that there is."""
        self._changed: dict[JobId, JobRow] = {}
        self._removed: set[JobId] = set()
        self._last: JobsDelta | None = None

    def take(self, delta: JobsDelta, *, first: bool) -> None:
        """Keep it for later; `first`: it starts over."""
        if first:
            self._changed.clear()
            self._removed.clear()
            self.starts_over = True
        for job in delta.removed:
            self._changed.pop(job, None)
            self._removed.add(job)
        for row in delta.changed:
            self._removed.discard(row.id)
            self._changed[row.id] = row
        self._last = delta

    def delta(self) -> JobsDelta | None:
        """All of it as one. None: nothing came."""
        if self._last is None:
            return None
        return replace(self._last, changed=tuple(self._changed.values()), removed=tuple(self._removed))
