"""Write the journal on behalf of the host: events, and the accounting, snapshots and archive that belong to them."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from cockpit.errors import StoreError
from cockpit.model.ids import Millis
from cockpit.runtime import faults

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from cockpit.engine.machine import Machine
    from cockpit.engine.ports import Clock, Journal
    from cockpit.model.events import EventRecord
    from cockpit.model.ids import JobId
    from cockpit.model.requests import KeptAnswer

SNAPSHOT_EVERY = 10_000
"""Number of events between two snapshots: a start reads the last snapshot and at most this many events."""
DAY_MS = 24 * 3_600_000
RETRY_MS = 1_000
"""Interval between two tries of work that the journal refused (disk full, database locked)."""


class Ledger:
    """The host's access to the journal. `on_trouble` is called when the journal starts to refuse writes; the host then
    calls `maintain` soon."""

    def __init__(
        self, journal: Journal, machine: Machine, clock: Clock, keep_history_ms: int, on_trouble: Callable[[], None]
    ) -> None:
        self._trouble = ""
        self._passing = False
        """Whether the trouble is expected to end by itself (a locked database)."""
        self._archive_trouble = ""
        self._journal = journal
        self._machine = machine
        self._clock = clock
        self._keep_history_ms = keep_history_ms
        self._on_trouble = on_trouble
        self._writer = asyncio.Lock()
        self._refusals = 0
        self._unrecorded: dict[JobId, None] = {}
        self._snapshot_seq = machine.state.seq
        self._archive_at = clock.now()
        self._spare_is_due = True

    @property
    def troubles(self) -> tuple[str, ...]:
        """The last errors of the journal and of the archive; empty once they work again. On a full disk one successful
        small write does not clear the error."""
        return self._trouble, self._archive_trouble

    @property
    def busy(self) -> bool:
        """Whether some work failed and should be tried again soon."""
        return bool(self._trouble or self._unrecorded)

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Hold the write lock. Raises `StoreError` if a write failed while this one waited for the lock.

        A locked database takes seconds to report, and a queue of requests would each wait these seconds in turn.
        """
        refusals = self._refusals
        async with self._writer:
            if refusals != self._refusals:  # fail with the error of the one before, instead of running into it again
                raise StoreError(self._trouble, passing=self._passing)
            try:
                yield
            except StoreError as error:
                self._refusals += 1
                if not self._trouble:
                    self._on_trouble()
                self._trouble, self._passing = str(error), error.passing
                raise

    async def answer(self, request: str) -> KeptAnswer | None:
        """Return the stored answer to this request; None without one or without an id."""
        return await self._journal.answer(request) if request else None

    async def append(self, records: Sequence[EventRecord], *, durable: bool, answer: KeptAnswer | None) -> None:
        """Append events to the journal. The caller holds the write lock (`turn`)."""
        await self._journal.append(records, durable=durable, answer=answer)
        faults.point("appended", type(records[-1].body).__name__ if records else "")

    def ended(self, job: JobId) -> None:
        """Note that an ended job is to be written into the accounting tables by the next `maintain`."""
        self._unrecorded[job] = None

    async def maintain(self) -> None:
        """Do the work that is due: accounting, a snapshot, the spare space, the archive; and clear a past trouble."""
        async with self.turn():
            await self._record_ended()
            disk_full = await self._disk_full()
            # `probe` raises while the journal still refuses writes, and the trouble stays.
            if self._trouble and not disk_full:
                await self._journal.probe()
            self._trouble = disk_full
            if self._machine.state.seq - self._snapshot_seq >= SNAPSHOT_EVERY:
                await self._save_snapshot()
                self._spare_is_due = True
            if self._spare_is_due:
                await self._journal.keep_spare()
                self._spare_is_due = False
        if self._clock.now() >= self._archive_at:
            await self._archive()

    async def close(self) -> None:
        """Write accounting and a snapshot, so that the next start has nothing to repeat. The caller holds the lock."""
        await self._record_ended()
        await self._save_snapshot()

    async def _disk_full(self) -> str:
        """Return the error that a submission would get for lack of disk space; empty if there is enough.

        It is caught here: raised inside `turn`, it would also fail the requests that wait for the lock.
        """
        try:
            await self._journal.check_room()
        except StoreError as error:
            return str(error)
        return ""

    async def _record_ended(self) -> None:
        jobs = [self._machine.state.jobs[job] for job in self._unrecorded if job in self._machine.state.jobs]
        if jobs:
            await self._journal.record_ended(jobs)
        self._unrecorded.clear()  # last: after an error the next call tries all of them again

    async def _save_snapshot(self) -> None:
        seq = self._machine.state.seq
        await self._journal.snapshot(self._machine.state, seq)
        self._snapshot_seq = seq

    async def _archive(self) -> None:
        """Move old events into the archive, once a day, without holding the write lock during the move.

        Only events before the oldest snapshot can be moved, so a quiet engine needs a snapshot a day.
        """
        async with self.turn():
            if self._machine.state.seq > self._snapshot_seq:
                await self._save_snapshot()
        self._archive_at = Millis(self._clock.now() + DAY_MS)  # before the try: a failure waits for the next day, too
        try:
            await self._journal.archive(Millis(self._clock.now() - self._keep_history_ms))
            self._archive_trouble = ""
        except StoreError as error:
            self._archive_trouble = f"Old events stay in the journal for now. {error}"
