"""The journal in the hands of its one writer, with what it needs beside events: accounting, snapshots, the archive."""

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
"""Events: what a start reads at most, beside the snapshot."""
DAY_MS = 24 * 3_600_000
RETRY_MS = 1_000
"""Between two tries of work that the journal refused (disk full, locked)."""


class Ledger:
    """Writes on behalf of the host. `on_trouble` is called when the journal begins to refuse: then `keep` is due."""

    def __init__(
        self, journal: Journal, machine: Machine, clock: Clock, keep_history_ms: int, on_trouble: Callable[[], None]
    ) -> None:
        self._trouble = ""
        self._passing = False
        """It ends by itself."""
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
        """What the journal and the archive last said; empty text once they work again. That a few bytes found room on a
        full disk does not count."""
        return self._trouble, self._archive_trouble

    @property
    def busy(self) -> bool:
        """Something is left that should be tried again soon."""
        return bool(self._trouble or self._unrecorded)

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """The one writer's turn. Whoever waited behind a refusal shares it (`StoreError`): a lock on the journal takes
        seconds to be told, and a queue would add these up for the last one."""
        refusals = self._refusals
        async with self._writer:
            if refusals != self._refusals:
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
        """What this request was answered before."""
        return await self._journal.answer(request) if request else None

    async def append(self, records: Sequence[EventRecord], *, durable: bool, answer: KeptAnswer | None) -> None:
        """Within a turn."""
        await self._journal.append(records, durable=durable, answer=answer)
        faults.point("appended", type(records[-1].body).__name__ if records else "")

    def ended(self, job: JobId) -> None:
        """To be written into the accounting tables at the next `keep`."""
        self._unrecorded[job] = None

    async def keep(self) -> None:
        """What is due: accounting, a snapshot, the archive, spare room; and whether the journal takes more again."""
        async with self.turn():
            await self._record_ended()
            no_room = await self._no_room()
            if self._trouble and not no_room:
                await self._journal.probe()
            self._trouble = no_room
            if self._machine.state.seq - self._snapshot_seq >= SNAPSHOT_EVERY:
                await self._save_snapshot()
                self._spare_is_due = True
            if self._spare_is_due:
                await self._journal.keep_spare()
                self._spare_is_due = False
        if self._clock.now() >= self._archive_at:
            await self._archive()

    async def close(self) -> None:
        """Within the last turn: nothing is left for the next start to do again."""
        await self._record_ended()
        await self._save_snapshot()

    async def _no_room(self) -> str:
        """What who submits is told; no refusal for the others, who wait for their turn."""
        try:
            await self._journal.check_room()
        except StoreError as error:
            return str(error)
        return ""

    async def _record_ended(self) -> None:
        jobs = [self._machine.state.jobs[job] for job in self._unrecorded if job in self._machine.state.jobs]
        if jobs:
            await self._journal.record_ended(jobs)
        self._unrecorded.clear()

    async def _save_snapshot(self) -> None:
        seq = self._machine.state.seq
        await self._journal.snapshot(self._machine.state, seq)
        self._snapshot_seq = seq

    async def _archive(self) -> None:
        """Events are archived up to the oldest snapshot, so a quiet engine needs one a day. Old events are nobody
        else's concern: new ones are written meanwhile."""
        async with self.turn():
            if self._machine.state.seq > self._snapshot_seq:
                await self._save_snapshot()
        self._archive_at = Millis(self._clock.now() + DAY_MS)
        try:
            await self._journal.archive(Millis(self._clock.now() - self._keep_history_ms))
            self._archive_trouble = ""
        except StoreError as error:
            self._archive_trouble = f"Old events stay in the journal for now. {error}"
