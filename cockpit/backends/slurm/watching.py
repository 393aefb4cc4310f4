"""Watches a Slurm cluster, which sends no events: looks at it again and again, and yields what has changed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress

from cockpit.backends.base import Connection, JobsDelta, Phase
from cockpit.backends.slurm.mapping.accounting import Past
from cockpit.backends.slurm.past import RECENTLY
from cockpit.backends.slurm.reading import Reading
from cockpit.backends.slurm.rows import past_row
from cockpit.errors import CockpitError
from cockpit.model.ids import JobId
from cockpit.model.jobrow import JobRow
from cockpit.model.view import Overview
from cockpit.runtime.latest import Latest

LOOK_SECONDS = 1.0
"""Seconds between two looks of a watcher; each asks only for the lists whose poll interval has passed."""

AllRows = dict[JobId, JobRow]


class ClusterWatch:
    """The changes of the job list and of the header's figures, and whether the cluster answers."""

    def __init__(
        self,
        reading: Reading,
        all_rows: Callable[[], Awaitable[AllRows]],
        whose: Callable[[], str],
        seen: Callable[[AllRows], None],
    ) -> None:
        """`all_rows`: returns the rows of all jobs that the controller has; unchanged rows must be the same objects.

        `whose`: the user whose recently ended jobs are listed, too; empty: all users'. `seen`: gets each list of rows.
        """
        self._reading, self._all_rows, self._whose, self._seen = reading, all_rows, whose, seen
        self._recent: tuple[Sequence[Past], AllRows] = (), {}
        self._connection = Latest(Connection(Phase.CONNECTING))
        self._failure: CockpitError | None = None
        """Why the last list of jobs could not be read."""
        self._followers = 0
        """Number of callers that follow `connections`."""
        self._changed = asyncio.Event()

    @property
    def connection(self) -> Connection:
        return self._connection.value

    @property
    def silence(self) -> str:
        """The reason why the cluster does not answer; empty: it does."""
        return self.connection.reason if self.connection.phase is Phase.STALE else ""

    async def connections(self) -> AsyncIterator[Connection]:
        self._followers += 1
        try:
            async for each in self._connection.follow():
                yield each
        finally:
            self._followers -= 1

    async def jobs(self, *, anything: bool = False) -> AsyncIterator[JobsDelta]:
        """Yield changes of the job list, by comparing it with the last one every `LOOK_SECONDS`.

        A job that ended stays listed while Slurm still has it, if it was listed live before; the user's other recent
        jobs come from accounting. Raises `Unreachable` if the cluster does not answer at first and no caller follows
        `connections`, where the reason would be seen; later failures are waited out.
        """
        known: AllRows = {}
        version = 0
        silence = ""
        while True:
            rows = await self._rows_or_trouble()
            if self._failure is not None and version == 0 and not self._followers:
                raise self._failure
            if rows is not None:
                # A job that ended before this watcher began comes from accounting instead (`recent_rows`).
                live = {job: row for job, row in rows.items() if row.ended_at is None or job in known}
                # The controller's rows win over those of accounting, which may be older.
                live = (await self.recent_rows()) | live
                # Rows of unchanged jobs are the same objects as before (`Rows`), so identity finds the changes.
                changed = tuple(row for job, row in live.items() if known.get(job) is not row)
                removed = tuple(known.keys() - live.keys())
                version += 1
                # An empty first list must be reported, too, and the first one after a silence, which ends it.
                if changed or removed or anything or version == 1 or silence:
                    known = live
                    yield JobsDelta(changed, removed, version)
                self._seen(rows)
            # The watcher shows that its rows are old; once is enough.
            elif version and not silence:
                yield JobsDelta((), (), version)
            silence = self.silence
            await self._until_time_has_passed()

    async def overviews(self, overview: Callable[[], Awaitable[Overview]]) -> AsyncIterator[Overview]:
        """Yield the header's figures, then again whenever they change."""
        last: Overview | None = None
        while True:
            if await self._rows_or_trouble() is not None:
                with suppress(CockpitError):  # the next list sets the connection's state
                    now = await overview()
                    if now != last:
                        yield now
                    last = now
            await self._until_time_has_passed()

    def look_now(self) -> None:
        """Have all watchers look at once, because this cockpit has changed something."""
        self._changed.set()
        # A new event for the next wait: clearing the old one could race with a watcher that has not woken up yet.
        self._changed = asyncio.Event()

    async def recent_rows(self) -> AllRows:
        """Return rows of recently ended jobs out of accounting. Unchanged rows are the same objects as before.

        Empty on a cluster without accounting.
        """
        ended, before = await self._reading.sacct.ended(RECENTLY, user=self._whose()), self._recent[1]
        # This is one object while sacct prints the same (`ParsedAnswers`).
        if ended is not self._recent[0]:
            rows = {each.job.id: past_row(each) for each in ended}
            self._recent = ended, {job: old if (old := before.get(job)) == row else row for job, row in rows.items()}
        return self._recent[1]

    async def _rows_or_trouble(self) -> AllRows | None:
        """Return all rows and update the connection's state; None while the cluster does not answer."""
        try:
            rows = await self._all_rows()
        except CockpitError as error:
            self._failure = error
            self._connection.put(Connection(Phase.STALE, str(error), self._reading.listed_at))
            return None
        self._failure = None
        self._connection.put(Connection(Phase.CONNECTED, good_at=self._reading.listed_at))
        return rows

    async def _until_time_has_passed(self) -> None:
        """Wait for `LOOK_SECONDS`, or until this cockpit has changed something."""
        with suppress(TimeoutError):
            async with asyncio.timeout(LOOK_SECONDS):
                await self._changed.wait()
