"""Changes of the job list that arrive while the user has paused updates, merged into one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

if TYPE_CHECKING:
    from cockpit.backends.base import JobsDelta
    from cockpit.model.ids import JobId, Millis
    from cockpit.model.jobrow import JobRow


class PausedView:
    """The changes since the pause began.

    It stores only the newest row of each job, so a pause may last for hours without growing beyond the job list.
    """

    def __init__(self, since: Millis) -> None:
        self.since = since
        self.starts_over = False
        """Whether the stored rows are the whole list, as the feed has started over since."""
        self._changed: dict[JobId, JobRow] = {}
        self._removed: set[JobId] = set()
        self._last: JobsDelta | None = None

    def take(self, delta: JobsDelta, *, first: bool) -> None:
        """Store the changes; `first`: they begin a new list, which replaces all before."""
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
        """Return all stored changes as one; None: nothing has changed."""
        if self._last is None:
            return None
        return replace(self._last, changed=tuple(self._changed.values()), removed=tuple(self._removed))
