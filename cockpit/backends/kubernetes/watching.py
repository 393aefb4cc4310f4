"""Reports changes of the job list and of the cluster's figures as they happen."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from cockpit.backends.base import JobsDelta
from cockpit.errors import CockpitError

if TYPE_CHECKING:
    from cockpit.backends.kubernetes.job_list import JobList
    from cockpit.backends.kubernetes.session import Changes, Session
    from cockpit.model.ids import JobId
    from cockpit.model.jobrow import JobRow
    from cockpit.model.view import Overview


class ClusterWatch:
    """Follows one cluster for any number of watchers."""

    def __init__(self, session: Session, changes: Changes, jobs: JobList, note: Callable[[], None]) -> None:
        """`note` is called after each look at the list, to record what has changed."""
        self._session, self._changes, self._list, self._note = session, changes, jobs, note

    async def jobs(self, *, anything: bool) -> AsyncIterator[JobsDelta]:
        """Yield the list, then its changes. `anything`: also when something else may have changed."""
        known: dict[JobId, JobRow] = {}
        version, silence = 0, ""
        while True:
            seen = self._changes.count
            await self._list.settle()
            rows = {job: row for job, row in self._list.refresh().items() if is_listed(row) or job in known}
            self._note()
            # Who saw a job live also sees that it was deleted.
            rows |= {job: gone.row for job, gone in self._list.gone.items() if job in known}
            # Rows of unchanged jobs are the same objects as before.
            changed = tuple(row for job, row in rows.items() if known.get(job) is not row)
            removed = tuple(known.keys() - rows.keys())
            if changed or removed or anything or not version or silence != self._session.silence:
                version, known, silence = version + 1, rows, self._session.silence
                yield JobsDelta(changed, removed, version)
            await self._changes.after(seen)

    async def overviews(self, overview: Callable[[], Awaitable[Overview]]) -> AsyncIterator[Overview]:
        """Yield the overview, then again whenever it changes."""
        last: Overview | None = None
        while True:
            seen = self._changes.count
            with suppress(CockpitError):
                now = await overview()
                if now != last:
                    yield now
                last = now
            await self._changes.after(seen)


def is_listed(row: JobRow) -> bool:
    """Return whether the job is live or held."""
    return row.ended_at is None or row.held_until is not None
